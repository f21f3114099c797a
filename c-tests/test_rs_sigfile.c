/* csync_rs_sigfile: a FILE with the signature, at its end; none for a missing file; -1 for an error. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_file_holds_librsyncs_bytes_and_stands_at_its_end(void)
{
	static const size_t sizes[] = { 0, 1, 2048, 2049, 300001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = bytes_random(sizes[i], i), want = peer_signature(b);
		FILE *f = NULL;
		host_reset();
		write_file("d/f", b);
		assert_int_equal(csync_rs_sigfile("d/f", &f), 0);
		assert_non_null(f);
		assert_int_equal(ftell(f), want.n);
		rewind(f);
		struct bytes got = rest_of(f);
		assert_bytes(got, want);
		fclose(f);
		bytes_free(got);
		bytes_free(want);
		bytes_free(b);
	}
	assert_int_equal(host.out_len, 0);
}

static void the_file_can_be_sent(void)
{
	struct bytes b = bytes_random(50000, 1), want = peer_signature(b);
	FILE *f = NULL;
	host_reset();
	write_file("d/f", b);
	assert_int_equal(csync_rs_sigfile("%t%/d/f", &f), 0);
	csync_send_file(f);
	fclose(f);
	struct bytes got = take_frame();
	assert_bytes(got, want);
	bytes_free(got);
	bytes_free(want);
	bytes_free(b);
}

static void a_missing_file_is_no_error(void)
{
	FILE *f = stdin;
	host_reset();
	assert_int_equal(csync_rs_sigfile("d/none", &f), 0);
	assert_null(f);
	f = stdin;
	assert_int_equal(csync_rs_sigfile("none/none", &f), 0);
	assert_null(f);
	f = stdin;
	assert_int_equal(csync_rs_sigfile("", &f), 0);
	assert_null(f);
}

static void refused(const char *name, int want_errno)
{
	FILE *f = stdin;
	host_reset();
	errno = 0;
	int r = csync_rs_sigfile(name, &f), e = errno;
	assert_int_equal(r, -1);
	assert_null(f);
	assert_int_equal(e, want_errno);
}

static void an_unreadable_file_is_an_error(void)
{
	write_file("d/f", bytes_text("x"));
	chmod("d/f", 0);
	if (getuid() == 0 && chown("d/f", 65534, 65534))
		ct_skip("no chown");
	become_nobody();
	refused("d/f", EACCES);
}

static void an_overlong_name_is_an_error(void)
{
	struct bytes b = bytes_fill(5000, 'n');
	refused((char *)b.p, ENAMETOOLONG);
	bytes_free(b);
}

static void w14_a_directory_has_the_right_errno(void)
{
	refused("d", EISDIR);
}

static void w14_a_fifo_does_not_block(void)
{
	assert_int_equal(mkfifo("d/fifo", 0644), 0);
	refused("d/fifo", EINVAL);
}

static void w14_a_device_has_the_right_errno(void)
{
	refused("/dev/null", EINVAL);
}

static void w14_a_symlink_is_not_followed(void)
{
	write_file("d/f", bytes_text("x"));
	assert_int_equal(symlink("f", "d/link"), 0);
	refused("d/link", ELOOP);
}

static void w14_a_dangling_symlink_is_not_missing(void)
{
	assert_int_equal(symlink("nowhere", "d/link"), 0);
	refused("d/link", ELOOP);
}

static void t6_a_read_only_directory_is_no_obstacle(void)
{
	FILE *f = NULL;
	write_file("d/f", bytes_text("x"));
	become_nobody();
	if (chmod("d", 0555))
		ct_skip("no chmod");
	host_reset();
	assert_int_equal(csync_rs_sigfile("d/f", &f), 0);
	assert_non_null(f);
	fclose(f);
}

static void null_name_is_an_empty_name(void)
{
	FILE *f = stdin;
	host_reset();
	assert_int_equal(csync_rs_sigfile(NULL, &f), 0);
	assert_null(f);
}

static void null_result_is_an_error(void)
{
	write_file("d/f", bytes_text("x"));
	host_reset();
	errno = 0;
	assert_int_equal(csync_rs_sigfile("d/f", NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static const struct ct_case cases[] = {
	SAME(the_file_holds_librsyncs_bytes_and_stands_at_its_end),
	SAME(the_file_can_be_sent),
	SAME(a_missing_file_is_no_error),
	SAME(an_unreadable_file_is_an_error),
	SAME(an_overlong_name_is_an_error),
	FAULT(w14_a_directory_has_the_right_errno, WRONG),
	FAULT(w14_a_fifo_does_not_block, HANG),
	FAULT(w14_a_device_has_the_right_errno, WRONG),
	FAULT(w14_a_symlink_is_not_followed, WRONG),
	FAULT(w14_a_dangling_symlink_is_not_missing, WRONG),
	FAULT(t6_a_read_only_directory_is_no_obstacle, WRONG),
	FAULT(null_name_is_an_empty_name, CRASH),
	FAULT(null_result_is_an_error, CRASH),
};
CT_MAIN("test_rs_sigfile", cases)
