/* csync_tls_suite: AES-128-GCM first, by the name in the standard. */
#include "sessions.h"

static void of_each_version(void)
{
	static const char *const expected[] = { "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256" };

	for (unsigned version = 11; version <= 13; version++) {
		csync_tls_options o = tls_options_none();
		o.version = version == 11 ? 0 : version;
		struct talk t = talk_of(UNIX_SOCKETS, "p256", &o);
		for (int side = 0; side < 2; side++)
			assert_string_equal(csync_tls_suite(t.tls[side]), expected[version != 12]);
		talk_free(&t);
	}
}

static void empty_before_the_handshake(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	assert_string_equal(csync_tls_suite(t.tls[CLIENT]), "");
	assert_string_equal(csync_tls_suite(NULL), "");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(of_each_version),
	OURS(empty_before_the_handshake),
};
CT_MAIN("test_tls_suite", cases)
