/* csync_tls_flush: everything has left, in one record. */
#include "sessions.h"

static void everything_has_left(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);

	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "a", 1), 1);
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "b", 1), 1);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_int_equal(waiting(t.e.in[SERVER]), 2 + 22);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_int_equal(waiting(t.e.in[SERVER]), 2 + 22);
	assert_bytes(tls_bytes(t.tls[SERVER], 2), bytes_text("ab"));
	talk_free(&t);
}

static void a_peer_that_takes_nothing(void)
{
	csync_tls_options o = tls_options_none();
	o.silence_limit = 100;
	struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
	char b[1000] = { 0 };

	ends_non_blocking(&t.e, CLIENT);
	while (write(t.e.out[CLIENT], b, sizeof(b)) > 0 || write(t.e.out[CLIENT], b, 1) > 0)
		;
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "a", 1), 1);
	assert_tls_failed(t.tls[CLIENT], csync_tls_flush(t.tls[CLIENT]), ETIMEDOUT, "100 ms");
	talk_free(&t);
}

static void null_and_states(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	errno = 0;
	assert_int_equal(csync_tls_flush(NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_tls_failed(t.tls[CLIENT], csync_tls_flush(t.tls[CLIENT]), ENOTCONN, "no handshake");
	talk_handshake(&t);
	csync_tls_close(t.tls[CLIENT]);
	assert_tls_failed(t.tls[CLIENT], csync_tls_flush(t.tls[CLIENT]), ENOTCONN, "closed");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(everything_has_left),
	OURS(a_peer_that_takes_nothing),
	OURS(null_and_states),
};
CT_MAIN("test_tls_flush", cases)
