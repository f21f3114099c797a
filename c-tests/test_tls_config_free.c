/* csync_tls_config_free: sessions go on. */
#include "sessions.h"

static void null_is_allowed(void)
{
	csync_tls_config_free(NULL);
}

static void before_the_handshake_of_its_sessions(void)
{
	/* frees it there */
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	talk_handshake(&t);
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "x", 1), 1);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_bytes(tls_bytes(t.tls[SERVER], 1), bytes_text("x"));
	talk_free(&t);
}

static void one_that_has_failed(void)
{
	csync_tls_config *config = NULL;

	assert_int_equal(csync_tls_config_new(NULL, &config), CSYNC_OK);
	assert_int_equal(csync_tls_config_load(config, "d/none", "d/none"), CSYNC_E_FILE);
	csync_tls_config_free(config);
}

static const struct ct_case cases[] = {
	OURS(null_is_allowed),
	OURS(before_the_handshake_of_its_sessions),
	OURS(one_that_has_failed),
};
CT_MAIN("test_tls_config_free", cases)
