/* csync_tls_config_new: which options. */
#include "sessions.h"

#include <limits.h>

#define SOME ((csync_tls_config *)0x10)

static void options_of_every_kind(void)
{
	static const unsigned versions[] = { 0, 12, 13 }, others[] = { 1, 11, 14, 10, 0x303, UINT_MAX };
	csync_tls_options o = tls_options_none();
	csync_tls_config *config = SOME;

	assert_int_equal(csync_tls_config_new(NULL, NULL), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_tls_config_new(NULL, &config), CSYNC_OK);
	assert_string_equal(csync_tls_config_error(config), "");
	csync_tls_config_free(config);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		o.version = versions[i];
		assert_int_equal(csync_tls_config_new(&o, &config), CSYNC_OK);
		csync_tls_config_free(config);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		o.version = others[i];
		config = SOME;
		assert_int_equal(csync_tls_config_new(&o, &config), CSYNC_E_ARGUMENT);
		assert_null(config);
	}
}

static void sizes(void)
{
	csync_tls_options o = tls_options_none();
	csync_tls_config *config = SOME;

	o.version = 99;
	for (o.size = 0; o.size < sizeof(size_t); o.size++) {
		config = SOME;
		assert_int_equal(csync_tls_config_new(&o, &config), CSYNC_E_ARGUMENT);
		assert_null(config);
	}
	/* an older program, which knows nothing of the version */
	o.size = sizeof(size_t);
	assert_int_equal(csync_tls_config_new(&o, &config), CSYNC_OK);
	csync_tls_config_free(config);
}

static const struct ct_case cases[] = {
	OURS(options_of_every_kind),
	OURS(sizes),
};
CT_MAIN("test_tls_config_new", cases)
