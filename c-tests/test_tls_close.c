/* csync_tls_close: nothing is lost, and nobody is waited for longer than a second. */
#include "sessions.h"

#include <pthread.h>

static void *close_too(void *arg)
{
	char b[100];

	while (csync_tls_read(arg, b, sizeof(b)) > 0)
		;
	csync_tls_close(arg);
	return NULL;
}

static void what_was_gathered_goes_first(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[10];

	assert_int_equal(csync_tls_write(t.tls[CLIENT], "bye", 3), 3);
	assert_int_equal(csync_tls_close(t.tls[CLIENT]), 0);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 3);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 0);
	assert_int_equal(csync_tls_close(t.tls[SERVER]), 0);
	/* once more: nothing to do */
	assert_int_equal(csync_tls_close(t.tls[SERVER]), 0);
	talk_free(&t);
}

/* The peer answers, and what it has sent meanwhile is thrown away. */
static void the_peers_answer_is_taken(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	pthread_t thread;

	assert_int_equal(csync_tls_write(t.tls[SERVER], "unheard", 7), 7);
	thread_start(&thread, close_too, t.tls[SERVER]);
	assert_int_equal(csync_tls_close(t.tls[CLIENT]), 0);
	pthread_join(thread, NULL);
	assert_int_equal(waiting(t.e.in[CLIENT]), 0);
	talk_free(&t);
}

/* The case's time limit is what tells of one that waits for ever; the clock says that it does wait. */
static void a_silent_peer_is_waited_for_and_not_for_ever(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	double began = seconds_now();

	assert_int_equal(csync_tls_close(t.tls[CLIENT]), 0);
	assert_true(seconds_now() - began >= 0.9);
	talk_free(&t);
}

static void a_peer_that_takes_nothing(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[1000] = { 0 };

	ends_non_blocking(&t.e, CLIENT);
	while (write(t.e.out[CLIENT], b, sizeof(b)) > 0 || write(t.e.out[CLIENT], b, 1) > 0)
		;
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "a", 1), 1);
	assert_tls_failed(t.tls[CLIENT], csync_tls_close(t.tls[CLIENT]), ETIMEDOUT, "1000 ms");
	talk_free(&t);
}

static void a_peer_that_is_gone(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);

	ends_close(&t.e, SERVER);
	assert_tls_failed(t.tls[CLIENT], csync_tls_close(t.tls[CLIENT]), EPIPE, "");
	assert_tls_failed(t.tls[CLIENT], csync_tls_close(t.tls[CLIENT]), ENOTCONN, "has ended before");
	talk_free(&t);
}

static void null_and_states(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	errno = 0;
	assert_int_equal(csync_tls_close(NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(csync_tls_close(t.tls[CLIENT]), 0);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(what_was_gathered_goes_first),
	OURS(the_peers_answer_is_taken),
	OURS(a_silent_peer_is_waited_for_and_not_for_ever),
	OURS(a_peer_that_takes_nothing),
	OURS(a_peer_that_is_gone),
	OURS(null_and_states),
};
CT_MAIN("test_tls_close", cases)
