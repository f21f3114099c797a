/* csync_engine_send: the length is announced, and exactly that is sent; what cannot be sent is said. */
#include "laws.h"

#include <fcntl.h>
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
	static const size_t lengths[] = { 0, 1, 2, 4095, 4096, 16384, 65536, 131072, 262143, 262144, 262145, 1 << 20, 3000001 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
			struct bytes b = bytes_random(lengths[i], i);
			struct scene s = scene_of(kind, NULL, 1);

			write_file("d/f", b);
			int fd = opened("d/f", O_RDONLY);
			assert_ok(s.engine, csync_engine_send(s.engine, fd));
			assert_bytes(unframed(scene_end(&s)), b);
			close(fd);
		}
}

static void the_position_does_not_matter_and_stays(void)
{
	static const size_t lengths[] = { 5000, 400000 };

	for (int i = 0; i < 4; i++) {
		struct bytes b = bytes_random(lengths[i / 2], 1);
		struct scene s = scene_of(i % 2 ? PIPES : UNIX_SOCKETS, NULL, 1);

		write_file("d/f", b);
		int fd = opened("d/f", O_RDWR);
		assert_int_equal(lseek(fd, 4321, SEEK_SET), 4321);
		assert_ok(s.engine, csync_engine_send(s.engine, fd));
		assert_int_equal(lseek(fd, 0, SEEK_CUR), 4321);
		assert_bytes(unframed(scene_end(&s)), b);
		close(fd);
	}
}

/* What cannot be sent is answered with ERROR, and the engine goes on. */
static void what_is_no_readable_file_is_answered_with_an_error(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct ends other = ends_make(UNIX_SOCKETS, 0);
	struct ends pipes = ends_make(PIPES, 0);

	write_file("d/f", bytes_text("hello"));
	const struct {
		int fd, err;
	} rows[] = {
		{ -1, EBADF },
		{ -2, EBADF },
		{ 150, EBADF },
		{ 1 << 30, EBADF },
		{ opened("d", O_RDONLY | O_DIRECTORY), EINVAL },
		{ opened("/dev/null", O_RDONLY), EINVAL },
		{ opened("/dev/zero", O_RDONLY), EINVAL },
		{ other.in[0], EINVAL },
		{ pipes.in[0], EINVAL },
		{ pipes.out[0], EINVAL },
		{ opened("d/f", O_WRONLY), EBADF },
		{ opened("d/f", O_PATH), EBADF },
	};
	int good = opened("d/f", O_RDONLY);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_failed(s.engine, csync_engine_send(s.engine, rows[i].fd), CSYNC_E_FILE, rows[i].err, strerror(rows[i].err),
			      "(descriptor)", " while ");
		struct bytes said = arrived(s.e.in[1]);
		assert_string_equal((char *)said.p, "ERROR\n");
		assert_ok(s.engine, csync_engine_send(s.engine, good));
		said = arrived(s.e.in[1]);
		assert_string_equal((char *)said.p, "octet-stream 5\nhello");
	}
	scene_end(&s);
}

static void (*at_progress)(void);

static int on_progress(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	if (at_progress)
		at_progress();
	at_progress = NULL;
	return 0;
}

static void shrink(void)
{
	assert_int_equal(truncate("d/f", 1000000), 0);
}

static void grow(void)
{
	append_file("d/f", bytes_random(100000, 9));
}

/* The first report comes with the first bytes; small buffers keep the rest waiting until then. */
static struct bytes sent_while(void (*what)(void), enum ends_kind kind, csync_status expected)
{
	struct csync_options o = options_none();
	o.progress = on_progress;
	struct scene s = { .e = ends_make(kind, 4096) };

	at_progress = what;
	write_file("d/f", bytes_random(3 << 20, 1));
	int fd = opened("d/f", O_RDONLY);
	s.engine = engine_on(&s.e, 0, &o);
	s.sink = sink_start(s.e.in[1]);
	csync_status status = csync_engine_send(s.engine, fd);
	if (expected == CSYNC_OK)
		assert_ok(s.engine, status);
	else {
		assert_failed(s.engine, status, expected, EIO, "in the middle", "(descriptor)");
		assert_failed(s.engine, csync_engine_send(s.engine, fd), CSYNC_E_STATE, ENOTCONN, "earlier call");
	}
	close(fd);
	return scene_end(&s);
}

static void a_file_that_becomes_shorter_ends_the_connection(void)
{
	for (int kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct bytes sent = sent_while(shrink, kind, CSYNC_E_FILE);
		/* some of what was there, and no ERROR in the middle of the payload */
		size_t head = strlen("octet-stream 3145728\n");
		assert_true(sent.n > head && sent.n <= head + 1000000);
		assert_bytes(bytes_part(sent, head, sent.n), bytes_part(bytes_random(3 << 20, 1), 0, sent.n - head));
	}
}

static void a_file_that_grows_is_sent_as_announced(void)
{
	for (int kind = UNIX_SOCKETS; kind <= PIPES; kind++)
		assert_bytes(unframed(sent_while(grow, kind, CSYNC_OK)), bytes_random(3 << 20, 1));
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_SEND),
	OURS_F(every_length, CT_LARGE),
	OURS(the_position_does_not_matter_and_stays),
	OURS(what_is_no_readable_file_is_answered_with_an_error),
	OURS(a_file_that_becomes_shorter_ends_the_connection),
	OURS(a_file_that_grows_is_sent_as_announced),
};
CT_MAIN("test_engine_send", cases)
