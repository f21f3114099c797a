/*
 * Two processes that both send before they read, through buffers of 4 KiB. Up to the bound of what an engine takes in
 * while its output waits (16 MiB) both come to their end; beyond it the limit of silence ends both.
 */
#include "ends.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS, FUNCTIONS, FUNCTIONS_WITHOUT_WAIT, HOLDING_BACK };

static csync_engine *made(struct wire *w, const struct ends *e, int side, int how, const struct csync_options *o)
{
	*w = wire_on(e, side);
	w->waits_itself = how != FUNCTIONS_WITHOUT_WAIT;
	w->holds_back = how == HOLDING_BACK;
	return how == DESCRIPTORS ? engine_on(e, side, o) : engine_over(w, o);
}

/* One of the two: sends its file, then receives the other's. Its exit status is that of its first failure. */
static void one(const struct ends *e, int side, int how, const struct csync_options *o, struct bytes theirs)
{
	struct wire w;
	csync_engine *engine = made(&w, e, side, how, o);
	char out[] = "d/out0";
	out[5] += side;
	int in = open(side ? "d/f1" : "d/f0", O_RDONLY), to = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
	csync_status s = csync_engine_send(engine, in);

	if (s == CSYNC_OK)
		s = csync_engine_receive(engine, to, NULL);
	if (s == CSYNC_OK)
		assert_file(out, theirs);
	csync_engine_free(engine);
	wire_free(&w);
	_exit(s);
}

static void both(enum ends_kind kind, int how, size_t n, unsigned silence, csync_status expected)
{
	/* Less than a segment of loopback makes TCP wait for its timers at each. */
	struct ends e = ends_make(kind, kind == TCP_SOCKETS ? 131072 : 4096);
	struct csync_options o = options_none();
	/* what is never received needs no content */
	size_t content = expected == CSYNC_OK ? n : 1;
	struct bytes b[2] = { bytes_random(content, 1), bytes_random(content, 2) };
	pid_t pid[2];
	int status;

	o.silence_limit = silence;
	write_file("d/f0", b[0]);
	write_file("d/f1", b[1]);
	assert_int_equal(truncate("d/f0", n) | truncate("d/f1", n), 0);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0)
			one(&e, i, how, &o, b[!i]);
	}
	/* the ends stay open here: neither of the two sees that the other one is gone */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), expected);
	}
	ends_close(&e, 0);
	ends_close(&e, 1);
	bytes_free(b[0]);
	bytes_free(b[1]);
}

static void sockets_8_MiB(void) { both(UNIX_SOCKETS, DESCRIPTORS, 8 << 20, 10000, CSYNC_OK); }
static void pipes_8_MiB(void) { both(PIPES, DESCRIPTORS, 8 << 20, 10000, CSYNC_OK); }
static void tcp_8_MiB(void) { both(TCP_SOCKETS, DESCRIPTORS, 8 << 20, 10000, CSYNC_OK); }
static void functions_8_MiB(void) { both(UNIX_SOCKETS, FUNCTIONS, 8 << 20, 10000, CSYNC_OK); }
static void functions_over_pipes_8_MiB(void) { both(PIPES, FUNCTIONS, 8 << 20, 10000, CSYNC_OK); }
static void functions_without_wait(void) { both(UNIX_SOCKETS, FUNCTIONS_WITHOUT_WAIT, 1 << 20, 10000, CSYNC_OK); }
/* A transport that gathers everything and sends it in flush. */
static void a_flush_that_refuses_8_MiB(void) { both(UNIX_SOCKETS, HOLDING_BACK, 8 << 20, 10000, CSYNC_OK); }
static void sockets_64_MiB(void) { both(UNIX_SOCKETS, DESCRIPTORS, 64 << 20, 700, CSYNC_E_TIMEOUT); }
static void pipes_64_MiB(void) { both(PIPES, DESCRIPTORS, 64 << 20, 700, CSYNC_E_TIMEOUT); }
static void functions_64_MiB(void) { both(UNIX_SOCKETS, FUNCTIONS, 64 << 20, 700, CSYNC_E_TIMEOUT); }
static void a_flush_that_refuses_64_MiB(void) { both(UNIX_SOCKETS, HOLDING_BACK, 64 << 20, 700, CSYNC_E_TIMEOUT); }

/* While output waits, input arrives slowly: the peer is not silent, whatever the limit. */
static void a_slow_sender_is_not_silent(void)
{
	for (int how = DESCRIPTORS; how <= FUNCTIONS; how++) {
		struct ends e = ends_make(UNIX_SOCKETS, 4096);
		struct csync_options o = options_none();
		struct wire w;

		write_file("d/f", bytes_random(1 << 20, 1));
		int fd = open("d/f", O_RDONLY | O_CLOEXEC);
		o.silence_limit = 600;
		csync_engine *engine = made(&w, &e, 0, how, &o);
		struct call c = { .verb = CSYNC_SEND, .descriptor = fd };
		struct calls ours = { .engine = engine, .calls = &c, .count = 1 };
		calls_start(&ours);
		for (int i = 0; i < 30; i++) {
			assert_int_equal(write(e.out[1], "x", 1), 1);
			usleep(50000);
		}
		struct sink *s = sink_start(e.in[1]);
		calls_join(&ours);
		assert_ok(engine, c.status);
		csync_engine_free(engine);
		ends_close(&e, 0);
		assert_bytes(unframed(sink_join(s)), bytes_random(1 << 20, 1));
		ends_close(&e, 1);
		close(fd);
	}
}

/* The peer has said all that it says, and reads late: to wait for it costs no time of the processor's. */
static void an_ended_input_is_not_polled(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct ends e = ends_make(kind, 4096);
		struct csync_options o = options_none();
		struct rusage before, after;

		write_file("d/f", bytes_random(1 << 20, 1));
		assert_int_equal(truncate("d/f", 64 << 20), 0);
		int fd = open("d/f", O_RDONLY | O_CLOEXEC);
		o.silence_limit = 1500;
		csync_engine *engine = engine_on(&e, 0, &o);
		if (kind == PIPES) {
			close(e.out[1]);
			e.out[1] = -1;
		} else
			assert_int_equal(shutdown(e.out[1], SHUT_WR), 0);
		csync_engine_send(engine, fd); /* whatever the kernel's buffers take goes first */
		assert_int_equal(csync_engine_errno(engine), ETIMEDOUT);
		csync_engine_free(engine);

		engine = engine_on(&e, 0, &o);
		getrusage(RUSAGE_SELF, &before);
		assert_failed(engine, csync_engine_send(engine, fd), CSYNC_E_TIMEOUT, ETIMEDOUT, "sending");
		getrusage(RUSAGE_SELF, &after);
		double used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) + (after.ru_stime.tv_sec - before.ru_stime.tv_sec)
			      + (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6
			      + (after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
		assert_true(used < 0.3);
		csync_engine_free(engine);
		close(fd);
		ends_close(&e, 0);
		ends_close(&e, 1);
	}
}

static const struct ct_case cases[] = {
	OURS_F(sockets_8_MiB, CT_LARGE),
	OURS_F(pipes_8_MiB, CT_LARGE),
	OURS_F(tcp_8_MiB, CT_LARGE),
	OURS_F(functions_8_MiB, CT_LARGE),
	OURS_F(functions_over_pipes_8_MiB, CT_LARGE),
	OURS_F(functions_without_wait, CT_LARGE),
	OURS_F(a_flush_that_refuses_8_MiB, CT_LARGE),
	OURS_F(sockets_64_MiB, CT_LARGE),
	OURS_F(pipes_64_MiB, CT_LARGE),
	OURS_F(functions_64_MiB, CT_LARGE),
	OURS_F(a_flush_that_refuses_64_MiB, CT_LARGE),
	OURS(a_slow_sender_is_not_silent),
	OURS_F(an_ended_input_is_not_polled, CT_LARGE),
};
CT_MAIN("both_send", cases)
