/* csync_engine_over_host: the connection that csync2's own symbols name. */
#include "ends.h"
#include "host.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static csync_engine *over_host(const struct csync_options *o)
{
	csync_engine *engine = NULL;

	assert_int_equal(csync_engine_over_host(o, &engine), CSYNC_OK);
	assert_non_null(engine);
	return engine;
}

static void null_and_sizes(void)
{
	csync_engine *engine = (csync_engine *)0x10;
	struct csync_options o = options_none();

	assert_int_equal(csync_engine_over_host(NULL, NULL), CSYNC_E_ARGUMENT);
	for (o.size = 0; o.size < sizeof(size_t); o.size++) {
		engine = (csync_engine *)0x10;
		assert_int_equal(csync_engine_over_host(&o, &engine), CSYNC_E_ARGUMENT);
		assert_null(engine);
	}
	for (o.size = sizeof(size_t); o.size <= sizeof(o); o.size++)
		csync_engine_free(over_host(&o));
	csync_engine_free(over_host(NULL));
}

static void its_reads_and_writes(void)
{
	struct bytes b = bytes_random(100001, 1), made;
	int differs = 77;

	host_reset();
	write_file("d/f", b);
	csync_engine *engine = over_host(NULL);
	assert_ok(engine, csync_engine_signature(engine, "d/f"));
	assert_bytes(take_frame(), peer_signature(b));
	feed_frame_of(peer_signature(b));
	assert_ok(engine, csync_engine_check(engine, "d/f", &differs));
	assert_int_equal(differs, 0);
	feed_frame_of(peer_no_signature());
	assert_ok(engine, csync_engine_delta(engine, "d/f"));
	assert_true(host.largest_write <= CSYNC_CHUNK);
	assert_int_equal(peer_patch(bytes_text(""), take_frame(), &made), 0);
	assert_bytes(made, b);
	feed_frame_of(peer_delta(peer_signature(b), bytes_text("new")));
	assert_ok(engine, csync_engine_patch(engine, "d/f"));
	assert_file("d/f", bytes_text("new"));
	assert_rest("");
	csync_engine_free(engine);
	assert_int_equal(host.closed, 0);
}

/* Names are paths here: the host's prefixes are for the functions of rsync.c. */
static void names_are_not_mapped(void)
{
	host_reset();
	write_file("d/f", bytes_text("content"));
	csync_engine *engine = over_host(NULL);
	assert_ok(engine, csync_engine_signature(engine, "%t%/d/f"));
	assert_bytes(take_frame(), peer_no_signature());
	csync_engine_free(engine);
}

static void again_and_short_counts(void)
{
	struct bytes b = bytes_random(100001, 1);

	host_reset();
	write_file("d/f", b);
	host_on_write((struct host_step){ .from = 1, .every = 3, .what = HOST_GIVE, .value = TLS_AGAIN });
	host_on_write((struct host_step){ .from = 2, .every = 3, .what = HOST_SHORT, .value = 100 });
	csync_engine *engine = over_host(NULL);
	assert_ok(engine, csync_engine_signature(engine, "d/f"));
	assert_bytes(take_frame(), peer_signature(b));
	assert_int_equal(host.bad_retries, 0);
	csync_engine_free(engine);
}

static void a_lost_connection(void)
{
	host_reset();
	write_file("d/f", bytes_text("content"));
	host_on_write((struct host_step){ .from = 1, .what = HOST_CLOSE });
	csync_engine *engine = over_host(NULL);
	assert_failed(engine, csync_engine_signature(engine, "d/f"), CSYNC_E_CONNECTION, EPIPE, "sending", "Broken pipe", "d/f");
	assert_failed(engine, csync_engine_signature(engine, "d/f"), CSYNC_E_STATE, ENOTCONN, "earlier call");
	csync_engine_free(engine);
	/* nobody's end but the caller's */
	assert_int_equal(host.closed, 0);
}

static const struct ct_case cases[] = {
	OURS(null_and_sizes),
	OURS(its_reads_and_writes),
	OURS(names_are_not_mapped),
	OURS(again_and_short_counts),
	OURS(a_lost_connection),
};
CT_MAIN("test_engine_over_host", cases)
