/* mkpath: makes every parent of the last component. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_dir(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void parents_are_made_and_the_file_is_not(void)
{
	host_reset();
	assert_int_equal(mkpath("d/a/b/c/file", 0755), 0);
	assert_true(is_dir("d/a/b/c"));
	assert_int_equal(access("d/a/b/c/file", F_OK), -1);
	assert_int_equal(mkpath(absolute("d/x/y/file"), 0755), 0);
	assert_true(is_dir("d/x/y"));
	assert_int_equal(mkpath("rel/f", 0755), 0);
	assert_true(is_dir("rel"));
}

static void existing_parents_are_fine(void)
{
	host_reset();
	assert_int_equal(mkpath("d/a/b/c", 0755), 0);
	assert_int_equal(mkpath("d/a/b/c", 0755), 0);
	assert_int_equal(mkpath("d/a/b/d/e", 0755), 0);
	assert_true(is_dir("d/a/b/d"));
	assert_int_equal(mkpath("name", 0755), 0);
	assert_int_equal(access("name", F_OK), -1);
}

static void the_mode_is_the_callers_or_0700(void)
{
	struct stat st;
	host_reset();
	umask(0);
	assert_int_equal(mkpath("d/a/f", 0750), 0);
	assert_int_equal(stat("d/a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(mkpath("d/b/f", 0), 0);
	assert_int_equal(stat("d/b", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void several_slashes_are_one(void)
{
	host_reset();
	assert_int_equal(mkpath("d//a///b//f", 0755), 0);
	assert_true(is_dir("d/a/b"));
}

static void names_are_bytes(void)
{
	host_reset();
	assert_int_equal(mkpath("d/\xff\xfe/\x01/f", 0755), 0);
	assert_true(is_dir("d/\xff\xfe/\x01"));
}

static void a_directory_without_permission_is_an_error(void)
{
	host_reset();
	become_nobody();
	if (chmod("d", 0555))
		ct_skip("no chmod");
	if (getuid() == 0)
		ct_skip("cannot drop rights");
	errno = 0;
	int r = mkpath("d/a/f", 0755), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EACCES);
	assert_true(host_said(1, "d/a", "Permission denied", NULL));
}

static void null_is_an_error(void)
{
	host_reset();
	assert_int_equal(mkpath(NULL, 0755), -1);
}

static void t11_a_trailing_slash_is_a_directory_too(void)
{
	host_reset();
	assert_int_equal(mkpath("d/a/b/", 0755), 0);
	assert_true(is_dir("d/a/b"));
}

static void t11_a_file_is_no_parent(void)
{
	host_reset();
	write_file("d/file", bytes_text("x"));
	errno = 0;
	int r = mkpath("d/file/y", 0755), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENOTDIR);
	errno = 0;
	r = mkpath("d/file/y/z", 0755), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENOTDIR);
}

static void t11_a_link_to_a_directory_is_a_parent(void)
{
	host_reset();
	mkdir("d/real", 0755);
	assert_int_equal(symlink("real", "d/link"), 0);
	assert_int_equal(mkpath("d/link/a/f", 0755), 0);
	assert_true(is_dir("d/real/a"));
}

static void t11_an_overlong_path_is_an_error(void)
{
	struct bytes b = bytes_text("d");
	host_reset();
	for (int i = 0; i < 2500; i++)
		b = bytes_join(b, bytes_text("/aa"));
	errno = 0;
	int r = mkpath((char *)b.p, 0755), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENAMETOOLONG);
	bytes_free(b);
}

static void t11_an_overlong_component_is_an_error(void)
{
	struct bytes b = bytes_join(bytes_join(bytes_text("d/"), bytes_fill(256, 'n')), bytes_text("/f"));
	host_reset();
	errno = 0;
	int r = mkpath((char *)b.p, 0755), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENAMETOOLONG);
	bytes_free(b);
}

/* What the original does here depends on what lies on its stack. */
static void t11_the_root_and_the_empty_path_make_nothing(void)
{
	host_reset();
	char *before = listing(".");
	mkpath("", 0755);
	assert_int_equal(mkpath("/", 0755), 0);
	assert_int_equal(mkpath("//", 0755), 0);
	assert_int_equal(mkpath("/f", 0755), 0);
	char *after = listing(".");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void ends_with_newline(int level, const char *text)
{
	(void)level;
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void t11_messages_end_their_line(void)
{
	host_reset();
	host.on_message = ends_with_newline;
	mkpath("d/a/f", 0755);
	mkpath(NULL, 0755);
}

static const struct ct_case cases[] = {
	SAME(parents_are_made_and_the_file_is_not),
	SAME(existing_parents_are_fine),
	SAME(the_mode_is_the_callers_or_0700),
	SAME(several_slashes_are_one),
	SAME(names_are_bytes),
	SAME(a_directory_without_permission_is_an_error),
	SAME(null_is_an_error),
	FAULT(t11_a_trailing_slash_is_a_directory_too, WRONG),
	FAULT(t11_a_file_is_no_parent, WRONG),
	SAME(t11_a_link_to_a_directory_is_a_parent),
	FAULT(t11_an_overlong_path_is_an_error, CRASH | WRONG),
	SAME(t11_an_overlong_component_is_an_error),
	CANNOT(t11_the_root_and_the_empty_path_make_nothing, "it makes what its uninitialised stack says"),
	FAULT(t11_messages_end_their_line, WRONG),
};
CT_MAIN("test_mkpath", cases)
