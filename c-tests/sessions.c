#include "sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define MUST(call) \
	do { \
		csync_status s_ = (call); \
		if (s_ != CSYNC_OK) { \
			fprintf(stderr, "[   LINE   ] sessions.c: %s: %s\n", #call, csync_status_text(s_)); \
			abort(); \
		} \
	} while (0)

const char *identity_file(const char *name, const char *ending)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s-%s", CT_IDENTITIES, name, ending);
	return path;
}

csync_tls_options tls_options_none(void)
{
	return (csync_tls_options){ .size = sizeof(csync_tls_options) };
}

csync_tls_config *config_of(const char *name, const csync_tls_options *options)
{
	csync_tls_config *config = NULL;
	csync_status s = csync_tls_config_new(options, &config);

	MUST(s);
	s = csync_tls_config_load(config, identity_file(name, "cert.pem"), identity_file(name, "key.pem"));
	if (s != CSYNC_OK)
		fprintf(stderr, "%s\n", csync_tls_config_error(config));
	MUST(s);
	return config;
}

struct talk talk_without_handshake(enum ends_kind kind, const char *identity, const csync_tls_options *options)
{
	struct talk t = { .e = ends_make(kind, 0) };
	csync_tls_config *config = config_of(identity, options);

	MUST(csync_tls_client(config, t.e.in[CLIENT], t.e.out[CLIENT], &t.tls[CLIENT]));
	MUST(csync_tls_server(config, t.e.in[SERVER], t.e.out[SERVER], &t.tls[SERVER]));
	csync_tls_config_free(config);
	return t;
}

static void *shake(void *arg)
{
	struct shaking *s = arg;

	s->status = csync_tls_handshake(s->tls);
	return NULL;
}

void shake_start(struct shaking *s)
{
	thread_start(&s->thread, shake, s);
}

void shake_join(struct shaking *s)
{
	pthread_join(s->thread, NULL);
}

void talk_handshake(struct talk *t)
{
	struct shaking s = { .tls = t->tls[SERVER] };

	shake_start(&s);
	csync_status here = csync_tls_handshake(t->tls[CLIENT]);
	shake_join(&s);
	if (here != CSYNC_OK || s.status != CSYNC_OK)
		fprintf(stderr, "%s | %s\n", csync_tls_error(t->tls[CLIENT]), csync_tls_error(t->tls[SERVER]));
	MUST(here);
	MUST(s.status);
}

struct talk talk_of(enum ends_kind kind, const char *identity, const csync_tls_options *options)
{
	struct talk t = talk_without_handshake(kind, identity, options);

	talk_handshake(&t);
	return t;
}

void talk_free(struct talk *t)
{
	for (int i = 0; i < 2; i++) {
		csync_tls_free(t->tls[i]);
		ends_close(&t->e, i);
		t->tls[i] = NULL;
	}
}

struct bytes tls_bytes(csync_tls *tls, size_t n)
{
	struct bytes b = bytes_fill(n, 0);
	size_t got = 0;

	while (got < n) {
		ssize_t part = csync_tls_read(tls, b.p + got, n - got);
		if (part <= 0)
			break;
		got += part;
	}
	b.n = got;
	return b;
}

int waiting(int fd)
{
	int n = -1;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

void check_tls_failed(csync_tls *tls, long result, int err, int expected, const char *text, const char *file, int line)
{
	const char *error = csync_tls_error(tls);

	if (result == -1 && err == expected && strstr(error, text))
		return;
	print_error("%ld, errno %d (%s), `%s`; expected -1, errno %d (%s), `%s`\n", result, err, strerror(err), error, expected,
		    strerror(expected), text);
	_fail(file, line);
}
