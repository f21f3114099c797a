/* csync_tls_handshake: over every kind of connection, with every kind of key; what goes wrong has a status and words. */
#include "sessions.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static void kinds_of_keys(void)
{
	static const char *const kinds[] = { "rsa1024", "rsa2048", "rsa3072", "rsa4096", "p256", "p384", "ed25519",
					     "signed-client" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (unsigned version = 12; version <= 13; version++) {
			csync_tls_options o = tls_options_none();
			o.version = version;
			struct talk t = talk_of(UNIX_SOCKETS, kinds[i], &o);
			assert_int_equal(csync_tls_write(t.tls[SERVER], "x", 1), 1);
			assert_int_equal(csync_tls_flush(t.tls[SERVER]), 0);
			assert_bytes(tls_bytes(t.tls[CLIENT], 1), bytes_text("x"));
			talk_free(&t);
		}
}

static void kinds_of_connections(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++)
		for (int non_blocking = 0; non_blocking < 2; non_blocking++) {
			struct talk t = talk_without_handshake(kind, "p256", NULL);
			if (non_blocking)
				ends_non_blocking(&t.e, CLIENT);
			talk_handshake(&t);
			/* once is enough */
			assert_int_equal(csync_tls_handshake(t.tls[CLIENT]), CSYNC_OK);
			talk_free(&t);
		}
}

/* What the peer sends, then closes (or not), and what comes of it in both roles. */
static void fed(const void *p, size_t n, int closes, csync_status status, const char *text)
{
	csync_tls_options o = tls_options_none();
	o.handshake_limit = 200;

	for (int role = CLIENT; role <= SERVER; role++) {
		struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", &o);
		csync_tls_free(t.tls[!role]);
		t.tls[!role] = NULL;
		assert_int_equal(write(t.e.out[!role], p, n), n);
		if (closes)
			ends_close(&t.e, !role);
		csync_status s = csync_tls_handshake(t.tls[role]);
		if (s != status || !strstr(csync_tls_error(t.tls[role]), text))
			fail_msg("role %d: %d, `%s`; expected %d, `%s`", role, s, csync_tls_error(t.tls[role]), status, text);
		assert_int_equal(csync_tls_handshake(t.tls[role]), CSYNC_E_STATE);
		assert_non_null(strstr(csync_tls_error(t.tls[role]), "has ended before"));
		assert_null(csync_tls_peer_certificate(t.tls[role], NULL));
		talk_free(&t);
	}
}

static void what_is_no_tls(void)
{
	static const unsigned char large[] = { 0x16, 3, 3, 0xff, 0xff, 1 }, alert[] = { 0x15, 3, 3, 0, 2, 2, 40 },
				   empty[] = { 0x16, 3, 3, 0, 0 };

	fed("OK (activating_ssl).\n", 21, 0, CSYNC_E_FORMAT, "no TLS");
	fed("SSL\nCONFIG\nHELLO\n", 17, 0, CSYNC_E_FORMAT, "no TLS");
	fed("\0\0\0\0\0\0\0\0", 8, 0, CSYNC_E_FORMAT, "no TLS");
	fed(large, sizeof(large), 0, CSYNC_E_FORMAT, "");
	fed(empty, sizeof(empty), 0, CSYNC_E_FORMAT, "");
	fed(alert, sizeof(alert), 0, CSYNC_E_PEER, "HandshakeFailure");
}

static void a_peer_that_is_gone_or_silent(void)
{
	fed("", 0, 1, CSYNC_E_CONNECTION, "");
	fed("\x16\x03\x03", 3, 1, CSYNC_E_CONNECTION, "");
	fed("", 0, 0, CSYNC_E_TIMEOUT, "200 ms");
	fed("\x16\x03\x03", 3, 0, CSYNC_E_TIMEOUT, "200 ms");
}

/* Random bytes, and a good beginning with one byte changed: whatever comes, a status comes of it. */
static void hostile_bytes(void)
{
	csync_tls_options o = tls_options_none();
	o.handshake_limit = 20;
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", &o);
	struct bytes hello;

	assert_int_equal(csync_tls_handshake(t.tls[CLIENT]), CSYNC_E_TIMEOUT);
	hello = arrived(t.e.in[SERVER]);
	assert_true(hello.n > 100);
	talk_free(&t);
	for (unsigned i = 0; i < (ct_valgrind() ? 30 : 600); i++) {
		struct bytes b = i % 2 ? bytes_random(i % 50 + 1, i) : bytes_of(hello.p, hello.n);
		if (i % 2 == 0)
			b.p[i / 2 % b.n] ^= 1 << i % 7;
		else if (i % 4 == 1)
			b.p[0] = 0x16;
		t = talk_without_handshake(UNIX_SOCKETS, "p256", &o);
		assert_int_equal(write(t.e.out[CLIENT], b.p, b.n), b.n);
		ends_close(&t.e, CLIENT);
		csync_status s = csync_tls_handshake(t.tls[SERVER]);
		assert_true(s == CSYNC_E_FORMAT || s == CSYNC_E_CONNECTION || s == CSYNC_E_PEER || s == CSYNC_E_IDENTITY);
		talk_free(&t);
		bytes_free(b);
	}
}

/* The limit is for all of it: a byte now and then does not prolong it. */
static void *drip(void *arg)
{
	static const unsigned char head[] = { 0x16, 3, 1, 0x3f, 0xff };
	int fd = *(int *)arg;

	for (size_t i = 0; write(fd, i < sizeof(head) ? &head[i] : &head[1], 1) == 1; i++)
		usleep(10000);
	return NULL;
}

static void a_peer_that_drips(void)
{
	csync_tls_options o = tls_options_none();
	o.handshake_limit = 300;
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", &o);
	pthread_t thread;

	signal(SIGPIPE, SIG_IGN);
	thread_start(&thread, drip, &t.e.out[CLIENT]);
	assert_int_equal(csync_tls_handshake(t.tls[SERVER]), CSYNC_E_TIMEOUT);
	ends_close(&t.e, SERVER);
	pthread_join(thread, NULL);
	talk_free(&t);
}

static void no_sigpipe(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct talk t = talk_without_handshake(kind, "p256", NULL);
		ends_close(&t.e, SERVER);
		assert_int_equal(csync_tls_handshake(t.tls[CLIENT]), CSYNC_E_CONNECTION);
		talk_free(&t);
	}
}

static void null_and_closed(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);

	assert_int_equal(csync_tls_handshake(NULL), CSYNC_E_ARGUMENT);
	csync_tls_close(t.tls[CLIENT]);
	assert_int_equal(csync_tls_handshake(t.tls[CLIENT]), CSYNC_E_STATE);
	talk_free(&t);
}

static void versions_that_do_not_meet(void)
{
	csync_tls_options o = tls_options_none();
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	csync_tls *client, *server;

	o.version = 12;
	csync_tls_config *old = config_of("p256", &o);
	o.version = 13;
	csync_tls_config *new = config_of("p256", &o);
	assert_int_equal(csync_tls_client(old, e.in[0], e.out[0], &client), CSYNC_OK);
	assert_int_equal(csync_tls_server(new, e.in[1], e.out[1], &server), CSYNC_OK);
	struct shaking s = { .tls = server };
	shake_start(&s);
	assert_int_equal(csync_tls_handshake(client), CSYNC_E_PEER);
	assert_non_null(strstr(csync_tls_error(client), "ProtocolVersion"));
	shake_join(&s);
	assert_int_equal(s.status, CSYNC_E_FORMAT);
	csync_tls_free(client);
	csync_tls_free(server);
	csync_tls_config_free(old);
	csync_tls_config_free(new);
}

static const struct ct_case cases[] = {
	OURS_F(kinds_of_keys, CT_LARGE),
	OURS(kinds_of_connections),
	OURS(what_is_no_tls),
	OURS(a_peer_that_is_gone_or_silent),
	OURS(hostile_bytes),
	OURS(a_peer_that_drips),
	OURS(no_sigpipe),
	OURS(null_and_closed),
	OURS(versions_that_do_not_meet),
};
CT_MAIN("test_tls_handshake", cases)
