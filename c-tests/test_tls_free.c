/* csync_tls_free: at any time; nothing is sent, and nothing is closed. */
#include "sessions.h"

static void null_is_allowed(void)
{
	csync_tls_free(NULL);
}

static void at_any_time(void)
{
	for (int i = 0; i < 4; i++) {
		struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

		if (i > 0)
			talk_handshake(&t);
		if (i > 1)
			assert_int_equal(csync_tls_write(t.tls[CLIENT], "never sent", 10), 10);
		if (i > 2) {
			csync_tls_close(t.tls[CLIENT]);
			arrived(t.e.in[SERVER]);
		}
		csync_tls_free(t.tls[CLIENT]);
		t.tls[CLIENT] = NULL;
		assert_int_equal(waiting(t.e.in[SERVER]), 0);
		assert_int_equal(write(t.e.out[CLIENT], "x", 1), 1);
		assert_int_equal(waiting(t.e.in[SERVER]), 1);
		talk_free(&t);
	}
}

static const struct ct_case cases[] = {
	OURS(null_is_allowed),
	OURS(at_any_time),
};
CT_MAIN("test_tls_free", cases)
