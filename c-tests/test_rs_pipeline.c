/* csync_rs_pipeline_*: requests sent ahead: what leaves, in which order answers are due, and that nobody waits for ever. */
#include "ends.h"
#include "host.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int a, b, c; /* whose requests they are */

/* A connection that takes so many bytes at a time, and refuses in between. */
struct slow {
	struct bytes out;
	size_t most, last;
	unsigned calls, refusals;
	int err; /* of the refusals; 0: there are none */
};

static ssize_t slow_write(void *userdata, const void *buffer, size_t count)
{
	struct slow *s = userdata;
	size_t n = count < s->most ? count : s->most;

	assert_true(count <= CSYNC_CHUNK);
	if (s->err && s->calls++ % 2 == 0) {
		s->refusals++;
		s->last = count;
		errno = s->err;
		return -1;
	}
	if (s->last)
		assert_int_equal(count, s->last); /* the call after a refused one is the same again */
	s->last = 0;
	s->out = bytes_join(s->out, bytes_of(buffer, n));
	return n;
}

static struct slow slow(size_t most, int err)
{
	return (struct slow){ .out = bytes_text(""), .most = most, .err = err };
}

static void arguments(void)
{
	csync_pipeline *p = csync_rs_pipeline_new(1, 0);
	struct slow s = slow(1, 0);

	assert_non_null(p);
	errno = 0;
	assert_null(csync_rs_pipeline_new(0, 100));
	assert_int_equal(errno, EINVAL);
	csync_rs_pipeline_free(NULL);
	csync_rs_pipeline_answered(NULL);
	csync_rs_pipeline_answered(p);
	assert_null(csync_rs_pipeline_due(NULL));
	assert_null(csync_rs_pipeline_due(p));
	assert_int_equal(csync_rs_pipeline_has_room(NULL, 0), 0);

#define refused(call) \
	do { \
		errno = 0; \
		assert_int_equal(call, -1); \
		assert_int_equal(errno, EINVAL); \
	} while (0)
	refused(csync_rs_pipeline_ask(NULL, &a, "x\n", 0, 1));
	refused(csync_rs_pipeline_ask(p, NULL, "x\n", 0, 1));
	refused(csync_rs_pipeline_ask(p, &a, NULL, 0, 1));
	refused(csync_rs_pipeline_patch(NULL, &a, "x\n", "d/f", 0));
	refused(csync_rs_pipeline_patch(p, NULL, "x\n", "d/f", 0));
	refused(csync_rs_pipeline_patch(p, &a, NULL, "d/f", 0));
	refused(csync_rs_pipeline_send(NULL, slow_write, &s));
	refused(csync_rs_pipeline_send(p, NULL, &s));
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "x\n", NULL, 0), 0);
	assert_null(csync_rs_pipeline_due(p));
	assert_int_equal(csync_rs_pipeline_send(p, slow_write, &s), 0);
	assert_int_equal(s.out.n, 0);
	bytes_free(s.out);
	csync_rs_pipeline_free(p);
}

static void answers_are_due_in_order_and_the_window_is_bounded(void)
{
	csync_pipeline *p = csync_rs_pipeline_new(2, 100);

	assert_int_equal(csync_rs_pipeline_has_room(p, SIZE_MAX), 1); /* one alone always */
	assert_int_equal(csync_rs_pipeline_ask(p, &a, "12345", 35, 1), 0);
	assert_int_equal(csync_rs_pipeline_has_room(p, 60), 1);
	assert_int_equal(csync_rs_pipeline_has_room(p, 61), 0);
	assert_int_equal(csync_rs_pipeline_ask(p, &b, "", 0, 1), 0);
	assert_int_equal(csync_rs_pipeline_has_room(p, 0), 0); /* two files */
	assert_ptr_equal(csync_rs_pipeline_due(p), &a);
	csync_rs_pipeline_answered(p);
	assert_ptr_equal(csync_rs_pipeline_due(p), &b);
	assert_int_equal(csync_rs_pipeline_has_room(p, 100), 1);
	assert_int_equal(csync_rs_pipeline_ask(p, &c, "12345", 5, 0), 0);
	assert_int_equal(csync_rs_pipeline_has_room(p, 90), 1); /* the last request of a file holds no place */
	assert_int_equal(csync_rs_pipeline_has_room(p, 91), 0);
	csync_rs_pipeline_answered(p);
	assert_ptr_equal(csync_rs_pipeline_due(p), &c);
	csync_rs_pipeline_answered(p);
	assert_null(csync_rs_pipeline_due(p));
	csync_rs_pipeline_free(p);
}

static void what_was_asked_leaves_once_and_in_order(void)
{
	for (size_t most = 1; most <= 20000; most = most * 7 + 1) {
		csync_pipeline *p = csync_rs_pipeline_new(8, 1000);
		struct slow s = slow(most, EAGAIN);
		struct bytes long_line = bytes_fill(20000, 'x');
		ssize_t left, before = 20008;

		assert_int_equal(csync_rs_pipeline_ask(p, &a, "first\n", 0, 1), 0);
		assert_int_equal(csync_rs_pipeline_ask(p, &b, (char *)long_line.p, 0, 1), 0);
		assert_int_equal(csync_rs_pipeline_ask(p, &c, "\n\n", 0, 1), 0);
		while ((left = csync_rs_pipeline_send(p, slow_write, &s)) > 0) {
			assert_true(left <= before);
			before = left;
		}
		assert_int_equal(left, 0);
		assert_true(s.refusals > 0);
		assert_bytes(s.out, bytes_join(bytes_join(bytes_text("first\n"), long_line), bytes_text("\n\n")));
		csync_rs_pipeline_free(p);
	}
}

static void interruptions_are_repeated_and_failures_told(void)
{
	csync_pipeline *p = csync_rs_pipeline_new(8, 1000);
	struct slow s = slow(3, EINTR);

	assert_int_equal(csync_rs_pipeline_ask(p, &a, "first\n", 0, 1), 0);
	assert_int_equal(csync_rs_pipeline_send(p, slow_write, &s), 0);
	assert_int_equal(s.refusals, 2);
	assert_bytes(s.out, bytes_text("first\n"));
	s = slow(3, EPIPE);
	assert_int_equal(csync_rs_pipeline_ask(p, &a, "second\n", 0, 1), 0);
	errno = 0;
	assert_int_equal(csync_rs_pipeline_send(p, slow_write, &s), -1);
	assert_int_equal(errno, EPIPE);
	bytes_free(s.out);
	csync_rs_pipeline_free(p);
}

/* Takes a PATCH for the file; the delta that leaves with it. */
static struct bytes delta_of(const char *filename)
{
	csync_pipeline *p = csync_rs_pipeline_new(8, 1000);
	struct slow s = slow(20000, 0);
	size_t line = strlen("PATCH\n");

	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", filename, 50), 1);
	assert_ptr_equal(csync_rs_pipeline_due(p), &a);
	assert_int_equal(csync_rs_pipeline_send(p, slow_write, &s), 0);
	assert_memory_equal(s.out.p, "PATCH\n", line);
	csync_rs_pipeline_free(p);
	return unframed(bytes_part(s.out, line, s.out.n - line));
}

/* librsync makes the file of it, whatever the peer has. */
static void a_delta_leaves_with_its_request(void)
{
	struct bytes contents[] = {
		bytes_text(""), bytes_text("x"), bytes_text("DEL key file\nDEL key file\n"), bytes_random(16384, 1),
		bytes_fill(16384, '\n'), bytes_fill(3800, 0),
	};

	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		struct bytes made, basis = bytes_random(5000, 2);

		write_file("d/f", contents[i]);
		assert_int_equal(peer_patch(basis, delta_of("d/f"), &made), 0);
		assert_file("d/f", made);
	}
}

/* What a daemon that refused the request reads: no line but the first begins with a letter, a blank or a %. */
static void no_line_of_the_delta_is_a_command(void)
{
	struct bytes text = bytes_text("");

	for (int i = 0; i < 80; i++) {
		text = bytes_join(text, bytes_fill(i, "x \t%"[i % 4]));
		text = bytes_join(text, bytes_text("\nDEL key file\n%44EL key file\n"));
	}
	write_file("d/f", text);
	struct bytes delta = delta_of("d/f");
	assert_memory_equal(delta.p, "rs\0026", 4);
	for (size_t i = 0; i + 1 < delta.n; i++) {
		int first = delta.p[i + 1];

		if (delta.p[i] == '\n')
			assert_true(first < '\t' || (first > '\r' && first != ' ' && first != '%' && first <= '@'));
	}
	assert_int_equal(delta.p[delta.n - 1], 0); /* the next line is lost, and not a part of one */
}

static void other_files_go_the_usual_way(void)
{
	csync_pipeline *p = csync_rs_pipeline_new(8, 1000);

	write_file("d/long", bytes_random(16385, 1));
	write_file("d/wide", bytes_fill(4000, 'x'));
	assert_int_equal(symlink("long", "d/link"), 0);
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", "d/long", 50), 0);
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", "d/wide", 50), 0);
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", "d/link", 50), 0);
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", "d/missing", 50), 0);
	assert_int_equal(csync_rs_pipeline_patch(p, &a, "PATCH\n", "d", 50), 0);
	assert_null(csync_rs_pipeline_due(p));
	csync_rs_pipeline_free(p);
}

/*
 * A peer as csync2's daemon: reads no request before its answer to the last one has left. Both ends are played here, in
 * turn and without waiting; where neither gets on any more, they would wait for each other for ever.
 */
enum { REQUESTS = 300, REQUEST = 100, ANSWER = 3000 };

struct daemon {
	int fd;
	size_t request, owed;
};

static ssize_t now(ssize_t n)
{
	assert_true(n > 0 || (n < 0 && errno == EAGAIN));
	return n < 0 ? 0 : n;
}

static ssize_t daemon_step(struct daemon *d)
{
	static char buffer[ANSWER];

	if (d->owed) {
		ssize_t n = now(write(d->fd, buffer, d->owed));

		d->owed -= n;
		return n;
	}
	ssize_t n = now(read(d->fd, buffer, REQUEST - d->request));

	d->request += n;
	if (d->request == REQUEST) {
		d->request = 0;
		d->owed = ANSWER;
	}
	return n;
}

static ssize_t write_to(void *userdata, const void *buffer, size_t count)
{
	return write(*(int *)userdata, buffer, count);
}

/* Returns how many answers came before neither end got on. */
static size_t answers_through_small_buffers(int reads_meanwhile)
{
	struct ends e = ends_make(UNIX_SOCKETS, 4096);
	csync_pipeline *p = csync_rs_pipeline_new(REQUESTS, SIZE_MAX);
	struct bytes request = bytes_fill(REQUEST, 'x');
	struct daemon peer = { .fd = e.in[1] };
	size_t got = 0;
	ssize_t moved, left;
	char buffer[5000];

	ends_non_blocking(&e, 0);
	ends_non_blocking(&e, 1);
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(csync_rs_pipeline_ask(p, &a, (char *)request.p, ANSWER, 1), 0);
	bytes_free(request);
	left = REQUESTS * REQUEST;
	do {
		ssize_t before = left;

		left = csync_rs_pipeline_send(p, write_to, &e.out[0]);
		assert_true(left >= 0);
		moved = before - left + daemon_step(&peer);
		if (reads_meanwhile || !left) {
			ssize_t n = now(read(e.in[0], buffer, sizeof(buffer)));

			for (size_t i = got / ANSWER; i < (got + n) / ANSWER; i++)
				csync_rs_pipeline_answered(p);
			got += n;
			moved += n;
		}
	} while (moved > 0);
	if (got == REQUESTS * ANSWER)
		assert_null(csync_rs_pipeline_due(p));
	csync_rs_pipeline_free(p);
	ends_close(&e, 0);
	ends_close(&e, 1);
	return got / ANSWER;
}

static void reading_while_output_waits_gets_all_answers(void)
{
	assert_int_equal(answers_through_small_buffers(1), REQUESTS);
}

/* (what the case above is about: who sends everything first waits for ever) */
static void sending_everything_first_waits_for_ever(void)
{
	assert_int_equal(answers_through_small_buffers(0), 0);
}

static const struct ct_case cases[] = {
	OURS(arguments),
	OURS(answers_are_due_in_order_and_the_window_is_bounded),
	OURS(what_was_asked_leaves_once_and_in_order),
	OURS(interruptions_are_repeated_and_failures_told),
	OURS(a_delta_leaves_with_its_request),
	OURS(no_line_of_the_delta_is_a_command),
	OURS(other_files_go_the_usual_way),
	OURS(reading_while_output_waits_gets_all_answers),
	OURS(sending_everything_first_waits_for_ever),
};
CT_MAIN("test_rs_pipeline", cases)
