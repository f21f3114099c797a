#include "ends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "[   LINE   ] ends.c: %s: %s\n", what, strerror(errno));
	abort();
}

static void tcp_pair(int s[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int one = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(l >= 0 && bind(l, (struct sockaddr *)&a, n) == 0 && listen(l, 1) == 0, "listen");
	must(getsockname(l, (struct sockaddr *)&a, &n) == 0, "getsockname");
	s[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(s[0] >= 0 && connect(s[0], (struct sockaddr *)&a, n) == 0, "connect");
	s[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	must(s[1] >= 0, "accept");
	for (int i = 0; i < 2; i++)
		setsockopt(s[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(l);
}

struct ends ends_make(enum ends_kind kind, int buffer)
{
	struct ends e;
	int s[2], p[2];

	if (kind == PIPES) {
		must(pipe2(s, O_CLOEXEC) == 0 && pipe2(p, O_CLOEXEC) == 0, "pipe");
		e = (struct ends){ { s[0], p[0] }, { p[1], s[1] } };
		if (buffer)
			must(fcntl(s[1], F_SETPIPE_SZ, buffer) >= 0 && fcntl(p[1], F_SETPIPE_SZ, buffer) >= 0, "F_SETPIPE_SZ");
		return e;
	}
	if (kind == TCP_SOCKETS)
		tcp_pair(s);
	else
		must(socketpair(AF_UNIX, (kind == PACKET_SOCKETS ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0, s) == 0,
		     "socketpair");
	for (int i = 0; i < 2 && buffer; i++) {
		setsockopt(s[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		setsockopt(s[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	}
	e = (struct ends){ { s[0], s[1] }, { s[0], s[1] } };
	return e;
}

void ends_close(struct ends *e, int side)
{
	if (e->in[side] >= 0)
		close(e->in[side]);
	if (e->out[side] >= 0 && e->out[side] != e->in[side])
		close(e->out[side]);
	e->in[side] = e->out[side] = -1;
}

void ends_non_blocking(struct ends *e, int side)
{
	fcntl(e->in[side], F_SETFL, fcntl(e->in[side], F_GETFL) | O_NONBLOCK);
	fcntl(e->out[side], F_SETFL, fcntl(e->out[side], F_GETFL) | O_NONBLOCK);
}

struct csync_options options_none(void)
{
	return (struct csync_options){ .size = sizeof(struct csync_options) };
}

csync_engine *engine_on(const struct ends *e, int side, const csync_options *options)
{
	csync_engine *engine = NULL;
	enum csync_status s = csync_engine_over_descriptors(e->in[side], e->out[side], options, &engine);

	must(s == CSYNC_OK && engine, "csync_engine_over_descriptors");
	return engine;
}

uint64_t sum_more(uint64_t sum, uint64_t at, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		sum += (b[i] + 1) * ((at + i) * 0x9e3779b97f4a7c15ull | 1);
	return sum;
}

/* One read or write of the end, without waiting. */
static ssize_t raw_read(struct wire *w, void *buffer, size_t count)
{
	struct pollfd f = { .fd = w->in, .events = POLLIN };
	ssize_t n = recv(w->in, buffer, count, MSG_DONTWAIT);

	if (n >= 0 || errno != ENOTSOCK)
		return n;
	if (poll(&f, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return read(w->in, buffer, count);
}

static ssize_t raw_write(struct wire *w, const void *buffer, size_t count)
{
	struct pollfd f = { .fd = w->out, .events = POLLOUT };
	ssize_t n = send(w->out, buffer, count, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0 || errno != ENOTSOCK)
		return n;
	if (poll(&f, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(w->out, buffer, count < 4096 ? count : 4096);
}

/* The largest packet that is read here. */
enum { PACKET = 256 * 1024 };

static ssize_t packet_read(struct wire *w, void *buffer, size_t count)
{
	if (w->kept_at == w->kept_len) {
		if (!w->kept)
			w->kept = malloc(PACKET);
		ssize_t n = raw_read(w, w->kept, PACKET);
		if (n <= 0)
			return n;
		w->kept_at = 0;
		w->kept_len = n;
	}
	if (count > w->kept_len - w->kept_at)
		count = w->kept_len - w->kept_at;
	memcpy(buffer, w->kept + w->kept_at, count);
	w->kept_at += count;
	return count;
}

static ssize_t wire_read(void *userdata, void *buffer, size_t count)
{
	struct wire *w = userdata;

	w->reads++;
	if (w->refuse_reads) {
		w->refuse_reads -= w->refuse_reads != UINT32_MAX;
		errno = w->refusal;
		return -1;
	}
	if (w->most && count > w->most)
		count = w->most;
	ssize_t n = w->get ? w->get(w, buffer, count) : w->packets ? packet_read(w, buffer, count) : raw_read(w, buffer, count);
	if (n > 0) {
		w->read_sum = sum_more(w->read_sum, w->read_bytes, buffer, n);
		w->read_bytes += n;
		if (w->pause_us)
			usleep(w->pause_us);
	}
	return n;
}

static ssize_t hold(struct wire *w, const void *buffer, size_t count)
{
	if (w->held_len + count > w->held_room) {
		w->held_room = 2 * (w->held_len + count);
		w->held = realloc(w->held, w->held_room);
		must(w->held != NULL, "realloc");
	}
	memcpy(w->held + w->held_len, buffer, count);
	w->held_len += count;
	return count;
}

static ssize_t wire_write(void *userdata, const void *buffer, size_t count)
{
	struct wire *w = userdata;

	w->writes++;
	if (count > w->largest)
		w->largest = count;
	if (count > w->told) {
		w->above++;
		errno = EMSGSIZE;
		return -1;
	}
	if (w->refuse_writes) {
		w->refuse_writes -= w->refuse_writes != UINT32_MAX;
		errno = w->refusal;
		return -1;
	}
	if (w->most && count > w->most)
		count = w->most;
	ssize_t n = w->put ? w->put(w, buffer, count) : w->holds_back ? hold(w, buffer, count) : raw_write(w, buffer, count);
	if (n > 0) {
		w->written_sum = sum_more(w->written_sum, w->written_bytes, buffer, n);
		w->written_bytes += n;
		if (w->pause_us)
			usleep(w->pause_us);
	}
	return n;
}

static int wire_flush(void *userdata)
{
	struct wire *w = userdata;

	w->flushes++;
	while (w->held_at < w->held_len) {
		ssize_t n = raw_write(w, w->held + w->held_at, w->held_len - w->held_at);
		if (n < 0)
			return -1;
		w->held_at += n;
	}
	w->held_at = w->held_len = 0;
	return 0;
}

static size_t wire_limit(void *userdata)
{
	struct wire *w = userdata;

	if (w->changing) {
		w->told = w->changing[w->turn++];
		if (!w->changing[w->turn])
			w->turn = 0;
	} else
		w->told = w->largest_put ? w->largest_put(w) : w->limit;
	return w->told;
}

static void wire_wait(void *userdata, int for_write, unsigned int milliseconds)
{
	struct wire *w = userdata;
	struct pollfd f[2] = { { .fd = w->in, .events = POLLIN }, { .fd = w->out, .events = POLLOUT } };

	w->waits++;
	poll(f, for_write ? 2 : 1, (int)milliseconds);
}

struct wire wire_on(const struct ends *e, int side)
{
	return (struct wire){ .in = e->in[side], .out = e->out[side], .limit = SIZE_MAX, .told = SIZE_MAX, .waits_itself = 1 };
}

struct csync_transport wire_functions(struct wire *w)
{
	return (struct csync_transport){ .size = sizeof(struct csync_transport), .userdata = w, .read = wire_read,
		.write = wire_write, .flush = wire_flush, .max_payload = wire_limit,
		.wait = w->waits_itself ? wire_wait : NULL };
}

csync_engine *engine_over(struct wire *w, const csync_options *options)
{
	struct csync_transport t = wire_functions(w);
	csync_engine *engine = NULL;
	enum csync_status s = csync_engine_over_transport(&t, options, &engine);

	must(s == CSYNC_OK && engine, "csync_engine_over_transport");
	return engine;
}

void wire_free(struct wire *w)
{
	free(w->kept);
	free(w->held);
	w->kept = w->held = NULL;
}

enum csync_status call_now(csync_engine *engine, struct call *c)
{
	double start = seconds_now();

	switch (c->verb) {
	case CSYNC_SEND: c->status = csync_engine_send(engine, c->descriptor); break;
	case CSYNC_RECEIVE: c->status = csync_engine_receive(engine, c->descriptor, &c->length); break;
	case CSYNC_SIGNATURE: c->status = csync_engine_signature(engine, c->path); break;
	case CSYNC_CHECK: c->status = csync_engine_check(engine, c->path, &c->differs); break;
	case CSYNC_DELTA: c->status = csync_engine_delta(engine, c->path); break;
	case CSYNC_PATCH: c->status = csync_engine_patch(engine, c->path); break;
	case CSYNC_PUSH: c->status = csync_engine_push(engine, c->path); break;
	case CSYNC_PULL: c->status = csync_engine_pull(engine, c->path); break;
	}
	c->seconds = seconds_now() - start;
	c->err = csync_engine_errno(engine);
	snprintf(c->text, sizeof(c->text), "%s", csync_engine_error(engine));
	return c->status;
}

void thread_start(pthread_t *t, void *(*body)(void *), void *arg)
{
	must(pthread_create(t, NULL, body, arg) == 0, "pthread_create");
}

static void *run_calls(void *arg)
{
	struct calls *c = arg;

	for (unsigned i = 0; i < c->count; i++)
		call_now(c->engine, &c->calls[i]);
	return NULL;
}

void calls_start(struct calls *c)
{
	thread_start(&c->thread, run_calls, c);
}

void calls_join(struct calls *c)
{
	pthread_join(c->thread, NULL);
}

void check_failed(csync_engine *engine, enum csync_status status, enum csync_status expected, int err, const char *file,
		  int line, ...)
{
	const char *text = csync_engine_error(engine), *part;
	va_list ap;

	if (status != expected || csync_engine_errno(engine) != err) {
		print_error("status %d (%s), errno %d (%s), `%s`; expected status %d, errno %d (%s)\n", status,
			    csync_status_text(status), csync_engine_errno(engine), strerror(csync_engine_errno(engine)), text,
			    expected, err, strerror(err));
		_fail(file, line);
	}
	if (expected == CSYNC_OK ? text[0] != 0 : text[0] == 0) {
		print_error("the error is `%s`\n", text);
		_fail(file, line);
	}
	va_start(ap, line);
	while ((part = va_arg(ap, const char *)))
		if (!strstr(text, part)) {
			print_error("`%s` does not say `%s`\n", text, part);
			_fail(file, line);
		}
	va_end(ap);
	if (strstr(text, "os error")) {
		print_error("`%s` is not strerror's wording\n", text);
		_fail(file, line);
	}
}

void feed(int fd, struct bytes b)
{
	size_t at = 0;

	while (at < b.n) {
		ssize_t n = write(fd, b.p + at, b.n - at);
		must(n > 0, "feed");
		at += n;
	}
	bytes_free(b);
}

void feed_line(int fd, const char *text)
{
	feed(fd, bytes_text(text));
}

struct bytes framed(struct bytes b)
{
	char head[64];

	snprintf(head, sizeof(head), "octet-stream %zu\n", b.n);
	return bytes_join(bytes_text(head), b);
}

struct bytes unframed(struct bytes b)
{
	unsigned long long n = 0;
	int head = 0;

	if (sscanf((char *)b.p, "octet-stream %llu%n", &n, &head) != 1 || b.p[head] != '\n' || b.n - head - 1 != n)
		fail_msg("no frame, but %zu bytes: %.60s", b.n, (char *)b.p);
	struct bytes payload = bytes_part(b, head + 1, n);
	bytes_free(b);
	return payload;
}

struct bytes arrived(int fd)
{
	struct bytes all = bytes_text("");
	unsigned char part[65536];

	for (;;) {
		struct pollfd f = { .fd = fd, .events = POLLIN };
		if (poll(&f, 1, 0) <= 0)
			return all;
		ssize_t n = read(fd, part, sizeof(part));
		if (n <= 0)
			return all;
		all = bytes_join(all, bytes_of(part, n));
	}
}

struct sink {
	int fd;
	pthread_t thread;
	unsigned char *p;
	size_t n, room;
};

static void *run_sink(void *arg)
{
	struct sink *s = arg;

	for (;;) {
		if (s->n == s->room) {
			s->room = 2 * s->room + 65536;
			s->p = realloc(s->p, s->room);
			must(s->p != NULL, "realloc");
		}
		ssize_t n = read(s->fd, s->p + s->n, s->room - s->n);
		if (n <= 0)
			return NULL;
		s->n += n;
	}
}

struct sink *sink_start(int fd)
{
	struct sink *s = calloc(1, sizeof(*s));

	must(s != NULL, "calloc");
	s->fd = fd;
	thread_start(&s->thread, run_sink, s);
	return s;
}

struct bytes sink_join(struct sink *s)
{
	pthread_join(s->thread, NULL);
	struct bytes b = bytes_of(s->p, s->n);
	free(s->p);
	free(s);
	return b;
}
