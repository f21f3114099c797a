/* csync_tls_peer_certificate: byte by byte, and none before the handshake. */
#include "sessions.h"

static void the_bytes(void)
{
	static const char *const kinds[] = { "rsa2048", "p256", "ed25519" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bytes der = read_file(identity_file(kinds[i], "cert.der"));
		struct talk t = talk_of(UNIX_SOCKETS, kinds[i], NULL);

		for (int side = 0; side < 2; side++) {
			size_t n = 1;
			const unsigned char *p = csync_tls_peer_certificate(t.tls[side], &n);
			assert_bytes(bytes_of(p, n), der);
			assert_ptr_equal(csync_tls_peer_certificate(t.tls[side], NULL), p);
			csync_tls_close(t.tls[side]);
			assert_ptr_equal(csync_tls_peer_certificate(t.tls[side], NULL), p);
		}
		talk_free(&t);
	}
}

static void none_before_the_handshake(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);
	size_t n = 1;

	assert_null(csync_tls_peer_certificate(t.tls[CLIENT], &n));
	assert_int_equal(n, 0);
	n = 1;
	assert_null(csync_tls_peer_certificate(NULL, &n));
	assert_int_equal(n, 0);
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(the_bytes),
	OURS(none_before_the_handshake),
};
CT_MAIN("test_tls_peer_certificate", cases)
