/* split_dirname_basename: the table of rsync.c's own comment, and its edges. */
#include "ct.h"
#include "host.h"
#include "subject.h"

#include <stdlib.h>
#include <string.h>

static const struct row {
	const char *path, *dir, *base;
} rows[] = {
	{ "/", "/", "" },
	{ "//", "/", "" },
	{ "/foo", "/", "foo" },
	{ "//foo", "/", "foo" },
	{ "/some/path/", "/some/path", "" },
	{ "/some/path/foo", "/some/path", "foo" },
	{ "/some/path//foo", "/some/path", "foo" },
	{ "foo", "", "foo" },
	{ "a", "", "a" },
	{ "/a", "/", "a" },
	{ "a/", "a", "" },
	{ "", "", "" },
	{ "///a///", "///a", "" },
	{ "./x", ".", "x" },
	{ "../x/y", "../x", "y" },
	{ "\xff\xfe/\x80\x01", "\xff\xfe", "\x80\x01" },
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void the_table(void)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		char dir[64], base[64];
		memset(dir, 'x', sizeof(dir));
		memset(base, 'x', sizeof(base));
		split_dirname_basename(dir, base, rows[i].path);
		assert_string_equal(dir, rows[i].dir);
		assert_string_equal(base, rows[i].base);
		/* the input and its NUL are the most that is ever written */
		assert_int_equal(dir[strlen(rows[i].path) + 1], 'x');
		assert_int_equal(base[strlen(rows[i].path) + 1], 'x');
	}
}

static void either_result_may_be_left_out(void)
{
	char room[64];
	split_dirname_basename(NULL, room, "/some/path/foo");
	assert_string_equal(room, "foo");
	split_dirname_basename(room, NULL, "/some/path/foo");
	assert_string_equal(room, "/some/path");
	split_dirname_basename(NULL, NULL, "/some/path/foo");
}

/* Exactly strlen + 1 bytes on the heap: a checker sees one byte more. */
static void t10_a_byte_more_than_the_path_is_enough(void)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		size_t n = strlen(rows[i].path) + 1;
		char *dir = malloc(n), *base = malloc(n), *path = malloc(n);
		memcpy(path, rows[i].path, n);
		split_dirname_basename(dir, base, path);
		assert_string_equal(dir, rows[i].dir);
		assert_string_equal(base, rows[i].base);
		free(dir);
		free(base);
		free(path);
	}
}

static void long_paths_are_split(void)
{
	size_t n = 100000;
	char *path = malloc(n + 1), *dir = malloc(n + 1), *base = malloc(n + 1);
	memset(path, 'p', n);
	path[n] = 0;
	path[60000] = '/';
	split_dirname_basename(dir, base, path);
	assert_int_equal(strlen(dir), 60000);
	assert_int_equal(strlen(base), n - 60001);
	free(path);
	free(dir);
	free(base);
}

static void null_path_gives_empty_strings(void)
{
	char dir[4] = "xxx", base[4] = "xxx";
	split_dirname_basename(dir, base, NULL);
	assert_string_equal(dir, "");
	assert_string_equal(base, "");
	split_dirname_basename(NULL, NULL, NULL);
}

static const struct ct_case cases[] = {
	SAME(the_table),
	SAME(either_result_may_be_left_out),
	/* The fault is in the callers, which give strlen bytes for "/". */
	NOT_SHOWN(t10_a_byte_more_than_the_path_is_enough, "the fault is the callers', who give one byte less"),
	SAME(long_paths_are_split),
	FAULT(null_path_gives_empty_strings, CRASH),
};
CT_MAIN("test_split_dirname_basename", cases)
