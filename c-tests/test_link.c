/* A whole transfer through the fake host, for the links that are tried: static, shared, with -flto. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <stdlib.h>
#include <unistd.h>

static void a_file_goes_round(void)
{
	struct bytes old = bytes_random(100000, 1), b = bytes_join(bytes_text("new"), bytes_part(old, 0, 90000)), delta;

	write_file("d/here", old);
	write_file("d/there", b);
	host_reset();
	csync_rs_sig("%t%/d/here");
	feed_frame_of(take_frame());
	assert_int_equal(csync_rs_delta("%t%/d/there"), 0);
	delta = take_frame();
	assert_true(delta.n < 5000);
	feed_frame_of(delta);
	assert_int_equal(csync_rs_patch("%t%/d/here"), 0);
	assert_file("d/here", b);
	csync_rs_sig("d/here");
	feed_frame_of(take_frame());
	assert_int_equal(csync_rs_check("d/there", 1), 0);
#ifndef CT_ORIGINAL /* s2: it crashes */
	/* the host's log, and its substitution of prefixes, are the ones used */
	feed_frame_of(peer_no_signature());
	assert_int_equal(csync_rs_delta("%t%/d/none"), -1);
	assert_true(host_said(1, "none", NULL));
#endif
	bytes_free(old);
	bytes_free(b);
}

static const struct ct_case cases[] = {
	SAME(a_file_goes_round),
};
CT_MAIN("test_link", cases)
