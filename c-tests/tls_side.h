/* csync_tls_client and csync_tls_server take and refuse the same: these are the cases of both. Included once by the
 * program of each, with its name as MAKE_SESSION. */
#include "sessions.h"

#include <fcntl.h>
#include <limits.h>

#define SOME ((csync_tls *)0x10)

static void refused(const csync_tls_config *config, int in, int out)
{
	csync_tls *tls = SOME;

	assert_int_equal(MAKE_SESSION(config, in, out, &tls), CSYNC_E_ARGUMENT);
	assert_null(tls);
}

static void what_is_refused(void)
{
	struct ends s = ends_make(UNIX_SOCKETS, 0), packets = ends_make(PACKET_SOCKETS, 0), p = ends_make(PIPES, 0);
	csync_tls_config *config = config_of("p256", NULL), *empty = NULL;

	assert_int_equal(csync_tls_config_new(NULL, &empty), CSYNC_OK);
	refused(NULL, s.in[0], s.out[0]);
	refused(empty, s.in[0], s.out[0]);
	refused(config, -1, s.out[0]);
	refused(config, s.in[0], -1);
	refused(config, INT_MIN, INT_MAX);
	refused(config, 150, 150);
	refused(config, packets.in[0], packets.out[0]);
	refused(config, p.out[0], p.in[0]);
	assert_int_equal(MAKE_SESSION(config, s.in[0], s.out[0], NULL), CSYNC_E_ARGUMENT);
	csync_tls_config_free(config);
	csync_tls_config_free(empty);
}

static void what_is_taken(void)
{
	csync_tls_config *config = config_of("p256", NULL);

	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct ends e = ends_make(kind, 0);
		int flags = fcntl(e.in[0], F_GETFL);
		csync_tls *tls = NULL;

		assert_int_equal(MAKE_SESSION(config, e.in[0], e.out[0], &tls), CSYNC_OK);
		assert_string_equal(csync_tls_error(tls), "");
		assert_int_equal(waiting(e.in[1]), 0);
		csync_tls_free(tls);
		/* the descriptors are the caller's, and as they were */
		assert_int_equal(fcntl(e.in[0], F_GETFL), flags);
		assert_int_equal(write(e.out[0], "x", 1), 1);
		assert_int_equal(waiting(e.in[1]), 1);
		ends_close(&e, 0);
		ends_close(&e, 1);
	}
	csync_tls_config_free(config);
}

static const struct ct_case cases[] = {
	OURS(what_is_refused),
	OURS(what_is_taken),
};
