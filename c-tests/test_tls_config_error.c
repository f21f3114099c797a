/* csync_tls_config_error: of the last load. */
#include "sessions.h"

static void of_the_last_load(void)
{
	csync_tls_config *config = NULL;

	assert_string_equal(csync_tls_config_error(NULL), "");
	assert_int_equal(csync_tls_config_new(NULL, &config), CSYNC_OK);
	assert_string_equal(csync_tls_config_error(config), "");
	assert_int_equal(csync_tls_config_load(config, "d/none", "d/none"), CSYNC_E_FILE);
	assert_string_equal(csync_tls_config_error(config), "d/none: No such file or directory");
	assert_int_equal(csync_tls_config_load(config, NULL, "d/none"), CSYNC_E_ARGUMENT);
	assert_string_not_equal(csync_tls_config_error(config), "");
	assert_int_equal(csync_tls_config_load(config, identity_file("p256", "cert.pem"), identity_file("p256", "key.pem")),
			 CSYNC_OK);
	assert_string_equal(csync_tls_config_error(config), "");
	csync_tls_config_free(config);
}

static const struct ct_case cases[] = {
	OURS(of_the_last_load),
};
CT_MAIN("test_tls_config_error", cases)
