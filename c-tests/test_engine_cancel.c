/* csync_engine_cancel. That it ends every verb, from a thread, from a signal handler and ahead of it, is among the laws. */
#include "laws.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void null_is_allowed(void)
{
	csync_engine_cancel(NULL);
}

static void twice_is_once(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	csync_engine_cancel(s.engine);
	csync_engine_cancel(s.engine);
	assert_failed(s.engine, csync_engine_signature(s.engine, "d/f"), CSYNC_E_CANCELLED, ECANCELED, "d/f");
	csync_engine_cancel(s.engine);
	assert_failed(s.engine, csync_engine_signature(s.engine, "d/f"), CSYNC_E_STATE, ENOTCONN, "earlier call");
	scene_end(&s);
}

/* A refused argument is said, and the cancellation is still to come. */
static void an_argument_comes_first(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	csync_engine_cancel(s.engine);
	assert_failed(s.engine, csync_engine_signature(s.engine, NULL), CSYNC_E_ARGUMENT, EINVAL, "NULL");
	assert_failed(s.engine, csync_engine_signature(s.engine, "d/f"), CSYNC_E_CANCELLED, ECANCELED, "d/f");
	assert_int_equal(arrived(s.e.in[1]).n, 0);
	scene_end(&s);
}

static csync_engine *to_cancel;

static void cancelling_wait(void *userdata, int for_write, unsigned int milliseconds)
{
	(void)userdata, (void)for_write;
	assert_true(milliseconds > 0 && milliseconds <= 100);
	csync_engine_cancel(to_cancel);
}

/* From the functions of the transport itself. */
static void from_a_function_of_the_transport(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct csync_transport t = wire_functions(&w);
	int differs = 77;

	t.wait = cancelling_wait;
	assert_int_equal(csync_engine_over_transport(&t, NULL, &to_cancel), CSYNC_OK);
	assert_failed(to_cancel, csync_engine_check(to_cancel, "d/f", &differs), CSYNC_E_CANCELLED, ECANCELED, "d/f");
	assert_int_equal(differs, 77);
	csync_engine_free(to_cancel);
}

static const struct ct_case cases[] = {
	OURS(null_is_allowed),
	OURS(twice_is_once),
	OURS(an_argument_comes_first),
	OURS(from_a_function_of_the_transport),
};
CT_MAIN("test_engine_cancel", cases)
