#include "host.h"
#include "ct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int conn_fd_in = -1, conn_fd_out = -1;
char *csync_tempdir;
int csync_ignore_uid, csync_ignore_gid, csync_debug_level = 3;

struct host host;

static struct host_step on_write[16], on_read[16];
static unsigned n_on_write, n_on_read;
static int gone, socket_mode;
static const void *refused_at;
static size_t refused_len;

static struct message {
	int level;
	char *text;
} *messages;

static void out_of_memory(void)
{
	fputs("host: out of memory\n", stderr);
	_exit(1);
}

/* A pair whose ends are always ready, for a subject that polls the descriptors. */
static void ready_descriptors(void)
{
	int s[2];
	if (conn_fd_in >= 0)
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) || write(s[1], "x", 1) != 1)
		out_of_memory();
	/* Out of the way of cases that count or limit descriptors. */
	conn_fd_in = conn_fd_out = fcntl(s[0], F_DUPFD_CLOEXEC, 200);
	int peer = fcntl(s[1], F_DUPFD_CLOEXEC, 201);
	if (conn_fd_in < 0 || peer < 0)
		out_of_memory();
	close(s[0]);
	close(s[1]);
}

void host_reset(void)
{
	for (unsigned i = 0; i < host.messages; i++)
		free(messages[i].text);
	free(messages);
	messages = NULL;
	free(host.out);
	free(host.in);
	memset(&host, 0, sizeof(host));
	n_on_write = n_on_read = 0;
	gone = socket_mode = 0;
	refused_at = NULL;
	csync_tempdir = NULL;
	csync_ignore_uid = csync_ignore_gid = 0;
	csync_debug_level = 3;
	ready_descriptors();
}

void host_feed(const void *p, size_t n)
{
	unsigned char *more = realloc(host.in, host.in_len + n + 1);
	if (!more)
		out_of_memory();
	host.in = more;
	if (n)
		memcpy(host.in + host.in_len, p, n);
	host.in_len += n;
	host.in[host.in_len] = 0;
}

void host_feed_text(const char *text)
{
	host_feed(text, strlen(text));
}

void host_forget_output(void)
{
	free(host.out);
	host.out = NULL;
	host.out_room = 0;
	host.out_len = host.writes = host.largest_write = host.first_write = 0;
}

const char *host_rest(void)
{
	return host.in ? (const char *)host.in + host.in_pos : "";
}

void host_on_write(struct host_step s)
{
	on_write[n_on_write++] = s;
}

void host_on_read(struct host_step s)
{
	on_read[n_on_read++] = s;
}

int host_use_socket(int non_blocking, int send_buffer)
{
	int s[2];
	ready_descriptors();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		out_of_memory();
	if (send_buffer)
		setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
	if (non_blocking)
		fcntl(s[0], F_SETFL, O_NONBLOCK);
	if (dup3(s[0], conn_fd_in, O_CLOEXEC) < 0)
		out_of_memory();
	close(s[0]);
	socket_mode = 1;
	return s[1];
}

/* The first step that applies to this call; hooks are called on the way. */
static const struct host_step *step_for(const struct host_step *steps, unsigned n, unsigned call)
{
	for (unsigned i = 0; i < n; i++) {
		const struct host_step *s = &steps[i];
		if (call < s->from || (s->every ? (call - s->from) % s->every != 0 : call != s->from))
			continue;
		if (s->what == HOST_CALL)
			s->hook();
		else
			return s;
	}
	return NULL;
}

int conn_write(const void *buf, size_t count)
{
	const struct host_step *s;

	host.writes++;
	if (host.writes == 1)
		host.first_write = count;
	if (count > host.largest_write)
		host.largest_write = count;
	if (host.writes > 50000000u) {
		fputs("conn_write is called for ever\n", stderr);
		_exit(1);
	}
	if (refused_at && (buf != refused_at || count != refused_len))
		host.bad_retries++;
	refused_at = NULL;

	s = step_for(on_write, n_on_write, host.writes);
	if (s && s->what == HOST_CLOSE)
		gone = 1;
	if (gone) {
		errno = EPIPE;
		return -1;
	}
	if (s && s->what == HOST_GIVE) {
		if (s->value == TLS_AGAIN || s->value == TLS_INTERRUPTED) {
			refused_at = buf;
			refused_len = count;
		}
		errno = s->err;
		return s->value;
	}
	if (s && s->what == HOST_SHORT && count > (size_t)s->value)
		count = s->value;
	if (socket_mode)
		return send(conn_fd_out, buf, count, MSG_NOSIGNAL);
	if (!host.discard || host.out_len < 64) {
		if (host.out_len + count > host.out_room) {
			host.out_room = 2 * (host.out_len + count) + 64;
			host.out = realloc(host.out, host.out_room);
			if (!host.out)
				out_of_memory();
		}
		memcpy(host.out + host.out_len, buf, count);
	}
	host.out_len += count;
	return count;
}

/* One read of the connection: a record, or what a socket has. */
static int raw(void *buf, size_t count)
{
	const struct host_step *s;

	host.raw_reads++;
	if (count == 1)
		host.line_reads++;
	if (count > host.largest_read)
		host.largest_read = count;
	s = step_for(on_read, n_on_read, host.raw_reads);
	if (s && s->what == HOST_CLOSE)
		gone = 1;
	if (gone) {
		errno = ECONNRESET;
		return -1;
	}
	if (s && s->what == HOST_GIVE) {
		errno = s->err;
		return s->value;
	}
	if (s && s->what == HOST_SHORT && count > (size_t)s->value)
		count = s->value;
	if (socket_mode)
		return read(conn_fd_in, buf, count);
	if (count > host.in_len - host.in_pos)
		count = host.in_len - host.in_pos;
	if (count == 0) {
		if (++host.starved > 100000) {
			fputs("the end of the connection is read for ever\n", stderr);
			_exit(1);
		}
		return 0;
	}
	memcpy(buf, host.in + host.in_pos, count);
	host.in_pos += count;
	return count;
}

#ifndef HOST_NO_RAW_READ
int conn_raw_read(void *buf, size_t count)
{
	return raw(buf, count);
}
#endif

int conn_read(void *buf, size_t count)
{
	size_t pos = 0;

	while (pos < count) {
		int rc = raw((char *)buf + pos, count - pos);
		if (rc <= 0)
			return pos == 0 && host.read_passes_errors ? rc : (int)pos;
		pos += rc;
		if (host.read_passes_errors)
			break;
	}
	return pos;
}

size_t conn_gets(char *s, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && raw(s + n, 1) == 1)
		if (s[n++] == '\n')
			break;
	s[n] = 0;
	if (n > 1 && s[n - 1] != '\n')
		csync_fatal("line too long for %zu bytes\n", size);
	return n;
}

void conn_printf(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	conn_write(text, n);
	free(text);
}

int conn_close(void)
{
	host.closed++;
	gone = 1;
	return 0;
}

void csync_debug(int lv, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int saved = errno;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	struct message *more = realloc(messages, (host.messages + 1) * sizeof(*messages));
	if (n < 0 || !more)
		out_of_memory();
	messages = more;
	messages[host.messages].level = lv;
	messages[host.messages].text = text;
	host.messages++;
	if (host.on_message)
		host.on_message(lv, text);
	errno = saved;
}

void csync_fatal(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (host.on_fatal)
		host.on_fatal(text);
	printf("csync_fatal: %s", text);
	fflush(stdout);
	_exit(CT_EXIT_FATAL);
}

unsigned host_said(int max_level, ...)
{
	unsigned hits = 0;

	for (unsigned i = 0; i < host.messages; i++) {
		va_list ap;
		const char *part;
		int all = messages[i].level <= max_level;

		va_start(ap, max_level);
		while (all && (part = va_arg(ap, const char *)))
			all = strstr(messages[i].text, part) != NULL;
		va_end(ap);
		hits += all;
	}
	return hits;
}

const char *host_log(void)
{
	static char text[8192];
	size_t n = 0;

	text[0] = 0;
	for (unsigned i = 0; i < host.messages && n < sizeof(text) - 1; i++)
		n += snprintf(text + n, sizeof(text) - n, "  <%d> %s%s", messages[i].level, messages[i].text,
			      strchr(messages[i].text, '\n') ? "" : "\n");
	return text;
}

/* "%t%/name" stands for "name" below the case's directory; a ring of results, as in csync2. */
const char *prefixsubst(const char *in)
{
	static char *ring[8];
	static unsigned next;

	if (in[0] != '%' || strncmp(in, "%t%", 3))
		return in;
	next = (next + 1) % 8;
	free(ring[next]);
	if (asprintf(&ring[next], "%s%s", getenv("CT_SANDBOX"), in + 3) < 0)
		out_of_memory();
	return ring[next];
}
