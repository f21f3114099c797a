/*
 * Reads that are short, empty though the peer is there, or refused for now: what GnuTLS does at a key update, seen
 * through csync2's unpatched conn_read (a short count, or 0) and through a patched one (the code itself).
 */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 200000

/* Every reading verb, with this behaviour of the reads. */
static void everything_arrives_with(const struct host_step *steps, size_t n, int passes)
{
	struct bytes b = bytes_random(SIZE, 1), none = { NULL, 0 }, got;

	for (int verb = 0; verb < 4; verb++) {
		host_reset();
		host.read_passes_errors = passes;
		for (size_t i = 0; i < n; i++)
			host_on_read(steps[i]);
		switch (verb) {
		case 0: {
			FILE *f = file_of(none, "w+");
			feed_frame(b);
			host_feed_text("NEXT\n");
			assert_int_equal(csync_recv_file(f), 0);
			got = rest_of(f);
			assert_bytes(got, b);
			bytes_free(got);
			fclose(f);
			break;
		}
		case 1:
			write_file("d/f", b);
			feed_frame_of(peer_signature_with(b, 64, 16, PEER_MD4));
#ifdef CT_ORIGINAL
			host.in_len = 0; /* w13, another fault */
			feed_frame_of(peer_signature(b));
#endif
			host_feed_text("NEXT\n");
			assert_int_equal(csync_rs_check("d/f", 1), 0);
			break;
		case 2: {
			write_file("d/f", b);
			feed_frame_of(peer_signature_with(b, 64, 16, PEER_MD4));
			host_feed_text("NEXT\n");
			assert_int_equal(csync_rs_delta("d/f"), 0);
			struct bytes d = take_frame();
			assert_true(d.n < 1000);
			bytes_free(d);
			break;
		}
		case 3:
			unlink("d/f");
			feed_frame_of(peer_delta(peer_no_signature(), b));
			host_feed_text("NEXT\n");
			assert_int_equal(csync_rs_patch("d/f"), 0);
			assert_file("d/f", b);
			break;
		}
		assert_rest("NEXT\n");
	}
	bytes_free(b);
}

static void undisturbed(void)
{
	everything_arrives_with(NULL, 0, 0);
}

static void through_unpatched_conn_read(void)
{
	everything_arrives_with(ct_arg, 1, 0);
}

static void through_patched_conn_read(void)
{
	everything_arrives_with(ct_arg, 1, 1);
}

#define EVERY(start, k, w, v, e) \
	(&(const struct host_step){ .from = (start), .every = (k), .what = (w), .value = (v), .err = (e) })

/* The real end is told from the others by a few repeats, not by thousands. */
static void c1_the_end_is_an_end(void)
{
	struct bytes b = bytes_random(SIZE, 1), none = { NULL, 0 };
	host_reset();
	host_feed_text("octet-stream 200000\n");
	host_feed(b.p, 5000);
	FILE *f = file_of(none, "w+");
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_not_equal(errno, 0);
	assert_true(host.starved < 1000);
	fclose(f);
	bytes_free(b);
}

static void c1_an_error_is_an_error(void)
{
	struct bytes b = bytes_random(SIZE, 1), none = { NULL, 0 };
	for (int passes = 0; passes < 2; passes++) {
		host_reset();
		host.read_passes_errors = passes;
		feed_frame(b);
		/* the header takes 20 reads of one byte: this is the second of the data */
		host_on_read((struct host_step){ .from = 22, .what = HOST_CLOSE });
		FILE *f = file_of(none, "w+");
		errno = 0;
		assert_int_equal(csync_recv_file(f), -1);
		assert_int_not_equal(errno, 0);
		fclose(f);
	}
	bytes_free(b);
}

/* A peer that computes: silent for a while, in the header and in the data, on either kind of descriptor. */
static int silent_fd;

static void *silent_peer(void *text)
{
	/* The silence is the case itself; nothing is synchronised by it. */
	poll(NULL, 0, 700);
	if (write(silent_fd, "octet-stream 11\nhello ", 22) != 22)
		abort();
	poll(NULL, 0, 700);
	if (write(silent_fd, text, strlen(text)) < 0)
		abort();
	return NULL;
}

static void silence(int non_blocking)
{
	struct bytes none = { NULL, 0 }, got;
	pthread_t t;

	host_reset();
	host.read_passes_errors = non_blocking;
	silent_fd = host_use_socket(non_blocking, 0);
	assert_int_equal(pthread_create(&t, NULL, silent_peer, "world"), 0);
	FILE *f = file_of(none, "w+");
	assert_int_equal(csync_recv_file(f), 0);
	pthread_join(t, NULL);
	got = rest_of(f);
	assert_string_equal(got.p, "hello world");
	bytes_free(got);
	fclose(f);
}

static void s16_a_silent_peer_is_waited_for(void)
{
	silence(0);
}

static void s16_a_silent_peer_is_waited_for_without_blocking(void)
{
	silence(1);
}

static const struct ct_case cases[] = {
	SAME(undisturbed),
	SAME_ROW("c6_short_reads", through_unpatched_conn_read, EVERY(1, 1, HOST_SHORT, 100, 0)),
	SAME_ROW("c6_reads_of_one_byte", through_unpatched_conn_read, EVERY(1, 1, HOST_SHORT, 1, 0)),
	FAULT_ROW("c1_empty_reads_in_the_data", through_unpatched_conn_read, EVERY(25, 3, HOST_GIVE, 0, 0), FATAL),
	FAULT_ROW("c1_tls_again_in_the_data", through_unpatched_conn_read, EVERY(25, 2, HOST_GIVE, TLS_AGAIN, 0), FATAL),
	FAULT_ROW("c1_tls_interrupted_in_the_data", through_unpatched_conn_read, EVERY(25, 2, HOST_GIVE, TLS_INTERRUPTED, 0), FATAL),
	FAULT_ROW("c1_interrupted_in_the_data", through_unpatched_conn_read, EVERY(25, 2, HOST_GIVE, -1, EINTR), FATAL),
	FAULT_ROW("c1_tls_again_in_the_header", through_unpatched_conn_read, EVERY(2, 2, HOST_GIVE, TLS_AGAIN, 0), FATAL),
	FAULT_ROW("c1_interrupted_in_the_header", through_unpatched_conn_read, EVERY(2, 2, HOST_GIVE, -1, EINTR), FATAL),
	FAULT_ROW("c1_patched_short_reads_and_again", through_patched_conn_read, EVERY(1, 2, HOST_GIVE, TLS_AGAIN, 0), FATAL),
	FAULT_ROW("c1_patched_interrupted", through_patched_conn_read, EVERY(1, 2, HOST_GIVE, TLS_INTERRUPTED, 0), FATAL),
	FAULT_ROW("c1_patched_eintr", through_patched_conn_read, EVERY(1, 2, HOST_GIVE, -1, EINTR), FATAL),
	FAULT_ROW("c1_patched_eagain", through_patched_conn_read, EVERY(1, 2, HOST_GIVE, -1, EAGAIN), FATAL),
	FAULT(c1_the_end_is_an_end, FATAL),
	FAULT(c1_an_error_is_an_error, FATAL),
	/* Five minutes of silence are not waited for here. */
	NOT_SHOWN(s16_a_silent_peer_is_waited_for, "the fault is a short time limit of a fork; here the peer is silent for a moment"),
	FAULT(s16_a_silent_peer_is_waited_for_without_blocking, FATAL),
};
CT_MAIN("again", cases)
