/* csync_tls_peer_fingerprint: the SHA-256 that another library finds. */
#include "sessions.h"

#include <gnutls/crypto.h>
#include <stdio.h>

static void as_another_library_finds_it(void)
{
	struct bytes der = read_file(identity_file("p256", "cert.der"));
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	unsigned char hash[32];
	char expected[97];

	assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, der.p, der.n, hash), 0);
	for (int i = 0; i < 32; i++)
		snprintf(expected + 3 * i, 4, "%02X:", hash[i]);
	expected[95] = 0;
	for (int side = 0; side < 2; side++)
		assert_string_equal(csync_tls_peer_fingerprint(t.tls[side]), expected);
	talk_free(&t);
}

static void empty_before_the_handshake(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);

	assert_string_equal(csync_tls_peer_fingerprint(t.tls[CLIENT]), "");
	assert_string_equal(csync_tls_peer_fingerprint(NULL), "");
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(as_another_library_finds_it),
	OURS(empty_before_the_handshake),
};
CT_MAIN("test_tls_peer_fingerprint", cases)
