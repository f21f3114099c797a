/* csync_tls_write: gathers, sends in full records, never waits for a peer that waits for us. */
#include "sessions.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static void small_pieces_are_gathered(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	int overhead = 5 + 1 + 16;

	for (int i = 0; i < 100; i++)
		assert_int_equal(csync_tls_write(t.tls[CLIENT], "0123456789", 10), 10);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	/* one record */
	assert_int_equal(waiting(t.e.in[SERVER]), 1000 + overhead);
	assert_int_equal(tls_bytes(t.tls[SERVER], 1000).n, 1000);
	talk_free(&t);
}

/* Pieces of every size: all bytes in order, and records that are full but for the last. */
static void pieces_of_every_size(void)
{
	static const size_t sizes[] = { 1, 511, 1000, 4096, 16383, 16384, 16385, 65535, 65536, 65537, 131072, 300000 };
	enum { TOTAL = 1200000, RECORD = 16384, OVERHEAD = 22 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
		struct bytes b = bytes_random(TOTAL, i), encrypted;
		struct sink *sink;
		size_t total = sizes[i] == 1 ? 70000 : TOTAL, records = 0, small = 0;

		sink = sink_start(t.e.in[SERVER]);
		for (size_t at = 0; at < total; at += sizes[i]) {
			size_t n = sizes[i] < total - at ? sizes[i] : total - at;
			assert_int_equal(csync_tls_write(t.tls[CLIENT], b.p + at, n), n);
		}
		assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
		ends_close(&t.e, CLIENT);
		encrypted = sink_join(sink);
		for (size_t at = 0; at < encrypted.n; records++) {
			size_t n = encrypted.p[at + 3] << 8 | encrypted.p[at + 4];
			assert_true(n <= RECORD + OVERHEAD - 5);
			small += n < RECORD + OVERHEAD - 5;
			at += 5 + n;
		}
		assert_int_equal(encrypted.n, total + records * OVERHEAD);
		/* whole records go from where they are, so that one can be short where pieces are larger */
		if (sizes[i] < RECORD || sizes[i] % RECORD == 0)
			assert_true(small <= 1);
		assert_true(records <= total / RECORD * 5 / 4 + 2);
		talk_free(&t);
		bytes_free(b);
	}
}

static void content_arrives(void)
{
	static const size_t sizes[] = { 7, 1000, 16384, 70001, 262144 };
	enum { TOTAL = 3000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct talk t = talk_of(i % 2 ? PIPES : UNIX_SOCKETS, "p256", NULL);
		struct bytes b = bytes_random(TOTAL, i), got;
		size_t total = sizes[i] == 7 ? 200000 : TOTAL;
		pid_t pid = fork();

		if (pid == 0) {
			for (size_t at = 0; at < total; at += sizes[i])
				csync_tls_write(t.tls[CLIENT], b.p + at, sizes[i] < total - at ? sizes[i] : total - at);
			_exit(csync_tls_flush(t.tls[CLIENT]) != 0);
		}
		got = tls_bytes(t.tls[SERVER], total);
		assert_bytes(got, bytes_part(b, 0, total));
		talk_free(&t);
		bytes_free(b);
	}
}

struct both {
	csync_tls *tls;
	struct bytes mine, theirs;
	int good;
};

static void *write_then_read(void *arg)
{
	struct both *b = arg;

	b->good = csync_tls_write(b->tls, b->mine.p, b->mine.n) == (ssize_t)b->mine.n;
	struct bytes got = tls_bytes(b->tls, b->theirs.n);
	b->good &= got.n == b->theirs.n && memcmp(got.p, b->theirs.p, got.n) == 0;
	return NULL;
}

/* Both write before they read, more than all buffers hold. */
static void both_write_first(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct talk t = talk_of(kind, "p256", NULL);
		struct both b[2] = { { t.tls[0], bytes_random(8 << 20, 1), { NULL, 0 }, 0 },
				     { t.tls[1], bytes_random(8 << 20, 2), { NULL, 0 }, 0 } };
		pthread_t thread;

		b[0].theirs = b[1].mine;
		b[1].theirs = b[0].mine;
		thread_start(&thread, write_then_read, &b[0]);
		write_then_read(&b[1]);
		pthread_join(thread, NULL);
		assert_true(b[0].good && b[1].good);
		talk_free(&t);
	}
}

static void a_peer_that_is_gone(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct talk t = talk_of(kind, "p256", NULL);
		struct bytes b = bytes_fill(1 << 20, 'x');
		int n = 0;

		ends_close(&t.e, SERVER);
		/* SIGPIPE would end the case */
		while (csync_tls_write(t.tls[CLIENT], b.p, b.n) == (ssize_t)b.n && n < 100)
			n++;
		assert_true(errno == EPIPE || errno == ECONNRESET);
		assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], "x", 1), ENOTCONN, "has ended before");
		talk_free(&t);
	}
}

static void a_peer_that_takes_nothing(void)
{
	csync_tls_options o = tls_options_none();
	o.silence_limit = 100;
	struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
	struct bytes b = bytes_fill(16 << 20, 'x');

	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], b.p, b.n), ETIMEDOUT, "100 ms");
	talk_free(&t);
}

static void null_and_states(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	errno = 0;
	assert_int_equal(csync_tls_write(NULL, "x", 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], "x", 1), ENOTCONN, "no handshake");
	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], "", 0), ENOTCONN, "no handshake");
	talk_handshake(&t);
	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], NULL, 1), EINVAL, "");
	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], "x", SIZE_MAX), EINVAL, "");
	assert_int_equal(csync_tls_write(t.tls[CLIENT], NULL, 0), 0);
	assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
	assert_int_equal(waiting(t.e.in[SERVER]), 0);
	csync_tls_close(t.tls[CLIENT]);
	assert_tls_failed(t.tls[CLIENT], csync_tls_write(t.tls[CLIENT], "x", 1), ENOTCONN, "closed");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(small_pieces_are_gathered),
	OURS(pieces_of_every_size),
	OURS(content_arrives),
	OURS_F(both_write_first, CT_LARGE),
	OURS(a_peer_that_is_gone),
	OURS(a_peer_that_takes_nothing),
	OURS(null_and_states),
};
CT_MAIN("test_tls_write", cases)
