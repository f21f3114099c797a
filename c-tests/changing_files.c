/* Files that change while they are worked on: nothing is mixed silently, and both ends stay in step. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"
#include "sysfault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between the signature and the delta something happens to the target: the local content wins, the peer tries again. */
static void after_the_signature(struct bytes old, void (*change)(void), struct bytes local)
{
	struct bytes content = bytes_join(bytes_part(old, 0, old.n), bytes_random(5000, 9));

	host_reset();
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), content));
	host_feed_text("NEXT\n");
	change();
	char *before = listing("d");
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EAGAIN);
	assert_rest("NEXT\n");
	assert_file("d/f", local);
	char *after = listing("d");
	assert_string_equal(after, before);
	assert_true(host_said(1, "d/f", NULL));
	free(before);
	free(after);
	bytes_free(content);
}

/* The clock of a file system is coarse: the change is made until its time differs. */
static void overwrite(struct bytes b)
{
	struct stat before, after;
	assert_int_equal(stat("d/f", &before), 0);
	for (int i = 0; i < 100000; i++) {
		int fd = open("d/f", O_WRONLY);
		assert_int_equal(write(fd, b.p, b.n), (ssize_t)b.n);
		close(fd);
		assert_int_equal(stat("d/f", &after), 0);
		if (after.st_ctim.tv_sec != before.st_ctim.tv_sec || after.st_ctim.tv_nsec != before.st_ctim.tv_nsec)
			return;
	}
	fail();
}

static struct bytes other;

static void replace(void)
{
	write_file("new", other);
	assert_int_equal(rename("new", "d/f"), 0);
}

static void overwrite_in_place(void)
{
	overwrite(other);
}

static void append(void)
{
	append_file("d/f", other);
}

static void appear(void)
{
	write_file("d/f", other);
}

static void w4_a_replaced_basis_is_kept(void)
{
	struct bytes old = bytes_random(50000, 1);
	other = bytes_random(50000, 2);
	write_file("d/f", old);
	after_the_signature(old, replace, other);
	bytes_free(old);
	bytes_free(other);
}

static void w4_a_basis_overwritten_in_place_is_kept(void)
{
	struct bytes old = bytes_random(50000, 1);
	other = bytes_random(50000, 2);
	write_file("d/f", old);
	after_the_signature(old, overwrite_in_place, other);
	bytes_free(old);
	bytes_free(other);
}

static void w4_a_grown_basis_is_kept(void)
{
	struct bytes old = bytes_random(50000, 1), both;
	other = bytes_random(10, 2);
	write_file("d/f", old);
	both = bytes_join(bytes_part(old, 0, old.n), bytes_part(other, 0, other.n));
	after_the_signature(old, append, both);
	bytes_free(old);
	bytes_free(other);
	bytes_free(both);
}

static void w4_a_file_that_appeared_is_kept(void)
{
	struct bytes old = bytes_of(NULL, 0);
	other = bytes_random(5000, 2);
	after_the_signature(old, appear, other);
	bytes_free(old);
	bytes_free(other);
}

/* Changed while the delta arrives, and just before the rename: the last moment counts. */
static void late_overwrite(void)
{
	overwrite(other);
}

static void w4_a_basis_that_changes_while_the_delta_arrives_is_kept(void)
{
	struct bytes old = bytes_random(200000, 1);
	struct bytes content = bytes_join(bytes_random(100000, 8), bytes_part(old, 0, old.n));
	other = bytes_random(200000, 2);
	write_file("d/f", old);
	host_reset();
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), content));
	host_feed_text("NEXT\n");
	/* the header takes 20 reads of one byte: this is the first of the data */
	host_on_read((struct host_step){ .from = 21, .what = HOST_CALL, .hook = late_overwrite });
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EAGAIN);
	assert_rest("NEXT\n");
	assert_file("d/f", other);
	assert_int_equal(names_with("d", "f"), 1);
	bytes_free(old);
	bytes_free(content);
	bytes_free(other);
}

/* Read in the meantime, its rights changed: the content is the same. */
static void w4_an_untouched_basis_is_patched(void)
{
	struct bytes old = bytes_random(50000, 1), content = bytes_random(60000, 2);
	write_file("d/f", old);
	host_reset();
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), content));
	struct bytes again = read_file("d/f");
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_file("d/f", content);
	bytes_free(again);
	bytes_free(old);
	bytes_free(content);
}

/* The source changes at its first read. */
static void source_overwritten(void)
{
	int fd = open(absolute("d/f"), O_WRONLY);
	if (fd < 0 || pwrite(fd, "changed", 7, 150000) != 7)
		abort();
	close(fd);
}

static void source_grown(void)
{
	int fd = open(absolute("d/f"), O_WRONLY | O_APPEND);
	if (fd < 0 || write(fd, "changed", 7) != 7)
		abort();
	close(fd);
}

static void source_cut(void)
{
	if (truncate(absolute("d/f"), 70000))
		abort();
}

/* A whole delta goes out, -1 comes back: the file stays on the list. */
static void while_the_delta_is_made(void (*change)(void), int with_basis)
{
	struct bytes b = bytes_random(400000, 1);
	struct bytes basis = with_basis ? bytes_part(b, 0, 100000) : bytes_of(NULL, 0);
	struct stat st;

	write_file("d/f", b);
	assert_int_equal(stat("d/f", &st), 0);
	struct timespec old_times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	assert_int_equal(utimensat(AT_FDCWD, "d/f", old_times, 0), 0);
	host_reset();
	feed_frame_of(with_basis ? peer_signature(basis) : peer_no_signature());
	host_feed_text("NEXT\n");
	sys_hook(SYS_READS, "d/f", 1, change);
	sys_start();
	errno = 0;
	int r = csync_rs_delta("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EAGAIN);
	assert_rest("NEXT\n");
	struct bytes got = take_output();
	if (strcmp((char *)got.p, "ERROR\n")) {
		/* one frame */
		host_feed(got.p, 0);
		char *line_end = memchr(got.p, '\n', got.n);
		assert_non_null(line_end);
		assert_int_equal(strtoul((char *)got.p + strlen("octet-stream "), NULL, 10),
				 got.n - (line_end + 1 - (char *)got.p));
	}
	assert_true(host_said(1, "d/f", NULL));
	bytes_free(got);
	bytes_free(b);
	bytes_free(basis);
}

static void w5_a_source_overwritten_meanwhile(void)
{
	while_the_delta_is_made(source_overwritten, 0);
}

static void w5_a_source_overwritten_meanwhile_with_a_basis(void)
{
	while_the_delta_is_made(source_overwritten, 1);
}

static void w5_a_source_grown_meanwhile(void)
{
	while_the_delta_is_made(source_grown, 0);
}

static void w5_a_source_cut_meanwhile(void)
{
	while_the_delta_is_made(source_cut, 0);
}

static void w5_a_source_cut_meanwhile_with_a_basis(void)
{
	while_the_delta_is_made(source_cut, 1);
}

/* Announced, streamed, cut: the rest is filled up and the end is a command that every peer refuses. */
static void w5_a_cut_stream_is_refused_by_the_peer(void)
{
	struct bytes b = bytes_random(3 << 20, 1), none = { NULL, 0 }, result;
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_no_signature());
	host_feed_text("NEXT\n");
	host_on_write((struct host_step){ .from = 3, .what = HOST_CALL, .hook = source_cut });
	errno = 0;
	int r = csync_rs_delta("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EAGAIN);
	assert_rest("NEXT\n");
	struct bytes d = take_frame();
	assert_int_equal(d.p[d.n - 1], 0x55);
	assert_int_not_equal(peer_patch(none, d, &result), 0);
	bytes_free(result);
	/* and by this library */
	host_reset();
	feed_frame(d);
	host_feed_text("NEXT\n");
	assert_int_equal(csync_rs_patch("d/there"), -1);
	assert_rest("NEXT\n");
	assert_int_equal(names_with("d", "there"), 0);
	bytes_free(d);
	bytes_free(b);
}

/* The file that is signed is cut meanwhile: a whole frame, and no patch on top of it. */
static void w4_a_basis_cut_while_it_is_signed(void)
{
	struct bytes b = bytes_random(3 << 20, 1);
	write_file("d/f", b);
	host_reset();
	sys_hook(SYS_READS, "d/f", 2, source_cut);
	sys_start();
	csync_rs_sig("d/f");
	bytes_free(take_frame());
	feed_frame_of(delta_end(delta_literal(delta_begin(), "new")));
	host_feed_text("NEXT\n");
	int r = csync_rs_patch("d/f");
	assert_int_equal(r, -1);
	assert_rest("NEXT\n");
	struct bytes local = bytes_part(b, 0, 70000);
	assert_file("d/f", local);
	bytes_free(local);
	bytes_free(b);
}

static const struct ct_case cases[] = {
	FAULT(w4_a_replaced_basis_is_kept, WRONG),
	FAULT(w4_a_basis_overwritten_in_place_is_kept, WRONG),
	FAULT(w4_a_grown_basis_is_kept, WRONG),
	FAULT(w4_a_file_that_appeared_is_kept, WRONG),
	FAULT(w4_a_basis_that_changes_while_the_delta_arrives_is_kept, WRONG),
	SAME(w4_an_untouched_basis_is_patched),
	FAULT(w4_a_basis_cut_while_it_is_signed, WRONG),
	FAULT(w5_a_source_overwritten_meanwhile, WRONG),
	FAULT(w5_a_source_overwritten_meanwhile_with_a_basis, WRONG),
	FAULT(w5_a_source_grown_meanwhile, WRONG),
	FAULT(w5_a_source_cut_meanwhile, WRONG),
	FAULT(w5_a_source_cut_meanwhile_with_a_basis, WRONG),
	FAULT(w5_a_cut_stream_is_refused_by_the_peer, WRONG),
};
CT_MAIN("changing_files", cases)
