/* csync_engine_free: at any time between calls; the connection stays open. */
#include "laws.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void null_is_allowed(void)
{
	csync_engine_free(NULL);
}

static void before_any_call_and_after_each_kind_of_end(void)
{
	for (int i = 0; i < 5; i++) {
		struct ends e = ends_make(UNIX_SOCKETS, 0);
		struct csync_options o = options_none();
		o.silence_limit = 50;
		o.temp_dir = "t";
		csync_engine *engine = engine_on(&e, 0, &o);
		struct call c = { .verb = CSYNC_PULL, .path = "d/f" };

		if (i == 1)
			assert_ok(engine, csync_engine_signature(engine, "d/f")); /* remembered for a patch that never comes */
		if (i == 2)
			assert_int_equal(call_now(engine, &c), CSYNC_E_TIMEOUT);
		if (i == 3)
			csync_engine_cancel(engine);
		if (i == 4)
			assert_int_equal(csync_engine_signature(engine, NULL), CSYNC_E_ARGUMENT);
		csync_engine_free(engine);
		/* the connection is the caller's, and works */
		arrived(e.in[1]);
		assert_int_equal(write(e.out[0], "x", 1), 1);
		assert_int_equal(arrived(e.in[1]).n, 1);
		ends_close(&e, 0);
		ends_close(&e, 1);
	}
}

static void another_engine_over_the_same_connection(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);

	write_file("d/f", bytes_text("content"));
	for (int i = 0; i < 100; i++) {
		csync_engine *engine = engine_on(&e, 0, NULL);
		assert_ok(engine, csync_engine_signature(engine, "d/f"));
		csync_engine_free(engine);
		assert_true(arrived(e.in[1]).n > 0);
	}
}

static const struct ct_case cases[] = {
	OURS(null_is_allowed),
	OURS(before_any_call_and_after_each_kind_of_end),
	OURS(another_engine_over_the_same_connection),
};
CT_MAIN("test_engine_free", cases)
