/* csync_tls_error: of the last call, step and reason. */
#include "sessions.h"

static void of_the_last_call(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);
	char b[10];

	assert_string_equal(csync_tls_error(NULL), "");
	assert_string_equal(csync_tls_error(t.tls[CLIENT]), "");
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "x", 1), -1);
	assert_string_equal(csync_tls_error(t.tls[CLIENT]), "writing: no handshake was done");
	talk_handshake(&t);
	assert_string_equal(csync_tls_error(t.tls[CLIENT]), "");
	ends_close(&t.e, CLIENT);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), -1);
	assert_string_equal(csync_tls_error(t.tls[SERVER]),
			    "reading: the peer's stream has ended, and the peer has not said that it would");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(of_the_last_call),
};
CT_MAIN("test_tls_error", cases)
