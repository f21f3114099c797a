/*
 * One end of a TLS connection over TCP on loopback, by this library or by GnuTLS set up as csync2's conn.c does it.
 *
 *   peer csync|gnutls server|client PORT CERTIFICATE KEY MODE [OPTION=VALUE ...]
 *
 * Modes; both ends have the same one, with the same sizes. Every byte is checked.
 *   exchange   the client sends bytes=N in pieces of piece=N, the server answers with as many
 *   upload     the client sends, the server receives
 *   ping       the client sends a piece, the server sends it back, count=N times
 *   cut        the client sends, and is gone without a word (reset=1: with a reset)
 *   wait       the client shakes hands and reads; the server shakes hands and sits still
 *   echo       the server sends back what comes
 *   line       the client sends a line, text=TEXT, and expects the line answer=TEXT
 *   keys       as upload, for peers that change keys: update=N after every N pieces, request=1: ask for the peer's too
 * Options:
 *   version=12|13
 * For GnuTLS:
 *   mismatch=1 (the key need not be the certificate's)   priority=TEXT   recv=N (largest read)   retry=0: as the unpatched csync2, no call is repeated
 *
 * The last line tells, as "name=value ...": the peer's certificate's SHA-256, version, suite, bytes, CPU seconds of
 * handshake and transfer, seconds of the transfer, calls that wrote and that read, and "end", which is one of clean, cut,
 * or an error's number.
 */
#include "csync_rs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CUT = -1000 };

struct way {
	void (*start)(int fd, int is_server, const char *certificate, const char *key);
	/* n, 0 at a clean end, CUT, or another negative number */
	long (*read)(void *buffer, size_t count);
	long (*write)(const void *buffer, size_t count);
	int (*flush)(void);
	void (*update)(int request);
	void (*close)(void);
};

static int options_count;
static char **options;

static const char *option(const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (int i = 0; i < options_count; i++)
		if (strncmp(options[i], name, n) == 0 && options[i][n] == '=')
			return options[i] + n + 1;
	return otherwise;
}

static size_t number(const char *name, size_t otherwise)
{
	const char *text = option(name, NULL);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static char fingerprint[200], agreed[200];

static void die(const char *step, const char *why)
{
	printf("end=failed\n");
	fprintf(stderr, "peer: %s: %s\n", step, why);
	exit(3);
}

/* --- this library --- */

static csync_tls_config *config;
static csync_tls *tls;

static void say(void *userdata, int level, const char *message)
{
	(void)userdata;
	fprintf(stderr, "peer: <%d> %s\n", level, message);
}

static void ours_start(int fd, int is_server, const char *certificate, const char *key)
{
	csync_tls_options o = { .size = sizeof(o), .version = number("version", 0), .log = say };

	if (csync_tls_config_new(&o, &config) != CSYNC_OK)
		die("configuration", "refused");
	if (csync_tls_config_load(config, certificate, key) != CSYNC_OK)
		die("configuration", csync_tls_config_error(config));
	if ((is_server ? csync_tls_server : csync_tls_client)(config, fd, fd, &tls) != CSYNC_OK)
		die("session", "refused");
	if (csync_tls_handshake(tls) != CSYNC_OK)
		die("handshake", csync_tls_error(tls));
	snprintf(fingerprint, sizeof(fingerprint), "%s", csync_tls_peer_fingerprint(tls));
	snprintf(agreed, sizeof(agreed), "version=%c suite=%s", csync_tls_version(tls)[6], csync_tls_suite(tls));
}

static long judged(long n)
{
	if (n >= 0)
		return n;
	fprintf(stderr, "peer: %s\n", csync_tls_error(tls));
	return errno == ECONNABORTED ? CUT : -errno;
}

static long ours_read(void *buffer, size_t count)
{
	return judged(csync_tls_read(tls, buffer, count));
}

static long ours_write(const void *buffer, size_t count)
{
	return judged(csync_tls_write(tls, buffer, count));
}

static int ours_flush(void)
{
	return (int)judged(csync_tls_flush(tls));
}

static void ours_update(int request)
{
	(void)request;
	die("update", "this library changes its keys when they are used up, and not before");
}

static void ours_close(void)
{
	if (csync_tls_close(tls))
		fprintf(stderr, "peer: %s\n", csync_tls_error(tls));
	csync_tls_free(tls);
	csync_tls_config_free(config);
}

/* --- GnuTLS --- */

static gnutls_session_t session;
static gnutls_certificate_credentials_t credentials;

static void must(int code, const char *step)
{
	if (code < 0)
		die(step, gnutls_strerror_name(code));
}

static void theirs_start(int fd, int is_server, const char *certificate, const char *key)
{
	static const char *const priorities[] = { "PERFORMANCE", "PERFORMANCE:-VERS-ALL:+VERS-TLS1.2",
						  "PERFORMANCE:-VERS-ALL:+VERS-TLS1.3" };
	size_t version = number("version", 0);
	const gnutls_datum_t *chain;
	unsigned int count = 0;
	unsigned char hash[32];
	char *description;
	int code;

	must(gnutls_certificate_allocate_credentials(&credentials), "credentials");
	/* one that shows a certificate and has not its key */
	if (number("mismatch", 0))
		gnutls_certificate_set_flags(credentials, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
	if (strcmp(certificate, "-"))
		must(gnutls_certificate_set_x509_key_file(credentials, certificate, key, GNUTLS_X509_FMT_PEM), certificate);
	if (is_server)
		must(gnutls_certificate_set_x509_trust_file(credentials, certificate, GNUTLS_X509_FMT_PEM), certificate);
	must(gnutls_init(&session, (is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_SIGNAL), "init");
	must(gnutls_priority_set_direct(session, option("priority", priorities[version ? version - 11 : 0]), NULL), "priority");
	must(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials), "credentials");
	if (is_server) {
		/* sends the names of its authorities, as csync2 does */
		gnutls_certificate_send_x509_rdn_sequence(session, 0);
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	}
	gnutls_transport_set_int(session, fd);
	do
		code = gnutls_handshake(session);
	while (code == GNUTLS_E_WARNING_ALERT_RECEIVED || code == GNUTLS_E_AGAIN);
	if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
		die("handshake", gnutls_alert_get_name(gnutls_alert_get(session)));
	must(code, "handshake");
	chain = gnutls_certificate_get_peers(session, &count);
	if (count) {
		gnutls_hash_fast(GNUTLS_DIG_SHA256, chain[0].data, chain[0].size, hash);
		for (int i = 0; i < 32; i++)
			sprintf(fingerprint + 3 * i, i < 31 ? "%02X:" : "%02X", hash[i]);
	}
	description = gnutls_session_get_desc(session);
	snprintf(agreed, sizeof(agreed), "version=%c suite=%s",
		 gnutls_protocol_get_version(session) == GNUTLS_TLS1_3 ? '3' : '2', description);
	gnutls_free(description);
}

static int repeated(long code)
{
	return number("retry", 1) && (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED);
}

static long theirs_read(void *buffer, size_t count)
{
	size_t most = number("recv", count);
	long n;

	do
		n = gnutls_record_recv(session, buffer, count < most ? count : most);
	while (repeated(n));
	if (n < 0)
		fprintf(stderr, "peer: %s\n", gnutls_strerror_name(n));
	return n == GNUTLS_E_PREMATURE_TERMINATION ? CUT : n;
}

static long theirs_write(const void *buffer, size_t count)
{
	size_t done = 0;
	long n;

	while (done < count) {
		do
			n = gnutls_record_send(session, (const char *)buffer + done, count - done);
		while (repeated(n));
		if (n < 0) {
			fprintf(stderr, "peer: %s\n", gnutls_strerror_name(n));
			return n;
		}
		done += n;
	}
	return done;
}

static int theirs_flush(void)
{
	return 0;
}

static void theirs_update(int request)
{
	int code;

	do
		code = gnutls_session_key_update(session, request ? GNUTLS_KU_PEER : 0);
	while (code == GNUTLS_E_AGAIN);
	must(code, "key update");
}

static void theirs_close(void)
{
	gnutls_bye(session, GNUTLS_SHUT_RDWR);
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(credentials);
}

static const struct way ours = { ours_start, ours_read, ours_write, ours_flush, ours_update, ours_close };
static const struct way theirs = { theirs_start, theirs_read, theirs_write, theirs_flush, theirs_update, theirs_close };

/* --- what both do --- */

static const struct way *way;
static size_t bytes, piece, pieces;
static uint64_t moved, reads;
static long end;
static unsigned char *buffer, *pattern;

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

enum { PERIOD = 65521 };

static void make_pattern(void)
{
	uint32_t x = 1;

	pattern = malloc(PERIOD + piece);
	for (size_t i = 0; i < PERIOD; i++)
		pattern[i] = (x = x * 1664525 + 1013904223) >> 24;
	for (size_t i = 0; i < piece; i++)
		pattern[PERIOD + i] = pattern[i % PERIOD];
}

static int send_all(size_t n)
{
	size_t update = number("update", 0);

	for (size_t at = 0; at < n; pieces++) {
		size_t part = n - at < piece ? n - at : piece;

		if (update && pieces && pieces % update == 0)
			way->update(number("request", 0));
		end = way->write(pattern + at % PERIOD, part);
		if (end < 0)
			return -1;
		at += part;
		moved += part;
	}
	end = way->flush();
	return end;
}

static int receive_all(size_t n)
{
	int check = number("check", 1);

	for (size_t at = 0; at < n;) {
		size_t part = n - at < piece ? n - at : piece;

		end = way->read(buffer, part);
		if (end <= 0)
			return -1;
		reads++;
		if (check && memcmp(buffer, pattern + at % PERIOD, end)) {
			end = -EBADMSG;
			return -1;
		}
		at += end;
		moved += end;
	}
	return 0;
}

static void at_the_end(void)
{
	end = way->read(buffer, 1);
	if (end > 0)
		end = -EBADMSG;
}

static int connected(int is_server, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port) };
	socklen_t n = sizeof(a);
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), fd = s;

	if (is_server) {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(s, (struct sockaddr *)&a, n) || listen(s, 1) || getsockname(s, (struct sockaddr *)&a, &n))
			die("listen", strerror(errno));
		printf("port=%d\n", ntohs(a.sin_port));
		fflush(stdout);
		fd = accept(s, NULL, NULL);
		close(s);
	} else if (connect(s, (struct sockaddr *)&a, n)) {
		die("connect", strerror(errno));
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int main(int argc, char **argv)
{
	if (argc < 7)
		return 2;
	int is_server = strcmp(argv[2], "server") == 0, fd = connected(is_server, atoi(argv[3]));
	const char *mode = argv[6];
	double handshake, transfer, seconds;

	options = argv + 7;
	options_count = argc - 7;
	way = strcmp(argv[1], "csync") == 0 ? &ours : &theirs;
	bytes = number("bytes", 1 << 20);
	piece = number("piece", 16384);
	buffer = malloc(piece);
	make_pattern();
	handshake = cpu();
	way->start(fd, is_server, argv[4], argv[5]);
	transfer = cpu();
	handshake = transfer - handshake;
	seconds = now();
	if (strcmp(mode, "exchange") == 0) {
		if (is_server ? receive_all(bytes) || send_all(bytes) : send_all(bytes) || receive_all(bytes))
			goto told;
		if (is_server)
			at_the_end();
	} else if (strcmp(mode, "upload") == 0 || strcmp(mode, "keys") == 0) {
		if (is_server ? receive_all(bytes) : send_all(bytes))
			goto told;
		if (is_server)
			at_the_end();
	} else if (strcmp(mode, "ping") == 0) {
		size_t count = number("count", 100), update = number("update", 0);

		for (size_t i = 0; i < count; i++) {
			if (!is_server && update && i && i % update == 0)
				way->update(number("request", 0));
			if (is_server ? receive_all(piece) || send_all(piece) : send_all(piece) || receive_all(piece))
				goto told;
		}
		if (is_server)
			at_the_end();
	} else if (strcmp(mode, "cut") == 0) {
		if (is_server) {
			if (receive_all(SIZE_MAX))
				goto told;
		} else {
			struct linger now_l = { 1, 0 };

			send_all(bytes);
			if (number("reset", 0))
				setsockopt(fd, SOL_SOCKET, SO_LINGER, &now_l, sizeof(now_l));
			close(fd);
			return 0;
		}
	} else if (strcmp(mode, "echo") == 0) {
		while ((end = way->read(buffer, piece)) > 0) {
			moved += end;
			if ((end = way->write(buffer, end)) < 0 || (end = way->flush()) < 0)
				break;
		}
	} else if (strcmp(mode, "line") == 0) {
		char line[200];
		size_t at = 0;

		snprintf(line, sizeof(line), "%s\n", option("text", "hello"));
		end = way->write(line, strlen(line));
		while (end > 0 && at < sizeof(line) - 1 && (at == 0 || line[at - 1] != '\n'))
			if ((end = way->read(line + at, sizeof(line) - 1 - at)) > 0)
				at += end;
		line[at] = 0;
		moved = at;
		if (at == 0 || strcspn(line, "\n") != at - 1 || strncmp(line, option("answer", "hello"), at - 1)) {
			fprintf(stderr, "peer: got %s\n", line);
			end = -EBADMSG;
			goto told;
		}
	} else if (strcmp(mode, "wait") == 0) {
		if (is_server)
			sleep(number("seconds", 5));
		at_the_end();
	} else {
		return 2;
	}
	if (!is_server)
		end = 0;
told:
	seconds = now() - seconds;
	transfer = cpu() - transfer;
	way->close();
	close(fd);
	free(buffer);
	free(pattern);
	printf("peer=%s %s bytes=%llu handshake=%.6f cpu=%.6f seconds=%.6f pieces=%zu reads=%llu end=%s\n", fingerprint, agreed,
	       (unsigned long long)moved, handshake, transfer, seconds, pieces, (unsigned long long)reads,
	       end == 0 ? "clean" : end == CUT ? "cut" : "error");
	return end < 0 && end != CUT;
}
