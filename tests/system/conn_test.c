/*
 * csync2's conn.c, the real one (conn.o of a build), between a caller like libcsync_rs and a peer:
 *
 *   conn_test SCENARIO LAYER DIRECTORY
 *
 * LAYER is plain, pipe (csync2 started by ssh may get two) or tls (which GnuTLS carries over sockets alone).
 * DIRECTORY holds csync2's key and certificate.
 *
 * Exit code 0 when conn.c did what it has to; otherwise 1, and stderr says what happened. The peer is a
 * child that does not use conn.c.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* what is tried */
extern int conn_fd_in, conn_fd_out;
int conn_open(const char *peername);
int conn_set(int infd, int outfd);
int conn_activate_ssl(int server_role);
int conn_read(void *buf, size_t count);
int conn_write(const void *buf, size_t count);
void conn_printf(const char *fmt, ...);
size_t conn_gets(char *line, size_t size);

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* what conn.c asks of the rest of csync2; the database has no certificate of any peer */
char *systemdir, *csync_port, myhostname[256] = "localhost";
int bind_to_myhostname, csync_debug_level, csync_server_child_pid;
FILE *csync_debug_out;

void csync_debug(int level, const char *format, ...)
{
	va_list arguments;

	if (level > 1)
		return;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
}

void csync_fatal(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	exit(1);
}

const char *url_encode(const char *text) { return text; }
void csync_db_sql(const char *what, const char *format, ...) { (void)what, (void)format; }
void *csync_db_begin(const char *what, const char *format, ...) { (void)what, (void)format; return NULL; }
int csync_db_next(void *vm, const char *what, int *n, const char ***values, const char ***names)
{
	(void)vm, (void)what, (void)n, (void)values, (void)names;
	return 0;
}
void csync_db_fin(void *vm, const char *what) { (void)vm, (void)what; }
const void *csync_db_colblob(void *vm, int column) { (void)vm, (void)column; return NULL; }

/* the peer: a child, with GnuTLS or without */
struct peer {
	int in, out;
	gnutls_session_t tls;
};

enum { LINE = 40000, STREAM = 3 << 20, PIECE = 16384 };

/* A stream that does not repeat itself at any power of two. */
static char at(size_t position)
{
	return (char)('!' + position * 7 % 89 + position / 65521 % 5);
}

static char *stretch(size_t from, size_t count)
{
	char *bytes = malloc(count);

	if (!bytes)
		fail("out of memory");
	for (size_t i = 0; i < count; i++)
		bytes[i] = at(from + i);
	return bytes;
}

static void must_be_stream(const char *who, const char *bytes, size_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != at(from + i))
			fail("%s: byte %zu of the stream is a wrong one", who, from + i);
}

static void nap(long milliseconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000 }, NULL);
}

static ssize_t peer_read(struct peer *peer, void *bytes, size_t count)
{
	ssize_t n;

	do
		n = peer->tls ? gnutls_record_recv(peer->tls, bytes, count) : read(peer->in, bytes, count);
	while (peer->tls && (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED));
	return n;
}

/* The peer reads the stream, slowly where `every` is not 0: a nap after so many bytes. */
static void peer_receives(struct peer *peer, size_t from, size_t count, size_t every)
{
	char bytes[PIECE];
	size_t got = 0;

	while (got < count) {
		size_t wanted = count - got < sizeof(bytes) ? count - got : sizeof(bytes);
		ssize_t n = peer_read(peer, bytes, wanted);

		if (n <= 0)
			fail("the peer: the stream ended after %zu bytes of %zu", from + got, from + count);
		must_be_stream("the peer", bytes, from + got, (size_t)n);
		if (every && got / every != (got + (size_t)n) / every)
			nap(5);
		got += (size_t)n;
	}
}

static void peer_sends(struct peer *peer, size_t from, size_t count, size_t every)
{
	for (size_t sent = 0; sent < count;) {
		size_t piece = count - sent < PIECE ? count - sent : PIECE;
		char *bytes = stretch(from + sent, piece);
		ssize_t n = peer->tls ? gnutls_record_send(peer->tls, bytes, piece) : write(peer->out, bytes, piece);

		free(bytes);
		if (n <= 0)
			fail("the peer: cannot send");
		if (every && sent / every != (sent + (size_t)n) / every)
			nap(5);
		sent += (size_t)n;
	}
}

static void peer_handshake(struct peer *peer)
{
	gnutls_certificate_credentials_t credentials;
	char key[4096], certificate[4096];
	int result;

	snprintf(key, sizeof(key), "%s/csync2_ssl_key.pem", systemdir);
	snprintf(certificate, sizeof(certificate), "%s/csync2_ssl_cert.pem", systemdir);
	if (gnutls_certificate_allocate_credentials(&credentials) ||
	    gnutls_certificate_set_x509_key_file(credentials, certificate, key, GNUTLS_X509_FMT_PEM) ||
	    gnutls_init(&peer->tls, GNUTLS_SERVER) || gnutls_set_default_priority(peer->tls) ||
	    gnutls_credentials_set(peer->tls, GNUTLS_CRD_CERTIFICATE, credentials))
		fail("the peer: no TLS");
	gnutls_transport_set_int2(peer->tls, peer->in, peer->out);
	do
		result = gnutls_handshake(peer->tls);
	while (result < 0 && !gnutls_error_is_fatal(result));
	if (result)
		fail("the peer: handshake: %s", gnutls_strerror(result));
}

/* the caller's side */

static void read_all(size_t from, size_t count)
{
	char *bytes = malloc(count);
	int n = bytes ? conn_read(bytes, count) : -1;

	if (n < 0 || (size_t)n != count)
		fail("conn_read of %zu bytes gave %d (%s)", count, n, strerror(errno));
	must_be_stream("conn_read", bytes, from, count);
	free(bytes);
}

/* As the library does it: a refused piece is repeated, of a piece taken in part the rest is sent. */
static void write_all(size_t from, size_t count, size_t largest)
{
	for (size_t sent = 0; sent < count;) {
		size_t piece = count - sent < largest ? count - sent : largest;
		char *bytes = stretch(from + sent, piece);
		int n = conn_write(bytes, piece);

		free(bytes);
		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			poll(&(struct pollfd){ .fd = conn_fd_out, .events = POLLOUT }, 1, 100);
		else
			fail("conn_write gave %d (%s) after %zu bytes", n, strerror(errno), from + sent);
	}
}

static void caller_large(void)
{
	char *bytes = stretch(0, LINE);
	int n = conn_write(bytes, LINE);

	free(bytes);
	if (n != LINE)
		fail("conn_write of %d bytes gave %d", LINE, n);
}

static void peer_large(struct peer *peer) { peer_receives(peer, 0, LINE, 0); }

static void caller_line(void)
{
	char *bytes = stretch(0, LINE);

	conn_printf("%.*s", LINE, bytes);
	free(bytes);
}

static void caller_slow(void)
{
	write_all(0, STREAM, PIECE);
	read_all(0, STREAM);
}

static void peer_slow(struct peer *peer)
{
	peer_receives(peer, 0, STREAM, 1 << 18);
	peer_sends(peer, 0, STREAM, 1 << 18);
}

static void on_tick(int number) { (void)number; }

/* A signal each millisecond, whose handler does not restart system calls. */
static void before_signals(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = on_tick };
	struct itimerspec times = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;

	if (sigaction(SIGUSR1, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &times, NULL))
		fail("no timer");
}

static void before_nonblocking(void)
{
	int small = 8192;

	setsockopt(conn_fd_out, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (fcntl(conn_fd_in, F_SETFL, O_NONBLOCK) || fcntl(conn_fd_out, F_SETFL, O_NONBLOCK))
		fail("no non-blocking descriptor");
}

static void caller_nonblocking(void)
{
	write_all(0, STREAM, LINE);
	read_all(0, STREAM);
}

static void caller_keyupdate(void)
{
	read_all(0, STREAM);
	write_all(0, STREAM, PIECE);
	read_all(STREAM, PIECE);
}

/* Changes its keys, and asks the other side to, while it sends and between two of the pieces it receives. */
static void peer_keyupdate(struct peer *peer)
{
	peer_sends(peer, 0, STREAM / 2, 0);
	if (gnutls_session_key_update(peer->tls, GNUTLS_KU_PEER))
		fail("the peer: no key update");
	peer_sends(peer, STREAM / 2, STREAM / 2, 0);
	peer_receives(peer, 0, STREAM / 2, 0);
	if (gnutls_session_key_update(peer->tls, GNUTLS_KU_PEER))
		fail("the peer: no key update");
	peer_receives(peer, STREAM / 2, STREAM / 2, 0);
	peer_sends(peer, STREAM, PIECE, 0);
}

/* The peer takes some and is gone: conn_write tells how much was sent, and then of the failure. */
static void caller_gone(void)
{
	enum { MUCH = 16 << 20 };
	char *bytes = stretch(0, MUCH);
	int n = conn_write(bytes, MUCH);

	if (n <= 0 || n >= MUCH)
		fail("conn_write of %d bytes to a peer that took some of them gave %d", MUCH, n);
	n = conn_write(bytes, PIECE);
	if (n != -1 || (errno != EPIPE && errno != ECONNRESET && errno != EIO))
		fail("conn_write to a peer that is gone gave %d (%s)", n, strerror(errno));
	free(bytes);
}

static void peer_gone(struct peer *peer) { peer_receives(peer, 0, 2 * LINE, 0); }

/* The peer reads no more. What it says after a question that it did not get is no answer to it. */
static void caller_unasked(void)
{
	char line[100];

	if (!conn_gets(line, sizeof(line)) || strcmp(line, "ready\n"))
		fail("the peer was not ready");
	conn_printf("a question\n");
	conn_printf("and another\n");
	if (conn_gets(line, sizeof(line)))
		fail("conn_gets took for an answer: %s", line);
}

static void peer_unasked(struct peer *peer)
{
	static const char text[] = "ready\nOK (to something else).\n";

	if (shutdown(peer->in, SHUT_RD) && close(peer->in))
		fail("the peer: cannot stop reading");
	if ((peer->tls ? gnutls_record_send(peer->tls, text, strlen(text)) : write(peer->out, text, strlen(text))) < 0)
		fail("the peer: cannot send");
}

static int option(int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	if (getsockopt(conn_fd_in, level, name, &value, &size))
		fail("no option %d of level %d: %s", name, level, strerror(errno));
	return value;
}

static void must_keep_alive(const char *who)
{
	if (option(SOL_SOCKET, SO_KEEPALIVE) != 1)
		fail("%s: no keepalive", who);
	if (option(IPPROTO_TCP, TCP_KEEPIDLE) + option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT) > 300)
		fail("%s: a dead peer is noticed after five minutes or more", who);
}

/* Both ends of a TCP connection: what conn_open makes and what conn_set is given. */
static void descriptors(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM, 0), accepted;

	if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 1) ||
	    getsockname(listening, (struct sockaddr *)&address, &size) ||
	    asprintf(&csync_port, "%d", ntohs(address.sin_port)) < 0)
		fail("nothing to connect to");
	if (conn_open("127.0.0.1") || (accepted = accept(listening, NULL, NULL)) < 0)
		fail("no connection");
	must_keep_alive("conn_open");
	if (!(fcntl(conn_fd_in, F_GETFD) & FD_CLOEXEC))
		fail("conn_open: the commands that csync2 runs inherit the connection");
	conn_set(accepted, accepted);
	must_keep_alive("conn_set");
	if (fcntl(conn_fd_in, F_GETFD) & FD_CLOEXEC)
		fail("conn_set: stdin and stdout were set to be closed");
}

static const struct scenario {
	const char *name;
	void (*before)(void), (*caller)(void), (*peer)(struct peer *);
} scenarios[] = {
	{ "large", NULL, caller_large, peer_large },
	{ "line", NULL, caller_line, peer_large },
	{ "signals", before_signals, caller_slow, peer_slow },
	{ "nonblocking", before_nonblocking, caller_nonblocking, peer_slow },
	{ "keyupdate", NULL, caller_keyupdate, peer_keyupdate },
	{ "gone", NULL, caller_gone, peer_gone },
	{ "unasked", NULL, caller_unasked, peer_unasked },
};

static void connect_both(const char *layer, int to_peer[2], int from_peer[2])
{
	int both[2];

	if (!strcmp(layer, "pipe")) {
		if (pipe(to_peer) || pipe(from_peer))
			fail("no pipe");
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, both))
		fail("no socket pair");
	to_peer[0] = from_peer[1] = both[0];
	to_peer[1] = from_peer[0] = both[1];
}

static void run(const struct scenario *scenario, const char *layer)
{
	int to_peer[2], from_peer[2], status, tls = !strcmp(layer, "tls");
	pid_t child;

	connect_both(layer, to_peer, from_peer);
	child = fork();
	if (child < 0)
		fail("no child");
	if (!child) {
		struct peer peer = { .in = to_peer[0], .out = from_peer[1] };

		close(to_peer[1]);
		close(from_peer[0]);
		if (tls)
			peer_handshake(&peer);
		scenario->peer(&peer);
		exit(0);
	}
	close(to_peer[0]);
	close(from_peer[1]);
	conn_set(from_peer[0], to_peer[1]);
	if (scenario->before)
		scenario->before();
	if (tls && conn_activate_ssl(0))
		fail("no TLS");
	scenario->caller();
	shutdown(conn_fd_out, SHUT_WR);
	close(conn_fd_out);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("no peer");
	if (status)
		fail("the peer was not content");
}

int main(int argc, char **argv)
{
	csync_debug_out = stderr;
	alarm(30);
	if (argc != 4)
		fail("usage: conn_test SCENARIO LAYER DIRECTORY");
	systemdir = argv[3];
	if (!strcmp(argv[1], "descriptors")) {
		descriptors();
		return 0;
	}
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(argv[1], scenarios[i].name)) {
			run(&scenarios[i], argv[2]);
			return 0;
		}
	fail("no scenario %s", argv[1]);
}
