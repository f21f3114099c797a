/* No room: the old file stays, no temporary is left, the delta is read to its end, the reason is the right one. */
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

/* The patch of d/f, fed already, fails for want of room. */
static void fails_and_keeps(const char *name, struct bytes old, int want_errno)
{
	char *before = listing("d"), *before_tmp = listing("t");
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch(name), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, want_errno);
	assert_rest("NEXT\n");
	char *after = listing("d"), *after_tmp = listing("t");
	assert_string_equal(after, before);
	assert_string_equal(after_tmp, before_tmp);
	assert_file(name, old);
	assert_true(host_said(1, name, strerror(want_errno), NULL));
	free(before);
	free(after);
	free(before_tmp);
	free(after_tmp);
}

static void s5_a_limit_in_the_middle(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(5 << 20, 2);
	write_file("d/f", old);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old), b));
	limit_file_size(1 << 20);
	fails_and_keeps("d/f", old, EFBIG);
	bytes_free(old);
	bytes_free(b);
}

static void s5_a_full_file_system_in_the_middle(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(5 << 20, 2);
	small_tmpfs("d", 1 << 20);
	write_file("d/f", old);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old), b));
	fails_and_keeps("d/f", old, ENOSPC);
	bytes_free(old);
	bytes_free(b);
}

static void s5_no_room_at_all(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(100000, 2);
	write_file("d/f", old);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old), b));
	sys_fail(SYS_WRITES, "/d/", 1, ENOSPC);
	sys_start();
	fails_and_keeps("d/f", old, ENOSPC);
	bytes_free(old);
	bytes_free(b);
}

/* The delta is small, the new file is not: only the file's last bytes do not fit. */
static struct bytes turned_round(struct bytes old)
{
	return bytes_join(bytes_part(old, 4096, old.n), bytes_part(old, 0, 4096));
}

static void w1_the_last_bytes_do_not_fit(void)
{
	struct bytes old = bytes_random(8292, 1), b = turned_round(old);
	write_file("d/f", old);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old), b));
	limit_file_size(8192);
	fails_and_keeps("d/f", old, EFBIG);
	bytes_free(old);
	bytes_free(b);
}

static void w1_the_last_page_does_not_fit(void)
{
	struct bytes old = bytes_random(60000, 1), b = turned_round(old);
	/* room for the old file (15 pages) and for all but some of the new one */
	small_tmpfs("d", 26 * 4096);
	write_file("d/f", old);
	host_reset();
	csync_tempdir = (char *)absolute("t"); /* the small delta has room */
	feed_frame_of(peer_delta(peer_signature(old), b));
	fails_and_keeps("d/f", old, ENOSPC);
	bytes_free(old);
	bytes_free(b);
}

static void w1_a_new_file_that_does_not_fit_is_not_there(void)
{
	struct bytes none = { NULL, 0 }, b = bytes_random(300000, 2);
	char *before = listing("d");
	host_reset();
	feed_frame_of(peer_delta(peer_signature(none), b));
	host_feed_text("NEXT\n");
	limit_file_size(100000);
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EFBIG);
	assert_rest("NEXT\n");
	char *after = listing("d");
	assert_string_equal(after, before);
	free(before);
	free(after);
	bytes_free(b);
}

/* A copy command is written by other means than a literal: it may fail on its own. */
static void w1_a_copied_part_that_does_not_fit(void)
{
	struct bytes old = bytes_random(400000, 1);
	struct bytes b = bytes_join(bytes_part(old, 0, 400000), bytes_part(old, 0, 400000));
	write_file("d/f", old);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old), b));
	limit_file_size(600000);
	fails_and_keeps("d/f", old, EFBIG);
	bytes_free(old);
	bytes_free(b);
}

/* Where no temporary for the delta can be written, none is needed, or the peer gets an error; never half a stream. */
static void s10_a_delta_without_room_for_a_copy(void)
{
	struct bytes b = bytes_random(300000, 1);
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_no_signature());
	host_feed_text("NEXT\n");
	limit_file_size(65536);
	int r = csync_rs_delta("d/f");
	assert_rest("NEXT\n");
	if (r == 0) {
		struct bytes d = take_frame();
		assert_true(d.n > b.n);
		bytes_free(d);
	} else {
		struct bytes got = take_output();
		assert_string_equal(got.p, "ERROR\n");
		bytes_free(got);
	}
	bytes_free(b);
}

static void s10_a_signature_without_room_for_a_copy(void)
{
	struct bytes b = bytes_random(3 << 20, 1), want = peer_signature(b);
	write_file("d/f", b);
	host_reset();
	limit_file_size(8192);
	csync_rs_sig("d/f");
	struct bytes got = take_frame();
	assert_true(got.n == want.n || got.n == 12);
	if (got.n == want.n)
		assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
	bytes_free(b);
}

static void w9_copying_to_another_file_system_without_room(void)
{
	struct bytes old = bytes_random(60000, 1), b = bytes_random(150000, 2);
	mkdir("elsewhere", 0777);
	small_tmpfs("d", 200000);
	write_file("d/f", old);
	host_reset();
	csync_tempdir = (char *)absolute("elsewhere");
	feed_frame_of(peer_delta(peer_signature(old), b));
	fails_and_keeps("d/f", old, ENOSPC);
	char *rest = listing("elsewhere");
	assert_string_equal(rest, "");
	free(rest);
	bytes_free(old);
	bytes_free(b);
}

static void w10_a_failing_fsync_keeps_the_file(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(6000, 2);
	write_file("d/f", old);
	host_reset();
	csync_rs_fsync(1);
	feed_frame_of(peer_delta(peer_signature(old), b));
	sys_fail(SYS_SYNCS, NULL, 1, EIO);
	sys_start();
	fails_and_keeps("d/f", old, EIO);
	bytes_free(old);
	bytes_free(b);
}

static const struct ct_case cases[] = {
	FAULT(s5_a_limit_in_the_middle, FATAL),
	FAULT_F(s5_a_full_file_system_in_the_middle, FATAL, CT_LARGE),
	FAULT(s5_no_room_at_all, FATAL | WRONG),
	FAULT(w1_the_last_bytes_do_not_fit, WRONG),
	FAULT(w1_the_last_page_does_not_fit, WRONG | FATAL),
	FAULT(w1_a_new_file_that_does_not_fit_is_not_there, FATAL),
	FAULT(w1_a_copied_part_that_does_not_fit, WRONG),
	FAULT(s10_a_delta_without_room_for_a_copy, WRONG | FATAL),
	FAULT_F(s10_a_signature_without_room_for_a_copy, WRONG | FATAL, CT_LARGE),
	FAULT(w9_copying_to_another_file_system_without_room, WRONG),
	FAULT(w10_a_failing_fsync_keeps_the_file, WRONG),
};
CT_MAIN("full_disk", cases)
