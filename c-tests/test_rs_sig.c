/* csync_rs_sig: librsync's very bytes, and a valid empty signature where there is none to be made. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void same_bytes_as_librsync(void)
{
	static const size_t sizes[] = { 0, 1, 2047, 2048, 2049, 4096, 65535, 65536, 65537, 300001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = bytes_random(sizes[i], i), want = peer_signature(b);
		host_reset();
		write_file("d/f", b);
		csync_rs_sig("d/f");
		struct bytes got = take_frame();
		assert_bytes(got, want);
		bytes_free(got);
		bytes_free(want);
		bytes_free(b);
	}
}

static void w12_the_constant_for_a_missing_file(void)
{
	host_reset();
	csync_rs_sig("d/none");
	struct bytes got = take_frame(), want = peer_no_signature();
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
}

static void w12_sums_of_16_bytes_for_an_empty_file(void)
{
	host_reset();
	write_file("d/f", (struct bytes){ NULL, 0 });
	csync_rs_sig("d/f");
	struct bytes got = take_frame(), want = bytes_of("rs\0016\0\0\010\0\0\0\0\020", 12);
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
}

static void names_are_bytes_and_prefixes_are_replaced(void)
{
	struct bytes b = bytes_random(5000, 1), want = peer_signature(b);
	host_reset();
	write_file("d/\xff\xfe\x01 x", b);
	csync_rs_sig("%t%/d/\xff\xfe\x01 x");
	struct bytes got = take_frame();
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
	bytes_free(b);
}

static void empty_name_is_a_missing_file(void)
{
	host_reset();
	csync_rs_sig("");
	struct bytes got = take_frame();
	assert_int_equal(got.n, 12);
	bytes_free(got);
}

static void s15_large_pieces(void)
{
	struct bytes b = bytes_random(4 << 20, 2), want = peer_signature(b);
	host_reset();
	write_file("d/f", b);
	csync_rs_sig("d/f");
	assert_true(host.largest_write <= CSYNC_CHUNK);
	assert_true(host.writes <= want.n / CSYNC_CHUNK + 2);
	struct bytes got = take_frame();
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
	bytes_free(b);
}

static void s15_a_small_one_is_one_write(void)
{
	const char *const names[] = { "d/f", "d/none" };
	write_file("d/f", bytes_text("hello"));
	for (int i = 0; i < 2; i++) {
		host_reset();
		csync_rs_sig(names[i]);
		assert_int_equal(host.writes, 1);
	}
}

/*
 * No signature can be made of this name. The peer gets an empty one, sends its delta, and csync_rs_patch reports
 * the reason; an answer of -1 would leave old peers waiting for ever.
 */
static void empty_signature_then_error(const char *name, int want_errno)
{
	host_reset();
	csync_rs_sig(name);
	struct bytes got = take_frame();
	assert_int_equal(got.n, 12);
	assert_memory_equal(got.p, "rs\0016\0\0\010\0\0\0\0", 11);
	assert_true(got.p[11] == 8 || got.p[11] == 16);
	assert_true(host_said(1, name, strerror(want_errno), NULL));
	struct bytes content = bytes_random(100000, 9);
	feed_frame_of(peer_delta(got, content));
	host_feed_text("NEXT\n");
	errno = 0;
	assert_int_equal(csync_rs_patch(name), -1);
	assert_int_equal(errno, want_errno);
	assert_rest("NEXT\n");
	assert_int_equal(host.out_len, 0);
	bytes_free(content);
	bytes_free(got);
}

static void s1_a_directory(void)
{
	mkdir("d/dir", 0755);
	write_file("d/dir/inside", bytes_text("x"));
	char *before = listing("d");
	empty_signature_then_error("d/dir", EISDIR);
	char *after = listing("d");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void s1_a_file_without_read_permission(void)
{
	write_file("d/f", bytes_text("secret"));
	chmod("d/f", 0);
	if (getuid() == 0 && chown("d/f", 65534, 65534))
		ct_skip("no chown");
	become_nobody();
	empty_signature_then_error("d/f", EACCES);
}

static void w14_a_fifo(void)
{
	assert_int_equal(mkfifo("d/fifo", 0644), 0);
	double start = seconds_now();
	empty_signature_then_error("d/fifo", EINVAL);
	assert_true(seconds_now() - start < (ct_valgrind() ? 10 : 1));
}

static void w14_a_socket(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "d/sock" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	host_reset();
	csync_rs_sig("d/sock");
	struct bytes got = take_frame();
	assert_int_equal(got.n, 12);
	bytes_free(got);
	close(s);
}

static void w14_a_device(void)
{
	empty_signature_then_error("/dev/null", EINVAL);
}

static void w14_a_symlink(void)
{
	write_file("d/elsewhere", bytes_text("not for the peer"));
	assert_int_equal(symlink("elsewhere", "d/link"), 0);
	empty_signature_then_error("d/link", ELOOP);
	struct bytes want = bytes_text("not for the peer");
	assert_file("d/elsewhere", want);
	bytes_free(want);
}

static void w14_a_dangling_symlink(void)
{
	assert_int_equal(symlink("nowhere", "d/link"), 0);
	empty_signature_then_error("d/link", ELOOP);
	assert_int_equal(names_with("d", "nowhere"), 0);
}

static void t1_an_overlong_name(void)
{
	struct bytes b = bytes_fill(5000, 'n');
	empty_signature_then_error((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

static void t1_an_overlong_component(void)
{
	struct bytes b = bytes_join(bytes_text("d/"), bytes_fill(256, 'n'));
	empty_signature_then_error((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

static void null_is_an_empty_name(void)
{
	host_reset();
	csync_rs_sig(NULL);
	struct bytes got = take_frame();
	assert_int_equal(got.n, 12);
	bytes_free(got);
}

static void t6_a_read_only_directory_is_no_obstacle(void)
{
	struct bytes b = bytes_random(50000, 1), want = peer_signature(b);
	write_file("d/f", b);
	become_nobody();
	if (chmod("d", 0555))
		ct_skip("no chmod");
	host_reset();
	csync_rs_sig("d/f");
	struct bytes got = take_frame();
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
	bytes_free(b);
}

/* The connection breaks within the payload of a void function: closed first, if the process must end at all. */
static void closed_first(const char *text)
{
	(void)text;
	if (host.closed)
		_exit(0);
}

static void c19_a_broken_connection_is_not_the_end(void)
{
	struct bytes b = bytes_random(4 << 20, 2);
	write_file("d/f", b);
	for (unsigned n = 1; n < 4; n++) {
		host_reset();
		host.on_fatal = closed_first;
		host_on_write((struct host_step){ .from = n, .what = HOST_CLOSE });
		csync_rs_sig("d/f");
		assert_true(host.writes < n + 3);
	}
	bytes_free(b);
}

static const struct ct_case cases[] = {
	SAME(same_bytes_as_librsync),
	SAME(w12_the_constant_for_a_missing_file),
	SAME(w12_sums_of_16_bytes_for_an_empty_file),
	SAME(names_are_bytes_and_prefixes_are_replaced),
	SAME(empty_name_is_a_missing_file),
	FAULT(s15_large_pieces, WRONG),
	FAULT(s15_a_small_one_is_one_write, WRONG),
	FAULT(s1_a_directory, WRONG),
	FAULT(s1_a_file_without_read_permission, WRONG),
	FAULT(w14_a_fifo, HANG),
	FAULT(w14_a_socket, WRONG),
	FAULT(w14_a_device, WRONG),
	FAULT(w14_a_symlink, WRONG),
	FAULT(w14_a_dangling_symlink, WRONG),
	FAULT(t1_an_overlong_name, WRONG),
	FAULT(t1_an_overlong_component, WRONG),
	FAULT(null_is_an_empty_name, CRASH),
	FAULT(t6_a_read_only_directory_is_no_obstacle, WRONG),
	FAULT(c19_a_broken_connection_is_not_the_end, FATAL),
};
CT_MAIN("test_rs_sig", cases)
