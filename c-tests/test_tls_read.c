/* csync_tls_read: what there is, the end, and how an end without a word is told from it. */
#include "sessions.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void say(csync_tls *tls, const char *text)
{
	assert_int_equal(csync_tls_write(tls, text, strlen(text)), strlen(text));
	assert_int_equal(csync_tls_flush(tls), 0);
}

static void parts_of_what_is_there(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[100];

	say(t.tls[CLIENT], "first");
	say(t.tls[CLIENT], "second");
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 2), 2);
	assert_memory_equal(b, "fi", 2);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 3);
	assert_memory_equal(b, "rst", 3);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 6);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, 0), 0);
	assert_int_equal(csync_tls_read(t.tls[SERVER], NULL, 0), 0);
	talk_free(&t);
}

/* Everything that was said before an end comes before it. */
static void a_clean_end(void)
{
	for (unsigned version = 12; version <= 13; version++) {
		csync_tls_options o = tls_options_none();
		o.version = version;
		struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
		char b[100];

		say(t.tls[CLIENT], "last words");
		csync_tls_close(t.tls[CLIENT]);
		ends_close(&t.e, CLIENT);
		assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 10);
		for (int i = 0; i < 3; i++)
			assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 0);
		assert_string_equal(csync_tls_error(t.tls[SERVER]), "");
		talk_free(&t);
	}
}

static void an_end_without_a_word(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct talk t = talk_of(kind, "p256", NULL);
		char b[100];

		say(t.tls[CLIENT], "last words");
		ends_close(&t.e, CLIENT);
		assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 10);
		for (int i = 0; i < 3; i++)
			assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), ECONNABORTED, "has ended");
		talk_free(&t);
	}
}

/* In the middle of a record. */
static void an_end_in_a_record(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[100];

	assert_int_equal(write(t.e.out[CLIENT], "\x17\x03\x03\x01\x00some", 9), 9);
	ends_close(&t.e, CLIENT);
	assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), ECONNABORTED, "has ended");
	talk_free(&t);
}

static void records_that_are_wrong(void)
{
	static const struct {
		struct bytes record;
		const char *text;
	} rows[] = {
		{ { (unsigned char *)"\x17\x03\x03\xff\xff", 5 }, "too large" },
		{ { (unsigned char *)"\x17\x03\x03\x48\x01", 5 }, "too large" },
		{ { (unsigned char *)"\x17\x03\x03\x00\x14" "01234567890123456789", 25 }, "decrypted" },
		{ { (unsigned char *)"OK (cmd_finished).\n", 19 }, "no TLS" },
	};

	for (unsigned version = 12; version <= 13; version++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			csync_tls_options o = tls_options_none();
			o.version = version;
			struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
			char b[100];

			assert_int_equal(write(t.e.out[CLIENT], rows[i].record.p, rows[i].record.n), rows[i].record.n);
			assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), EPROTO, rows[i].text);
			assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), ENOTCONN, "has ended before");
			/* the peer is told */
			assert_tls_failed(t.tls[CLIENT], csync_tls_read(t.tls[CLIENT], b, sizeof(b)), EPROTO, "alert");
			talk_free(&t);
		}
}

/* One bit of what is under way. */
static void a_damaged_record(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	struct bytes record;
	char b[100];

	say(t.tls[CLIENT], "precious");
	record = arrived(t.e.in[SERVER]);
	record.p[record.n / 2] ^= 1;
	assert_int_equal(write(t.e.out[CLIENT], record.p, record.n), record.n);
	assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), EPROTO, "decrypted");
	talk_free(&t);
}

static void what_was_written_goes_first(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	char b[100];

	/* also where the read need not wait */
	say(t.tls[SERVER], "answer");
	assert_int_equal(csync_tls_write(t.tls[CLIENT], "question", 8), 8);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	assert_int_equal(csync_tls_read(t.tls[CLIENT], b, sizeof(b)), 6);
	assert_true(waiting(t.e.in[SERVER]) > 8);
	assert_bytes(tls_bytes(t.tls[SERVER], 8), bytes_text("question"));
	talk_free(&t);
}

/* Its last words are there, although ours cannot reach it any more. */
static void a_peer_that_answers_and_goes(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct talk t = talk_of(kind, "p256", NULL);
		char b[100];

		say(t.tls[SERVER], "answer");
		ends_close(&t.e, SERVER);
		assert_int_equal(csync_tls_write(t.tls[CLIENT], "BYE\n", 4), 4);
		assert_int_equal(csync_tls_read(t.tls[CLIENT], b, sizeof(b)), 6);
		assert_tls_failed(t.tls[CLIENT], csync_tls_read(t.tls[CLIENT], b, sizeof(b)), ECONNABORTED, "has ended");
		talk_free(&t);
	}
}

static void silence(void)
{
	csync_tls_options o = tls_options_none();
	o.silence_limit = 100;
	struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
	char b[100];

	assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), ETIMEDOUT, "100 ms");
	assert_tls_failed(t.tls[SERVER], csync_tls_read(t.tls[SERVER], b, sizeof(b)), ENOTCONN, "");
	talk_free(&t);
}

static volatile sig_atomic_t rung;

static void ring_bell(int s)
{
	(void)s;
	rung++;
}

static void *speak_late(void *arg)
{
	while (rung < 20)
		usleep(1000);
	csync_tls_write(arg, "x", 1);
	csync_tls_flush(arg);
	return NULL;
}

static void interruptions(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	struct sigaction bell = { .sa_handler = ring_bell };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t thread;
	char b[10];

	sigaction(SIGALRM, &bell, NULL);
	thread_start(&thread, speak_late, t.tls[CLIENT]);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(csync_tls_read(t.tls[SERVER], b, sizeof(b)), 1);
	setitimer(ITIMER_REAL, &never, NULL);
	pthread_join(thread, NULL);
	assert_true(rung >= 20);
	talk_free(&t);
}

static void null_and_states(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);
	char b[10];

	errno = 0;
	assert_int_equal(csync_tls_read(NULL, b, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_tls_failed(t.tls[CLIENT], csync_tls_read(t.tls[CLIENT], b, 1), ENOTCONN, "no handshake");
	talk_handshake(&t);
	assert_tls_failed(t.tls[CLIENT], csync_tls_read(t.tls[CLIENT], NULL, 1), EINVAL, "");
	csync_tls_close(t.tls[CLIENT]);
	assert_tls_failed(t.tls[CLIENT], csync_tls_read(t.tls[CLIENT], b, 1), ENOTCONN, "closed");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(parts_of_what_is_there),
	OURS(a_clean_end),
	OURS(an_end_without_a_word),
	OURS(an_end_in_a_record),
	OURS(records_that_are_wrong),
	OURS(a_damaged_record),
	OURS(what_was_written_goes_first),
	OURS(a_peer_that_answers_and_goes),
	OURS(silence),
	OURS(interruptions),
	OURS(null_and_states),
};
CT_MAIN("test_tls_read", cases)
