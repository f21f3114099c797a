/* csync_engine_over_descriptors: which descriptors, which options, and that engines do not know of each other. */
#include "laws.h"
#include "peer.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOME ((csync_engine *)0x10)

#define refused(in, out, o) check_refused((in), (out), (o), __LINE__)
static void check_refused(int in, int out, const struct csync_options *o, int line)
{
	csync_engine *engine = SOME;

	if (csync_engine_over_descriptors(in, out, o, &engine) != CSYNC_E_ARGUMENT)
		fail_msg("line %d: taken", line);
	assert_null(engine);
}

static void taken(int in, int out, const struct csync_options *o)
{
	csync_engine *engine = NULL;

	assert_int_equal(csync_engine_over_descriptors(in, out, o, &engine), CSYNC_OK);
	assert_non_null(engine);
	assert_string_equal(csync_engine_error(engine), "");
	assert_int_equal(csync_engine_errno(engine), 0);
	csync_engine_free(engine);
}

static void null_arguments(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);

	assert_int_equal(csync_engine_over_descriptors(e.in[0], e.out[0], NULL, NULL), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_engine_over_descriptors(-1, -1, NULL, NULL), CSYNC_E_ARGUMENT);
	taken(e.in[0], e.out[0], NULL);
}

static void descriptors_of_every_kind(void)
{
	struct ends s = ends_make(UNIX_SOCKETS, 0), packets = ends_make(PACKET_SOCKETS, 0), p = ends_make(PIPES, 0),
		    t = ends_make(TCP_SOCKETS, 0);
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), packet_pipe[2], none[] = { -1, -2, INT_MIN, 150, INT_MAX };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		refused(none[i], s.out[0], NULL);
		refused(s.in[0], none[i], NULL);
		refused(none[i], none[i], NULL);
	}
	refused(packets.in[0], packets.in[0], NULL);
	refused(s.in[0], packets.in[0], NULL);
	refused(packets.in[0], s.in[0], NULL);
	refused(udp, udp, NULL);
	assert_int_equal(pipe2(packet_pipe, O_DIRECT | O_CLOEXEC), 0);
	/* the reading end does not show it */
	refused(s.in[0], packet_pipe[1], NULL);
	/* open, and the wrong way round */
	int by_path = open("d", O_PATH | O_CLOEXEC), written = open("d/w", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	refused(p.out[0], p.out[0], NULL);
	refused(p.in[0], p.in[0], NULL);
	refused(p.out[0], p.in[0], NULL);
	refused(by_path, s.out[0], NULL);
	refused(s.in[0], by_path, NULL);
	refused(written, s.out[0], NULL);
	taken(s.in[0], written, NULL);
	taken(s.in[0], s.out[0], NULL);
	taken(s.in[0], s.in[1], NULL);
	taken(t.in[0], t.out[0], NULL);
	taken(p.in[0], p.out[0], NULL);
	taken(p.in[0], s.out[0], NULL);
}

/* What is open and no connection shows at the first call. */
static void descriptors_that_do_not_work(void)
{
	struct ends p = ends_make(PIPES, 0);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int rows[][2] = {
		{ open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC), p.out[0] },
		{ open("/dev/null", O_RDWR | O_CLOEXEC), p.out[0] },
		{ listening, listening },
		{ eventfd(1, EFD_CLOEXEC), p.out[0] },
	};

	assert_int_equal(listen(listening, 1), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		csync_engine *engine = NULL;
		uint64_t length;
		assert_int_equal(csync_engine_over_descriptors(rows[i][0], rows[i][1], NULL, &engine), CSYNC_OK);
		csync_status status = csync_engine_receive(engine, 1, &length);
		int err = csync_engine_errno(engine);
		assert_true(err != 0);
		assert_failed(engine, status, CSYNC_E_CONNECTION, err, "connection", "receiving");
		csync_engine_free(engine);
	}
}

/* A recorded stream from a file, and an answer into one. */
static void files_are_streams(void)
{
	csync_engine *engine = NULL;
	struct bytes b = bytes_random(50000, 1);

	write_file("d/in", framed(bytes_part(b, 0, b.n)));
	write_file("d/f", b);
	int in = open("d/in", O_RDONLY | O_CLOEXEC), out = open("d/out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int to = open("d/to", O_RDWR | O_CREAT | O_CLOEXEC, 0600), from = open("d/f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(csync_engine_over_descriptors(in, out, NULL, &engine), CSYNC_OK);
	assert_ok(engine, csync_engine_receive(engine, to, NULL));
	assert_file("d/to", b);
	assert_ok(engine, csync_engine_send(engine, from));
	assert_file("d/out", framed(bytes_part(b, 0, b.n)));
	assert_failed(engine, csync_engine_receive(engine, to, NULL), CSYNC_E_CONNECTION, ECONNRESET, "closed by the peer");
	csync_engine_free(engine);
}

static int reports;

static int on_progress(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	reports++;
	return 0;
}

static void options_of_every_size(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	union {
		struct csync_options o;
		unsigned char bytes[sizeof(struct csync_options) + 64];
	} room;

	for (size_t size = 0; size < sizeof(room) + 1; size++) {
		/* what is behind the size must not be read: it is poison */
		memset(&room, 0x5a, sizeof(room));
		room.o = options_none();
		if (size < offsetof(struct csync_options, progress) + sizeof(room.o.progress))
			memset(room.bytes + (size > 8 ? size : 8), 0x5a, sizeof(room) - (size > 8 ? size : 8));
		room.o.size = size;
		if (size < sizeof(size_t)) {
			refused(e.in[0], e.out[0], &room.o);
			continue;
		}
		/* exactly that many bytes are readable */
		struct csync_options *exact = malloc(size);
		memcpy(exact, &room, size < sizeof(room) ? size : sizeof(room));
		taken(e.in[0], e.out[0], exact);
		free(exact);
	}
}

/* A member that lies behind the size is not used, one in front of it is. */
static void members_behind_the_size_are_zero(void)
{
	for (int used = 0; used < 2; used++) {
		struct csync_options o = options_none();
		o.progress = on_progress;
		o.size = used ? sizeof(o) : offsetof(struct csync_options, progress);
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		reports = 0;
		feed_line(s.e.out[1], "octet-stream 1\nx");
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		assert_ok(s.engine, csync_engine_receive(s.engine, fd, NULL));
		assert_int_equal(reports > 0, used);
		close(fd);
		scene_end(&s);
	}
}

static void keepalive_is_for_tcp(void)
{
	for (int on = 0; on < 2; on++) {
		struct ends t = ends_make(TCP_SOCKETS, 0), s = ends_make(UNIX_SOCKETS, 0), p = ends_make(PIPES, 0);
		struct csync_options o = options_none();
		int value = 77, idle = 0;
		socklen_t n = sizeof(value);

		o.keepalive = on;
		taken(t.in[0], t.out[0], &o);
		assert_int_equal(getsockopt(t.out[0], SOL_SOCKET, SO_KEEPALIVE, &value, &n), 0);
		assert_int_equal(value, on);
		assert_int_equal(getsockopt(t.out[0], IPPROTO_TCP, TCP_KEEPIDLE, &idle, &n), 0);
		assert_int_equal(idle == 60, on);
		taken(s.in[0], s.out[0], &o);
		taken(p.in[0], p.out[0], &o);
	}
}

static void *a_transfer(void *arg)
{
	int number = (int)(intptr_t)arg;
	char from[] = "d/f0", to[] = "d/t0";
	struct ends e = ends_make(number % 2 ? PIPES : UNIX_SOCKETS, 4096);
	csync_engine *engine[2] = { engine_on(&e, 0, NULL), engine_on(&e, 1, NULL) };

	from[3] += number;
	to[3] += number;
	for (int i = 0; i < 10; i++) {
		struct call push = { .verb = CSYNC_PUSH, .path = from }, pull = { .verb = CSYNC_PULL, .path = to };
		struct calls theirs = { .engine = engine[1], .calls = &push, .count = 1 };
		calls_start(&theirs);
		call_now(engine[0], &pull);
		calls_join(&theirs);
		if (pull.status || push.status)
			return NULL;
		if (i % 3 == 1)
			unlink(to);
	}
	for (int i = 0; i < 2; i++) {
		csync_engine_free(engine[i]);
		ends_close(&e, i);
	}
	return arg ? arg : (void *)1;
}

static void engines_do_not_know_of_each_other(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++) {
		char name[] = "d/f0";
		name[3] += i;
		write_file(name, bytes_random(200000 + i, i));
	}
	for (int i = 0; i < 4; i++)
		thread_start(&t[i], a_transfer, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++) {
		void *done = NULL;
		char name[] = "d/t0";
		pthread_join(t[i], &done);
		assert_non_null(done);
		name[3] += i;
		assert_file(name, bytes_random(200000 + i, i));
	}
}

static struct {
	int fd, flags, changed, over;
} watched;

static void *watch_flags(void *arg)
{
	while (!__atomic_load_n(&watched.over, __ATOMIC_RELAXED))
		watched.changed |= fcntl(watched.fd, F_GETFL) ^ watched.flags;
	return arg;
}

/* A socket may be another process's as well, which would find it changed. */
static void flags_of_a_socket_are_left_alone(void)
{
	for (int i = 0; i < 4; i++) {
		struct scene s = scene_of(i / 2 ? TCP_SOCKETS : UNIX_SOCKETS, NULL, 1);
		pthread_t t;

		if (i % 2)
			ends_non_blocking(&s.e, 0);
		write_file("d/f", bytes_random(24 << 20, 1));
		int fd = open("d/f", O_RDONLY | O_CLOEXEC);
		watched.fd = s.e.out[0];
		watched.flags = fcntl(watched.fd, F_GETFL);
		watched.over = 0;
		thread_start(&t, watch_flags, NULL);
		assert_ok(s.engine, csync_engine_send(s.engine, fd));
		__atomic_store_n(&watched.over, 1, __ATOMIC_RELAXED);
		pthread_join(t, NULL);
		assert_int_equal(watched.changed, 0);
		assert_bytes(unframed(scene_end(&s)), bytes_random(24 << 20, 1));
		close(fd);
	}
}

/* One is cancelled; the other one does not notice. */
static void one_is_cancelled(void)
{
	struct scene a = scene_of(UNIX_SOCKETS, NULL, 0), b = scene_of(UNIX_SOCKETS, NULL, 0);

	csync_engine_cancel(a.engine);
	write_file("d/f", bytes_text("content"));
	assert_ok(b.engine, csync_engine_signature(b.engine, "d/f"));
	assert_failed(a.engine, csync_engine_signature(a.engine, "d/f"), CSYNC_E_CANCELLED, ECANCELED, "d/f");
	assert_string_equal(csync_engine_error(b.engine), "");
	assert_ok(b.engine, csync_engine_signature(b.engine, "d/f"));
	scene_end(&a);
	scene_end(&b);
}

static const struct ct_case cases[] = {
	OURS(null_arguments),
	OURS(descriptors_of_every_kind),
	OURS(descriptors_that_do_not_work),
	OURS(files_are_streams),
	OURS(options_of_every_size),
	OURS(members_behind_the_size_are_zero),
	OURS(keepalive_is_for_tcp),
	OURS(engines_do_not_know_of_each_other),
	OURS_F(flags_of_a_socket_are_left_alone, CT_LARGE),
	OURS(one_is_cancelled),
};
CT_MAIN("test_engine_over_descriptors", cases)
