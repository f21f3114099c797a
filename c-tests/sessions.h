/* For the cases of csync_tls_*: configurations, and two sessions that speak with each other. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include "ends.h"

#include <string.h>
#include <unistd.h>

/* A file of tests/tls (a ring of 8 results). */
const char *identity_file(const char *name, const char *ending);

csync_tls_options tls_options_none(void); /* zeroes, and the size */
/* With NAME-cert.pem and NAME-key.pem; a failure ends the case. */
csync_tls_config *config_of(const char *name, const csync_tls_options *options);

enum { CLIENT, SERVER };

/* Two ends of a connection with a session on each, which is NULL for what is not wanted. */
struct talk {
	struct ends e;
	csync_tls *tls[2];
};
/* Sessions that have not shaken hands. */
struct talk talk_without_handshake(enum ends_kind kind, const char *identity, const csync_tls_options *options);
/* Sessions that have. */
struct talk talk_of(enum ends_kind kind, const char *identity, const csync_tls_options *options);
void talk_handshake(struct talk *t);
void talk_free(struct talk *t);

/* In a thread: shakes hands, and the status. */
struct shaking {
	csync_tls *tls;
	csync_status status;
	pthread_t thread;
};
void shake_start(struct shaking *s);
void shake_join(struct shaking *s);

/* Reads n bytes, or fewer where the end comes first. */
struct bytes tls_bytes(csync_tls *tls, size_t n);
/* How many bytes have arrived at a descriptor and wait to be read. */
int waiting(int fd);

/* -1, this errno, and a text in the session's error. */
#define assert_tls_failed(tls, call, err, text) \
	do { \
		errno = 0; \
		long result_ = (call); \
		int errno_ = errno; \
		check_tls_failed((tls), result_, errno_, (err), (text), __FILE__, __LINE__); \
	} while (0)
void check_tls_failed(csync_tls *tls, long result, int err, int expected, const char *text, const char *file, int line);

#endif
