/* csync_tls_pending: what a poll on the descriptor does not show. */
#include "sessions.h"

#include <unistd.h>

static void *close_it(void *tls)
{
	assert_int_equal(csync_tls_close(tls), 0);
	return NULL;
}

static void what_poll_does_not_show(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[10];

	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(csync_tls_write(t.tls[CLIENT], "0123456789", 10), 10);
		assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	}
	/* it is in the descriptor, where poll shows it */
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 0);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 4), 4);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 6);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 6);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 6), 6);
	/* the second record, which has come with the first */
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 10);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 10), 10);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 0);
	talk_free(&t);
}

/* An error that it comes across is not lost: the next read tells it. */
static void an_error_is_kept(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[10];

	assert_int_equal(csync_tls_write(t.tls[CLIENT], "x", 1), 1);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_int_equal(write(t.e.out[CLIENT], "\x17\x03\x03\xff\xff", 5), 5);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 1), 1);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 1);
	assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, 1), EPROTO, "");
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 0);
	talk_free(&t);
}

/* It has come with the last bytes, and poll would not show it. */
static void the_end_is_there(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	pthread_t closing;
	char b[10];

	assert_int_equal(csync_tls_write(t.tls[CLIENT], "0123456789", 10), 10);
	thread_start(&closing, close_it, t.tls[CLIENT]);
	/* the bytes, and then their announced end */
	while (waiting(t.e.in[SERVER]) < 10 + 22 + 24)
		usleep(1000);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 10), 10);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 1);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 10), 0);
	assert_int_equal(csync_tls_pending(t.tls[SERVER]), 1);
	assert_int_equal(csync_tls_close(t.tls[SERVER]), 0);
	pthread_join(closing, NULL);
	talk_free(&t);
}

static void null_and_states(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	assert_int_equal(csync_tls_pending(NULL), 0);
	assert_int_equal(csync_tls_pending(t.tls[CLIENT]), 0);
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(what_poll_does_not_show),
	OURS(an_error_is_kept),
	OURS(the_end_is_there),
	OURS(null_and_states),
};
CT_MAIN("test_tls_pending", cases)
