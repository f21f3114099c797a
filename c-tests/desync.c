/*
 * Both ends in step, whatever fails: each test is a dialogue as csync2 leads it, and asks what is read next.
 */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"
#include "sysfault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* File content that looks like commands: what is not drained would be obeyed. */
static struct bytes commands(void)
{
	struct bytes b = bytes_random(20000, 1);
	for (size_t i = 0; i + 8 < b.n; i += 700)
		memcpy(b.p + i, "\nBYE\n", 5);
	return b;
}

static void patch_fails_in_step(const char *name, int want_errno)
{
	struct bytes b = commands();
	feed_frame_of(peer_delta(peer_no_signature(), b));
	host_feed_text("SETMOD key file 644\n");
	errno = 0;
	int r = csync_rs_patch(name), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, want_errno);
	assert_rest("SETMOD key file 644\n");
	bytes_free(b);
}

static void s1_sig_and_patch_onto_a_directory_then_the_next_file(void)
{
	struct bytes b = bytes_random(3000, 2);
	mkdir("d/dir", 0755);
	write_file("d/dir/inside", b);
	host_reset();
	csync_rs_sig("d/dir");
	bytes_free(take_frame());
	patch_fails_in_step("d/dir", EISDIR);
	/* the next file goes through */
	host_reset();
	csync_rs_sig("d/next");
	feed_frame_of(peer_delta(take_frame(), b));
	assert_int_equal(csync_rs_patch("d/next"), 0);
	assert_file("d/next", b);
	assert_file("d/dir/inside", b);
	bytes_free(b);
}

static void s4_delta_is_drained_when_the_directory_is_not_writable(void)
{
	struct bytes old = bytes_text("old");
	write_file("d/f", old);
	chmod("d/f", 0644);
	become_nobody();
	if (chmod("d", 0555) || getuid() == 0)
		ct_skip("no chmod");
	unsetenv("TMPDIR");
	host_reset();
	patch_fails_in_step("d/f", EACCES);
	assert_file("d/f", old);
	assert_true(host_said(1, "d/f", "Permission denied", NULL));
	bytes_free(old);
}

static void s4_delta_is_drained_when_descriptors_are_used_up(void)
{
	struct bytes old = bytes_text("old");
	write_file("d/f", old);
	host_reset();
	struct bytes b = commands();
	feed_frame_of(peer_delta(peer_no_signature(), b));
	host_feed_text("NEXT\n");
	limit_descriptors(0);
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	limit_descriptors(-1);
	assert_int_equal(r, -1);
	assert_int_equal(e, EMFILE);
	assert_rest("NEXT\n");
	bytes_free(b);
	bytes_free(old);
}

static void s4_delta_is_drained_when_no_file_can_be_made(void)
{
	struct bytes old = bytes_text("old");
	write_file("d/f", old);
	host_reset();
	sys_fail(SYS_CREATES, NULL, 1, ENOSPC);
	struct bytes b = commands();
	feed_frame_of(peer_delta(peer_no_signature(), b));
	host_feed_text("NEXT\n");
	sys_start();
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENOSPC);
	assert_rest("NEXT\n");
	bytes_free(b);
	bytes_free(old);
}

/* Exactly one thing for the peer, which waits: a delta that gives the content, or ERROR with -1. */
static void one_thing_on_the_wire(int r, struct bytes content)
{
	struct bytes none = { NULL, 0 }, got = take_output(), result;

	if (r == 0) {
		char *line_end = memchr(got.p, '\n', got.n);
		assert_non_null(line_end);
		size_t head = line_end + 1 - (char *)got.p;
		struct bytes d = bytes_part(got, head, got.n);
		assert_int_equal(strtoul((char *)got.p + strlen("octet-stream "), NULL, 10), d.n);
		assert_int_equal(peer_patch(none, d, &result), 0);
		assert_bytes(result, content);
		bytes_free(result);
		bytes_free(d);
	} else {
		assert_int_equal(r, -1);
		assert_string_equal(got.p, "ERROR\n");
	}
	assert_rest("NEXT\n");
	bytes_free(got);
}

static void delta_with_descriptors(int n)
{
	struct bytes b = commands();
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_no_signature());
	host_feed_text("NEXT\n");
	limit_descriptors(n);
	int r = csync_rs_delta("d/f");
	limit_descriptors(-1);
	one_thing_on_the_wire(r, b);
	bytes_free(b);
}

static void s6_delta_with_one_descriptor(void)
{
	delta_with_descriptors(1);
}

static void s7_delta_without_a_descriptor(void)
{
	delta_with_descriptors(0);
}

static void s7_signature_is_read_though_no_temp_can_be_made(void)
{
	struct bytes b = commands();
	write_file("d/f", b);
	chmod("d/f", 0644);
	become_nobody();
	if (chmod("d", 0555) || getuid() == 0)
		ct_skip("no chmod");
	setenv("TMPDIR", "/nonexistent", 1);
	host_reset();
	feed_frame_of(peer_no_signature());
	host_feed_text("NEXT\n");
	one_thing_on_the_wire(csync_rs_delta("d/f"), b);
	bytes_free(b);
}

static void s8_a_bad_signature_is_answered(void)
{
	static const struct { const char *p; size_t n; } bad[] = {
		{ "", 0 }, { "rs\001", 3 }, { "\0\0\0\0\0\0\010\0\0\0\0\020", 12 }, { "rs\0026\0\0\010\0\0\0\0\020", 12 },
		{ "rs\0016\0\0\010\0\0\0\0", 11 },
	};
	struct bytes b = commands();
	write_file("d/f", b);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		host_reset();
		feed_frame_of(bytes_of(bad[i].p, bad[i].n));
		host_feed_text("NEXT\n");
		errno = 0;
		int r = csync_rs_delta("d/f"), e = errno;
		assert_int_equal(r, -1);
		assert_true(e == EBADMSG || e == EIO || e == EPROTO);
		one_thing_on_the_wire(r, b);
	}
	bytes_free(b);
}

static void s8_a_source_that_cannot_be_read_is_answered(void)
{
	struct bytes b = bytes_random(300000, 1);
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_signature(b));
	host_feed_text("NEXT\n");
	sys_fail(SYS_READS, "d/f", 1, EIO);
	sys_start();
	errno = 0;
	int r = csync_rs_delta("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EIO);
	one_thing_on_the_wire(r, b);
	assert_true(host_said(1, "d/f", "Input/output error", NULL));
	bytes_free(b);
}

/* Read errors after some has been read: the length may be out already. In step, -1, and never a delta that applies. */
static void s8_a_source_that_breaks_in_the_middle_is_answered(void)
{
	struct bytes b = bytes_random(3 << 20, 1), none = { NULL, 0 }, result;
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_no_signature());
	host_feed_text("NEXT\n");
	sys_fail(SYS_READS, "d/f", 3, EIO);
	sys_start();
	errno = 0;
	int r = csync_rs_delta("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EIO);
	assert_rest("NEXT\n");
	if (host.out_len != 6 || memcmp(host.out, "ERROR\n", 6)) {
		struct bytes d = take_frame();
		assert_int_not_equal(peer_patch(none, d, &result), 0);
		assert_int_equal(d.p[d.n - 1], 0x55);
	}
	bytes_free(b);
}

static void closed_first(const char *text)
{
	(void)text;
	if (host.closed)
		_exit(0);
}

/* The signature of a file that cannot be read: a whole frame, and the patch that follows fails in step. */
static void signature_of_a_broken_file(unsigned nth)
{
	struct bytes b = bytes_random(3 << 20, 1), none = { NULL, 0 };
	write_file("d/f", b);
	host_reset();
	host.on_fatal = closed_first;
	struct bytes delta = peer_delta(peer_signature(none), b);
	sys_fail(SYS_READS, "d/f", nth, EIO);
	sys_start();
	csync_rs_sig("d/f");
	bytes_free(take_frame());
	feed_frame_of(delta);
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EIO);
	assert_rest("NEXT\n");
	assert_true(host_said(1, "d/f", "Input/output error", NULL));
	bytes_free(b);
}

static void s9_a_basis_that_cannot_be_read(void)
{
	signature_of_a_broken_file(1);
}

static void s9_a_basis_that_breaks_in_the_middle(void)
{
	signature_of_a_broken_file(4);
}

static void s3_a_local_read_error_is_a_difference(void)
{
	struct bytes b = bytes_random(300000, 1);
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_signature(b));
	host_feed_text("NEXT\n");
	sys_fail(SYS_READS, "d/f", 1, EIO);
	sys_start();
	assert_int_equal(csync_rs_check("d/f", 1), 1);
	assert_rest("NEXT\n");
	assert_true(host_said(1, "d/f", "Input/output error", NULL));
	bytes_free(b);
}

/* A whole session with failures in it: the lines between the calls are the dialogue's. */
static const char *line(void)
{
	static char text[200];
	conn_gets(text, sizeof(text));
	return text;
}

static void s3_a_session_stays_in_step(void)
{
	struct bytes b = bytes_random(30000, 1);
	write_file("d/a", b);
	write_file("d/c", b);
	host_reset();
	/* a: cannot be signed there */
	host_feed_text("octet-stream -1\nOK (cmd_finished).\n");
	/* ... and PATCH: an old daemon again answers -1 */
	host_feed_text("octet-stream -1\nPermission denied\n");
	/* b: is gone here */
	feed_frame_of(peer_no_signature());
	host_feed_text("File not sent\n");
	/* c: all is well */
	feed_frame_of(peer_signature(b));
	host_feed_text("OK (cmd_finished).\n");

	assert_int_equal(csync_rs_check("d/a", 1), 1);
	assert_string_equal(line(), "OK (cmd_finished).\n");
	assert_int_equal(csync_rs_delta("d/a"), -1);
	assert_string_equal(line(), "Permission denied\n");
	assert_int_equal(csync_rs_delta("d/b"), -1);
	assert_string_equal(line(), "File not sent\n");
	assert_int_equal(csync_rs_check("d/c", 1), 0);
	assert_string_equal(line(), "OK (cmd_finished).\n");
	struct bytes got = take_output();
	assert_string_equal(got.p, "ERROR\nERROR\n");
	bytes_free(got);
	bytes_free(b);
}

static const struct ct_case cases[] = {
	FAULT(s1_sig_and_patch_onto_a_directory_then_the_next_file, WRONG),
	FAULT(s4_delta_is_drained_when_the_directory_is_not_writable, WRONG),
	FAULT(s4_delta_is_drained_when_descriptors_are_used_up, WRONG),
	FAULT(s4_delta_is_drained_when_no_file_can_be_made, WRONG),
	FAULT(s6_delta_with_one_descriptor, WRONG | CRASH),
	FAULT(s7_delta_without_a_descriptor, WRONG),
	FAULT(s7_signature_is_read_though_no_temp_can_be_made, WRONG),
	FAULT(s8_a_bad_signature_is_answered, FATAL),
	FAULT(s8_a_source_that_cannot_be_read_is_answered, FATAL),
	FAULT(s8_a_source_that_breaks_in_the_middle_is_answered, FATAL),
	FAULT(s9_a_basis_that_cannot_be_read, FATAL),
	FAULT(s9_a_basis_that_breaks_in_the_middle, FATAL),
	FAULT(s3_a_local_read_error_is_a_difference, WRONG),
	FAULT(s3_a_session_stays_in_step, WRONG),
};
CT_MAIN("desync", cases)
