/* csync_engine_errno: the errno of the last call; the calling thread's errno is not meant. */
#include "laws.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void null_is_an_argument(void)
{
	assert_int_equal(csync_engine_errno(NULL), EINVAL);
}

static void of_the_last_call(void)
{
	struct csync_options o = options_none();
	o.silence_limit = 50;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	int differs;

	write_file("d/f", bytes_text("content"));
	assert_int_equal(csync_engine_errno(s.engine), 0);
	assert_int_equal(csync_engine_signature(s.engine, "d"), CSYNC_E_FILE);
	errno = EXDEV;
	assert_int_equal(csync_engine_errno(s.engine), EISDIR);
	assert_int_equal(csync_engine_errno(s.engine), EISDIR);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(csync_engine_signature(s.engine, "d/f"), CSYNC_OK);
	assert_int_equal(csync_engine_errno(s.engine), 0);
	assert_int_equal(csync_engine_signature(s.engine, NULL), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_engine_errno(s.engine), EINVAL);
	assert_int_equal(csync_engine_check(s.engine, "d/f", &differs), CSYNC_E_TIMEOUT);
	assert_int_equal(csync_engine_errno(s.engine), ETIMEDOUT);
	assert_int_equal(csync_engine_check(s.engine, "d/f", &differs), CSYNC_E_STATE);
	assert_int_equal(csync_engine_errno(s.engine), ENOTCONN);
	scene_end(&s);
}

static const struct ct_case cases[] = {
	OURS(null_is_an_argument),
	OURS(of_the_last_call),
};
CT_MAIN("test_engine_errno", cases)
