/* do_mkstemp: a new file of a random name, with the permissions asked for. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_new_file_is_opened_for_both_directions(void)
{
	char name[] = "d/.f.XXXXXX", read_back[6] = "";
	struct stat st, by_name;
	host_reset();
	int fd = do_mkstemp(name, 0600);
	assert_true(fd >= 0);
	assert_null(strstr(name, "XXXXXX"));
	assert_int_equal(strncmp(name, "d/.f.", 5), 0);
	assert_int_equal(strlen(name), strlen("d/.f.XXXXXX"));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(lstat(name, &by_name), 0);
	assert_int_equal(st.st_ino, by_name.st_ino);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(pread(fd, read_back, 5, 0), 5);
	assert_string_equal(read_back, "hello");
	close(fd);
}

static void the_owner_may_always_write(void)
{
	char name[] = "d/.f.XXXXXX";
	struct stat st;
	host_reset();
	int fd = do_mkstemp(name, 0440);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	close(fd);
}

static void t8_names_do_not_repeat(void)
{
	host_reset();
	for (int i = 0; i < 300; i++) {
		char name[] = "d/XXXXXX";
		int fd = do_mkstemp(name, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	char *all = listing("d");
	size_t lines = 0;
	for (char *p = all; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 300);
	free(all);
}

/* "Forces permissions", says the comment. */
static void t8_permissions_are_forced_whatever_the_umask(void)
{
	char name[] = "d/.f.XXXXXX";
	struct stat st;
	host_reset();
	umask(077);
	int fd = do_mkstemp(name, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	close(fd);
}

static void a_template_without_its_letters_is_refused(void)
{
	char a[] = "d/f.XXXXX", b[] = "d/f", c[] = "";
	char *const bad[] = { a, b, c };
	host_reset();
	for (int i = 0; i < 3; i++) {
		errno = 0;
		assert_int_equal(do_mkstemp(bad[i], 0600), -1);
		assert_int_not_equal(errno, 0);
	}
	char *all = listing("d");
	assert_string_equal(all, "");
	free(all);
}

static void a_missing_directory_is_an_error(void)
{
	char name[] = "none/.f.XXXXXX";
	host_reset();
	errno = 0;
	assert_int_equal(do_mkstemp(name, 0600), -1);
	assert_int_equal(errno, ENOENT);
}

static void a_name_that_is_too_long_is_an_error(void)
{
	struct bytes b = bytes_join(bytes_join(bytes_text("d/"), bytes_fill(250, 'n')), bytes_text("XXXXXX"));
	host_reset();
	errno = 0;
	assert_int_equal(do_mkstemp((char *)b.p, 0600), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	bytes_free(b);
}

static void names_are_bytes(void)
{
	char name[] = "d/\xff\xfe.XXXXXX";
	host_reset();
	int fd = do_mkstemp(name, 0600);
	assert_true(fd >= 0);
	assert_int_equal(access(name, F_OK), 0);
	close(fd);
}

static void null_is_an_error(void)
{
	host_reset();
	errno = 0;
	assert_int_equal(do_mkstemp(NULL, 0600), -1);
	assert_int_equal(errno, EINVAL);
}

static const struct ct_case cases[] = {
	SAME(a_new_file_is_opened_for_both_directions),
	SAME(the_owner_may_always_write),
	NOT_SHOWN(t8_names_do_not_repeat, "a repeated name is too rare to be met"),
	FAULT(t8_permissions_are_forced_whatever_the_umask, WRONG),
	SAME(a_template_without_its_letters_is_refused),
	SAME(a_missing_directory_is_an_error),
	FAULT(a_name_that_is_too_long_is_an_error, WRONG),
	SAME(names_are_bytes),
	FAULT(null_is_an_error, CRASH),
};
CT_MAIN("test_do_mkstemp", cases)
