/* csync_engine_receive: all of a payload is read, whatever becomes of it. */
#include "laws.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void every_length(void)
{
	static const size_t lengths[] = { 0, 1, 2, 4096, 16384, 65535, 65536, 65537, 1000001 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
		struct calls ours = { .engine = s.engine, .calls = &(struct call){ .verb = CSYNC_RECEIVE }, .count = 1 };
		struct bytes b = bytes_random(lengths[i], i);

		ours.calls->descriptor = opened("d/out", O_WRONLY | O_CREAT | O_TRUNC);
		calls_start(&ours);
		feed(s.e.out[1], framed(bytes_part(b, 0, b.n)));
		calls_join(&ours);
		assert_ok(s.engine, ours.calls->status);
		assert_int_equal(ours.calls->length, b.n);
		assert_file("d/out", b);
		close(ours.calls->descriptor);
		scene_end(&s);
	}
}

static void at_the_position_and_without_a_length(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/out", bytes_text("0123456789"));
	int fd = opened("d/out", O_RDWR);
	lseek(fd, 3, SEEK_SET);
	feed_line(s.e.out[1], "octet-stream 4\nabcd");
	assert_ok(s.engine, csync_engine_receive(s.engine, fd, NULL));
	assert_file("d/out", bytes_text("012abcd789"));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
	feed_line(s.e.out[1], "octet-stream 0\n");
	assert_ok(s.engine, csync_engine_receive(s.engine, fd, NULL));
	assert_file("d/out", bytes_text("012abcd789"));
	close(fd);
	scene_end(&s);
}

/* After each the next payload is found, and the length is left alone. */
static void what_the_peer_says_instead(void)
{
	static const struct {
		const char *line;
		csync_status status;
		int err;
		const char *text;
	} rows[] = {
		{ "ERROR\n", CSYNC_E_PEER, EIO, "peer reports an error" },
		{ "octet-stream -1\n", CSYNC_E_PEER, EIO, "peer reports an error" },
		{ "\n", CSYNC_E_FORMAT, EIO, "the peer sent" },
		{ "No such file or directory\n", CSYNC_E_FORMAT, EIO, "No such file or directory" },
		{ "octet-stream\n", CSYNC_E_FORMAT, EIO, "octet-stream" },
		{ "octet-stream \n", CSYNC_E_FORMAT, EIO, "octet-stream" },
		{ "octet-stream -2\n", CSYNC_E_FORMAT, EIO, "octet-stream -2" },
		{ "octet-stream 9223372036854775808\n", CSYNC_E_FORMAT, EIO, "9223372036854775808" },
		{ "octet-stream 1x\n", CSYNC_E_FORMAT, EIO, "1x" },
	};
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	int fd = opened("d/out", O_RDWR | O_CREAT);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t length = 77;
		feed_line(s.e.out[1], rows[i].line);
		assert_failed(s.engine, csync_engine_receive(s.engine, fd, &length), rows[i].status, rows[i].err, rows[i].text,
			      "(descriptor)");
		assert_int_equal(length, 77);
		feed_line(s.e.out[1], "octet-stream 2\nok");
		assert_ok(s.engine, csync_engine_receive(s.engine, fd, &length));
		assert_int_equal(length, 2);
	}
	close(fd);
	scene_end(&s);
}

static void what_cannot_be_written_to(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct ends gone = ends_make(PIPES, 0);

	write_file("d/f", bytes_text("old"));
	limit_file_size(3000);
	close(gone.in[1]);
	const struct {
		int fd, err;
	} rows[] = {
		{ -1, EBADF },
		{ -100, EBADF },
		{ 150, EBADF },
		{ opened("d/f", O_RDONLY), EBADF },
		{ opened("d", O_RDONLY | O_DIRECTORY), EBADF },
		{ opened("/dev/full", O_WRONLY), ENOSPC },
		{ opened("d/limited", O_RDWR | O_CREAT), EFBIG },
		{ gone.out[0], EPIPE },
	};
	int good = opened("d/good", O_RDWR | O_CREAT);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t length = 77;
		feed(s.e.out[1], framed(bytes_random(5000, i)));
		assert_failed(s.engine, csync_engine_receive(s.engine, rows[i].fd, &length), CSYNC_E_FILE, rows[i].err,
			      strerror(rows[i].err), "writing received data", "(descriptor)");
		assert_int_equal(length, 77);
		feed_line(s.e.out[1], "octet-stream 2\nok");
		assert_ok(s.engine, csync_engine_receive(s.engine, good, &length));
	}
	assert_file("d/f", bytes_text("old"));
	scene_end(&s);
}

struct late {
	int fd;
	size_t n;
};

static void *take_late(void *arg)
{
	struct late *l = arg;
	unsigned char part[4096];
	ssize_t n;

	usleep(200000);
	while ((n = read(l->fd, part, sizeof(part))) > 0)
		l->n += n;
	return NULL;
}

/* A pipe that is full for now, in either mode. */
static void a_descriptor_that_takes_nothing_now_is_waited_for(void)
{
	for (int non_blocking = 0; non_blocking < 2; non_blocking++) {
		struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
		struct ends to = ends_make(PIPES, 4096);
		struct late late = { to.in[1], 0 };
		pthread_t t;

		if (non_blocking)
			ends_non_blocking(&to, 0);
		feed(s.e.out[1], framed(bytes_random(60000, 1)));
		thread_start(&t, take_late, &late);
		assert_ok(s.engine, csync_engine_receive(s.engine, to.out[0], NULL));
		ends_close(&to, 0);
		pthread_join(t, NULL);
		assert_int_equal(late.n, 60000);
		ends_close(&to, 1);
		scene_end(&s);
	}
}

/* What takes a little and then nothing: a socket or a pipe, blocking or not. */
enum { FULL_KINDS = 4 };
static int full_descriptor(int kind, int *other)
{
	struct ends e = ends_make(kind / 2 ? PIPES : UNIX_SOCKETS, 4096);

	if (kind % 2)
		ends_non_blocking(&e, 0);
	*other = e.in[1];
	return e.out[0];
}

static void cancelled_while_the_descriptor_takes_nothing(void)
{
	for (int kind = 0; kind < FULL_KINDS; kind++) {
		struct csync_options o = options_none();
		struct call c = { .verb = CSYNC_RECEIVE };
		pthread_t t;
		int other;

		o.silence_limit = UINT_MAX;
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		c.descriptor = full_descriptor(kind, &other);
		feed(s.e.out[1], framed(bytes_random(100000, 1)));
		thread_start(&t, cancel_soon, s.engine);
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED,
			      "receive cancelled while writing received data: (descriptor)");
		assert_true(c.seconds > 0.15 && c.seconds < 5);
		pthread_join(t, NULL);
		assert_failed(s.engine, csync_engine_receive(s.engine, 1, NULL), CSYNC_E_STATE, ENOTCONN, "earlier call");
		close(c.descriptor);
		close(other);
		scene_end(&s);
	}
}

static unsigned reports;

static int say_no_later(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	return ++reports == 4;
}

static void progress_cancels_while_the_descriptor_takes_nothing(void)
{
	for (int kind = 0; kind < FULL_KINDS; kind++) {
		struct csync_options o = options_none();
		struct call c = { .verb = CSYNC_RECEIVE };
		int other;

		o.silence_limit = UINT_MAX;
		o.progress = say_no_later;
		reports = 0;
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		c.descriptor = full_descriptor(kind, &other);
		feed(s.e.out[1], framed(bytes_random(100000, 1)));
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED,
			      "receive cancelled while writing received data: (descriptor)");
		/* ten a second at most: the first comes with the first bytes, and there is one at the end */
		assert_int_equal(reports, 5);
		assert_true(c.seconds > 0.28);
		close(c.descriptor);
		close(other);
		scene_end(&s);
	}
}

/* The same while the peer is silent. */
static void progress_cancels_while_nothing_comes(void)
{
	struct csync_options o = options_none();
	struct call c = { .verb = CSYNC_RECEIVE, .descriptor = 1 };

	o.silence_limit = UINT_MAX;
	o.progress = say_no_later;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "receive cancelled while receiving: (descriptor)");
	assert_int_equal(reports, 5);
	scene_end(&s);
}

/* The peer is well, and so is the connection. */
static void a_descriptor_that_takes_nothing_is_given_up(void)
{
	for (int kind = 0; kind < FULL_KINDS; kind++) {
		struct csync_options o = options_none();
		struct call c = { .verb = CSYNC_RECEIVE, .length = 77 };
		int other, good = opened("d/good", O_RDWR | O_CREAT | O_TRUNC);

		o.silence_limit = 300;
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		c.descriptor = full_descriptor(kind, &other);
		feed(s.e.out[1], framed(bytes_random(100000, 1)));
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_FILE, ETIMEDOUT, "timed out while writing received data: (descriptor)");
		assert_true(c.seconds > 0.29 && c.seconds < 5);
		assert_int_equal(c.length, 77);
		feed_line(s.e.out[1], "octet-stream 2\nok");
		assert_ok(s.engine, csync_engine_receive(s.engine, good, NULL));
		assert_file("d/good", bytes_text("ok"));
		close(good);
		close(c.descriptor);
		close(other);
		scene_end(&s);
	}
}

struct late_part {
	int fd;
	struct bytes b;
};

static void *feed_late(void *arg)
{
	struct late_part *l = arg;

	usleep(1400000);
	feed(l->fd, l->b);
	return NULL;
}

static void *drain_late(void *arg)
{
	struct late *l = arg;
	unsigned char part[4096];
	ssize_t n;

	usleep(800000);
	while (l->n < 66000 && (n = read(l->fd, part, sizeof(part))) > 0)
		l->n += n;
	return NULL;
}

/* The limit is 1 second: the descriptor takes nothing for 0.8 of it, and then nothing comes for 0.6. */
static void a_wait_for_the_descriptor_is_no_silence_of_the_peer(void)
{
	struct csync_options o = options_none();
	struct ends to = ends_make(PIPES, 4096);
	struct late late = { to.in[1], 0 };
	pthread_t reader, feeder;

	o.silence_limit = 1000;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	/* more than what is received at once */
	struct bytes b = framed(bytes_random(66000, 1));
	struct late_part rest = { s.e.out[1], bytes_part(b, b.n - 400, 400) };
	feed(s.e.out[1], bytes_part(b, 0, b.n - 400));
	thread_start(&reader, drain_late, &late);
	thread_start(&feeder, feed_late, &rest);
	assert_ok(s.engine, csync_engine_receive(s.engine, to.out[0], NULL));
	pthread_join(reader, NULL);
	pthread_join(feeder, NULL);
	assert_int_equal(late.n, 66000);
	ends_close(&to, 0);
	ends_close(&to, 1);
	scene_end(&s);
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_RECEIVE),
	OURS_F(every_length, CT_LARGE),
	OURS(at_the_position_and_without_a_length),
	OURS(what_the_peer_says_instead),
	OURS(what_cannot_be_written_to),
	OURS(a_descriptor_that_takes_nothing_now_is_waited_for),
	OURS(cancelled_while_the_descriptor_takes_nothing),
	OURS(progress_cancels_while_the_descriptor_takes_nothing),
	OURS(progress_cancels_while_nothing_comes),
	OURS(a_descriptor_that_takes_nothing_is_given_up),
	OURS(a_wait_for_the_descriptor_is_no_silence_of_the_peer),
};
CT_MAIN("test_engine_receive", cases)
