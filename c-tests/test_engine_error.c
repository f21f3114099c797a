/* csync_engine_error: file, step and reason of the last call. */
#include "laws.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void empty_for_null_and_where_nothing_went_wrong(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	assert_string_equal(csync_engine_error(NULL), "");
	assert_string_equal(csync_engine_error(s.engine), "");
	write_file("d/f", bytes_text("content"));
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
	scene_end(&s);
}

static void of_the_last_call(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("content"));
	assert_failed(s.engine, csync_engine_signature(s.engine, "d"), CSYNC_E_FILE, EISDIR, "d", "reading the file", "Is a directory");
	/* it stays until the next call */
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(csync_engine_error(s.engine), "Is a directory"));
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
	assert_failed(s.engine, csync_engine_signature(s.engine, "d/f/x"), CSYNC_E_FILE, ENOTDIR, "d/f/x", "Not a directory");
	assert_failed(s.engine, csync_engine_signature(s.engine, NULL), CSYNC_E_ARGUMENT, EINVAL, "path");
	scene_end(&s);
}

/* Names of any bytes, and what the peer says, in one line. */
static void odd_names_and_odd_peers(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	static const char *const names[] = { "d/new\nline/x", "d/\xff\xfe/x", "d/%s%n/x", "d/\"quoted\"/x" };

	for (size_t i = 0; i < 4; i++) {
		feed_line(s.e.out[1], "octet-stream 5\nrs\0026");
		feed(s.e.out[1], bytes_of("\0", 1));
		csync_status status = csync_engine_patch(s.engine, names[i]);
		assert_true(status == CSYNC_E_FILE || status == CSYNC_E_FORMAT);
		assert_true(strlen(csync_engine_error(s.engine)) > 5);
		arrived(s.e.in[1]);
		if (status != CSYNC_E_FILE)
			break;
	}
	scene_end(&s);
}

static void a_peer_that_says_much(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct bytes line = bytes_fill(100001, 'x');

	line.p[100000] = '\n';
	line.p[10] = 0;
	line.p[20] = 27;
	feed(s.e.out[1], line);
	csync_status status = csync_engine_receive(s.engine, 1, NULL);
	assert_failed(s.engine, status, CSYNC_E_FORMAT, EIO, "the peer sent", "xxx");
	/* no terminal is led astray, and the length is bounded */
	assert_null(strchr(csync_engine_error(s.engine), 27));
	assert_true(strlen(csync_engine_error(s.engine)) < 5000);
	feed_line(s.e.out[1], "ERROR\n");
	assert_failed(s.engine, csync_engine_receive(s.engine, 1, NULL), CSYNC_E_PEER, EIO, "peer reports");
	scene_end(&s);
}

static const struct ct_case cases[] = {
	OURS(empty_for_null_and_where_nothing_went_wrong),
	OURS(of_the_last_call),
	OURS(odd_names_and_odd_peers),
	OURS(a_peer_that_says_much),
};
CT_MAIN("test_engine_error", cases)
