/*
 * conn_write that takes only a part, nothing, or is interrupted: whoever sends goes on where it stopped.
 * Each case compares what the peer gets with what it gets from a connection that takes everything.
 */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE (ct_valgrind() ? 60000 : 200000)

static struct bytes content(void)
{
	return bytes_random(SIZE, 1);
}

static void do_send(void)
{
	struct bytes b = content();
	FILE *f = file_of(b, "r+");
	fseek(f, 0, SEEK_END);
	csync_send_file(f);
	fclose(f);
	bytes_free(b);
}

static void do_sig(void)
{
	csync_rs_sig("d/f");
}

static void do_delta(void)
{
	assert_int_equal(csync_rs_delta("d/f"), 0);
}

static void do_delta_with_basis(void)
{
	assert_int_equal(csync_rs_delta("d/g"), 0);
}

static void do_error_line(void)
{
	assert_int_equal(csync_rs_delta("d/none"), -1);
}

static void (*const verbs[])(void) = { do_send, do_sig, do_delta, do_delta_with_basis, do_error_line };
#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void prepare(size_t verb)
{
	host_reset();
	if (verbs[verb] == do_delta || verbs[verb] == do_error_line)
		feed_frame_of(peer_no_signature());
	if (verbs[verb] == do_delta_with_basis) {
		struct bytes b = content();
		feed_frame_of(peer_signature(b));
		bytes_free(b);
	}
}

/* Every verb, with this behaviour of conn_write, against the undisturbed run. */
static void same_bytes_with(const struct host_step *steps, size_t n)
{
	struct bytes b = content();
	write_file("d/f", b);
	struct bytes g = bytes_join(bytes_random(50000, 2), bytes_join(bytes_part(b, SIZE / 4, SIZE / 2), bytes_random(70000, 3)));
	write_file("d/g", g);
	bytes_free(g);
	bytes_free(b);
	for (size_t v = 0; v < N_VERBS; v++) {
#ifdef CT_ORIGINAL
		if (verbs[v] == do_error_line)
			continue; /* another fault, s2 */
#endif
		prepare(v);
		verbs[v]();
		struct bytes want = take_output();
		assert_true(want.n > 5);
		prepare(v);
		for (size_t i = 0; i < n; i++)
			host_on_write(steps[i]);
		verbs[v]();
		struct bytes got = take_output();
		assert_bytes(got, want);
		assert_int_equal(host.bad_retries, 0);
		bytes_free(got);
		bytes_free(want);
	}
}

static void undisturbed(void)
{
	same_bytes_with(NULL, 0);
}

static void with_the_step(void)
{
	same_bytes_with(ct_arg, 1);
}

static void c2_sizes_that_vary(void)
{
	const struct host_step steps[] = {
		{ .from = 1, .every = 3, .what = HOST_SHORT, .value = 5 },
		{ .from = 2, .every = 5, .what = HOST_GIVE, .value = TLS_AGAIN, .err = 0 },
		{ .from = 3, .every = 7, .what = HOST_GIVE, .value = -1, .err = EINTR },
		{ .from = 4, .every = 2, .what = HOST_SHORT, .value = 1000 },
	};
	same_bytes_with(steps, 4);
}

#define EVERY(k, w, v, e) (&(const struct host_step){ .from = 1, .every = (k), .what = (w), .value = (v), .err = (e) })

/* A connection that takes nothing any more and says so for ever: an end, in bounded time. */
static void closed_first(const char *text)
{
	(void)text;
	if (host.closed)
		_exit(0);
}

static void failing_for_ever(int give, int err)
{
	struct bytes b = content();
	write_file("d/f", b);
	for (unsigned from = 1; from < 4; from++) {
		host_reset();
		feed_frame_of(peer_no_signature());
		host_on_write((struct host_step){ .from = from, .every = 1, .what = HOST_GIVE, .value = give, .err = err });
		errno = 0;
		assert_int_equal(csync_rs_delta("d/f"), -1);
		assert_int_not_equal(errno, 0);
		if (err)
			assert_int_equal(errno, err);
	}
	host_reset();
	host.on_fatal = closed_first;
	host_on_write((struct host_step){ .from = 2, .every = 1, .what = HOST_GIVE, .value = give, .err = err });
	do_send();
	bytes_free(b);
}

static void c1_an_io_error_is_minus_one(void)
{
	failing_for_ever(-1, EIO);
}

static void c1_a_broken_pipe_is_minus_one(void)
{
	failing_for_ever(-1, EPIPE);
}

static void c1_another_tls_error_is_minus_one(void)
{
	failing_for_ever(-10, 0); /* GNUTLS_E_INVALID_SESSION: not one to be repeated */
}

static void c2_nothing_taken_for_ever_ends(void)
{
	failing_for_ever(0, 0);
}

/* A real socket that is full: non-blocking, a small buffer, a reader that takes its time. */
static struct reader {
	int fd;
	unsigned char *got;
	size_t n;
} reader;

static void *read_slowly(void *unused)
{
	char piece[3000];
	ssize_t n;

	(void)unused;
	while ((n = read(reader.fd, piece, sizeof(piece))) > 0) {
		memcpy(reader.got + reader.n, piece, n);
		reader.n += n;
		if (reader.n % 5 == 0)
			poll(NULL, 0, 1); /* slow, not a synchronisation: nothing depends on it */
	}
	return NULL;
}

static void c1_a_full_socket_is_waited_for(void)
{
	pthread_t t;
	struct bytes b = bytes_random(1000000, 5);

	host_reset();
	reader.fd = host_use_socket(1, 4096);
	reader.got = malloc(2 * b.n);
	reader.n = 0;
	assert_int_equal(pthread_create(&t, NULL, read_slowly, NULL), 0);
	FILE *f = file_of(b, "r+");
	fseek(f, 0, SEEK_END);
	csync_send_file(f);
	close(conn_fd_out);
	pthread_join(t, NULL);
	assert_int_equal(reader.n, b.n + strlen("octet-stream 1000000\n"));
	assert_memory_equal(reader.got + reader.n - b.n, b.p, b.n);
	fclose(f);
	free(reader.got);
	bytes_free(b);
}

static const struct ct_case cases[] = {
	SAME(undisturbed),
	FAULT_ROW("c2_one_byte_at_a_time", with_the_step, EVERY(1, HOST_SHORT, 1, 0), WRONG | FATAL),
	FAULT_ROW("c2_seven_bytes_at_a_time", with_the_step, EVERY(1, HOST_SHORT, 7, 0), WRONG | FATAL),
	FAULT_ROW("c2_hundred_bytes_at_a_time", with_the_step, EVERY(1, HOST_SHORT, 100, 0), WRONG | FATAL),
	FAULT_ROW("c2_511_bytes_at_a_time", with_the_step, EVERY(1, HOST_SHORT, 511, 0), WRONG | FATAL),
	FAULT_ROW("c2_every_second_is_short", with_the_step, EVERY(2, HOST_SHORT, 300, 0), WRONG | FATAL),
	FAULT_ROW("c2_every_third_takes_nothing", with_the_step, EVERY(3, HOST_GIVE, 0, 0), WRONG | FATAL),
	FAULT_ROW("c1_every_second_is_interrupted", with_the_step, EVERY(2, HOST_GIVE, -1, EINTR), WRONG | FATAL),
	FAULT_ROW("c1_every_second_says_eagain", with_the_step, EVERY(2, HOST_GIVE, -1, EAGAIN), WRONG | FATAL),
	FAULT_ROW("c1_every_second_says_tls_again", with_the_step, EVERY(2, HOST_GIVE, TLS_AGAIN, 0), WRONG | FATAL),
	FAULT_ROW("c1_every_second_says_tls_interrupted", with_the_step, EVERY(2, HOST_GIVE, TLS_INTERRUPTED, 0), WRONG | FATAL),
	FAULT(c2_sizes_that_vary, WRONG | FATAL),
	FAULT(c1_an_io_error_is_minus_one, FATAL),
	FAULT(c1_a_broken_pipe_is_minus_one, FATAL),
	FAULT(c1_another_tls_error_is_minus_one, FATAL),
	FAULT(c2_nothing_taken_for_ever_ends, FATAL),
	FAULT(c1_a_full_socket_is_waited_for, WRONG | FATAL),
};
CT_MAIN("short_writes", cases)
