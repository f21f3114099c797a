/* csync_rs_patch: the whole delta is read, the file is replaced at once or not at all. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void patched(const char *name, struct bytes basis, struct bytes content)
{
	host_reset();
	feed_frame_of(peer_delta(peer_signature(basis), content));
	host_feed_text("NEXT\n");
	assert_int_equal(csync_rs_patch(name), 0);
	assert_rest("NEXT\n");
	assert_int_equal(host.out_len, 0);
	assert_file("d/f", content);
}

static void every_kind_of_edit_is_applied(void)
{
	struct bytes basis = bytes_random(100001, 1);
	struct bytes edits[] = {
		bytes_part(basis, 0, basis.n),
		bytes_part(basis, 0, 50000),
		bytes_join(bytes_part(basis, 0, basis.n), bytes_random(777, 2)),
		bytes_join(bytes_random(777, 2), bytes_part(basis, 0, basis.n)),
		bytes_join(bytes_part(basis, 60000, 40001), bytes_part(basis, 0, 60000)),
		bytes_random(300001, 3),
		bytes_part(basis, 0, 0),
	};
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		write_file("d/f", basis);
		patched("d/f", basis, edits[i]);
		assert_int_equal(names_with("d", "f"), 1);
		bytes_free(edits[i]);
	}
	bytes_free(basis);
}

static void a_new_file_is_made(void)
{
	static const size_t sizes[] = { 0, 1, 4096, 16384, 300001 };
	struct bytes none = { NULL, 0 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = bytes_random(sizes[i], i);
		unlink("d/f");
		patched("d/f", none, b);
		bytes_free(b);
	}
}

static void after_the_signature_the_file_is_patched(void)
{
	struct bytes basis = bytes_random(100001, 1), content = bytes_join(bytes_text("new"), bytes_part(basis, 5000, 90000));

	write_file("d/f", basis);
	host_reset();
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), content));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_file("d/f", content);
	/* once more: what was remembered of the first pair is gone */
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), basis));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_file("d/f", basis);
	bytes_free(basis);
	bytes_free(content);
}

static void a_signature_of_another_name_does_not_matter(void)
{
	struct bytes a = bytes_random(5000, 1), b = bytes_random(6000, 2);

	write_file("d/f", a);
	write_file("d/g", b);
	host_reset();
	csync_rs_sig("d/g");
	patched("d/f", a, b);
	bytes_free(a);
	bytes_free(b);
}

/* In-place bytes of another delta encoder: every opcode's shape. */
static void hand_made_deltas_are_applied(void)
{
	struct bytes basis = bytes_text("0123456789abcdefghij"), want;
	struct bytes d = delta_begin();

	d = delta_raw(d, "\003ABC", 4);                                          /* three bytes, length in the opcode */
	d = delta_raw(d, "\x41\002DE", 4);                                       /* length in one byte */
	d = delta_literal(d, "FG");                                              /* in two */
	d = delta_raw(d, "\x43\0\0\0\001H", 6);                                  /* in four */
	d = delta_raw(d, "\x44\0\0\0\0\0\0\0\001I", 10);                         /* in eight */
	d = delta_raw(d, "\x45\012\005", 3);                                     /* copy 5 from 10: bytes of 1 and 1 */
	d = delta_raw(d, "\x4a\0\001\0\002", 5);                                 /* 2 and 2 */
	d = delta_copy(d, 18, 2);                                                /* 8 and 8 */
	d = delta_end(d);
	write_file("d/f", basis);
	host_reset();
	feed_frame_of(d);
	assert_int_equal(csync_rs_patch("d/f"), 0);
	want = bytes_text("ABCDEFGHIabcde12ij");
	assert_file("d/f", want);
	bytes_free(want);
	bytes_free(basis);
}

static void names_are_bytes_and_prefixes_are_replaced(void)
{
	struct bytes none = { NULL, 0 }, b = bytes_random(5000, 1);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(none), b));
	assert_int_equal(csync_rs_patch("%t%/d/caf\xe9 \xff"), 0);
	assert_file("d/caf\xe9 \xff", b);
	bytes_free(b);
}

static void a_bare_name_is_in_the_working_directory(void)
{
	struct bytes none = { NULL, 0 }, b = bytes_random(5000, 1);
	assert_int_equal(chdir("d"), 0);
	for (int i = 0; i < 2; i++) {
		host_reset();
		feed_frame_of(peer_delta(peer_signature(none), b));
		assert_int_equal(csync_rs_patch("bare"), 0);
		assert_file("bare", b);
	}
	bytes_free(b);
}

static void old_readers_keep_the_old_content(void)
{
	struct bytes a = bytes_random(50000, 1), b = bytes_random(60000, 2), got;
	write_file("d/f", a);
	FILE *reader = fopen("d/f", "r");
	patched("d/f", a, b);
	got = rest_of(reader);
	assert_bytes(got, a);
	fclose(reader);
	bytes_free(got);
	bytes_free(a);
	bytes_free(b);
}

static void s13_a_line_in_place_of_the_delta(void)
{
	struct bytes old = bytes_text("old");
	write_file("d/f", old);
	char *before = listing("d");
	host_reset();
	host_feed_text(ct_arg);
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_not_equal(e, 0);
	assert_rest("NEXT\n");
	char *after = listing("d");
	assert_string_equal(before, after);
	assert_file("d/f", old);
	free(before);
	free(after);
	bytes_free(old);
}

static void c19_a_connection_lost_in_the_delta_keeps_the_file(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(100000, 2), d = peer_delta(peer_signature(old), b);
	write_file("d/f", old);
	char *before = listing("d");
	host_reset();
	host_feed_text("octet-stream 100010\n");
	host_feed(d.p, 60000);
	errno = 0;
	assert_int_equal(csync_rs_patch("d/f"), -1);
	assert_int_not_equal(errno, 0);
	char *after = listing("d");
	assert_string_equal(before, after);
	assert_file("d/f", old);
	free(before);
	free(after);
	bytes_free(old);
	bytes_free(b);
	bytes_free(d);
}

static void refused(const char *name, int want_errno)
{
	struct bytes none = { NULL, 0 }, b = bytes_random(50000, 2);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(none), b));
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch(name), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, want_errno);
	assert_rest("NEXT\n");
	assert_int_equal(host.out_len, 0);
	bytes_free(b);
}

static void null_is_drained(void)
{
	refused(NULL, ENOENT);
}

static void empty_name_is_drained(void)
{
	refused("", ENOENT);
}

static void t1_an_overlong_path_is_drained(void)
{
	struct bytes b = bytes_join(bytes_text("/"), bytes_join(bytes_fill(5000, 'n'), bytes_text("/f")));
	refused((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

static void t1_a_deep_path_is_drained(void)
{
	struct bytes b = bytes_text("/tmp");
	for (int i = 0; i < 2500; i++)
		b = bytes_join(b, bytes_text("/deep"));
	refused((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

static void t1_an_overlong_component_is_drained(void)
{
	struct bytes b = bytes_join(bytes_text("d/"), bytes_fill(256, 'n'));
	refused((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

/* The message says which file, which reason. */
static void n16_a_failure_names_file_and_reason(void)
{
	refused("missing/dir/f", ENOENT);
	assert_true(host_said(1, "missing/dir/f", "No such file or directory", NULL));
	assert_false(host_said(3, "os error", NULL));
}

static const struct ct_case cases[] = {
	SAME(every_kind_of_edit_is_applied),
	SAME(a_new_file_is_made),
	SAME(after_the_signature_the_file_is_patched),
	SAME(a_signature_of_another_name_does_not_matter),
	SAME(hand_made_deltas_are_applied),
	SAME(names_are_bytes_and_prefixes_are_replaced),
	SAME(a_bare_name_is_in_the_working_directory),
	SAME(old_readers_keep_the_old_content),
	SAME_ROW("s13_ERROR_for_a_delta", s13_a_line_in_place_of_the_delta, "ERROR\n"),
	SAME_ROW("s1_minus_one_for_a_delta", s13_a_line_in_place_of_the_delta, "octet-stream -1\n"),
	FAULT_ROW("s13_error_text_for_a_delta", s13_a_line_in_place_of_the_delta, "No such file or directory\n", FATAL),
	FAULT(c19_a_connection_lost_in_the_delta_keeps_the_file, FATAL),
	FAULT(null_is_drained, CRASH),
	SAME(empty_name_is_drained),
	FAULT(t1_an_overlong_path_is_drained, WRONG | CRASH),
	FAULT(t1_a_deep_path_is_drained, CRASH),
	SAME(t1_an_overlong_component_is_drained),
	SAME(n16_a_failure_names_file_and_reason),
};
CT_MAIN("test_rs_patch", cases)
