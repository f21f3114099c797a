/*
 * For the cases of csync_engine_*: connections with two ends, a transport of functions that counts, and verbs as data,
 * to be run here or in a thread.
 */
#ifndef ENDS_H
#define ENDS_H

#include "csync_rs.h"
#include "ct.h"
#include "files.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

/* A case about functions that the original does not have. */
#define OURS(f) { .name = #f, .body = f, .original = CT_CANNOT, .why = "a function of this library alone" }
#define OURS_F(f, fl) { .name = #f, .body = f, .original = CT_CANNOT, .why = "a function of this library alone", .flags = (fl) }

/* Two ends of a connection; for sockets in and out of an end are the same. */
struct ends {
	int in[2], out[2];
};
enum ends_kind { UNIX_SOCKETS, PIPES, TCP_SOCKETS, PACKET_SOCKETS };

/* buffer: as small as the system lets it be below this, or 0 for the system's own choice. Not inherited by exec. */
struct ends ends_make(enum ends_kind kind, int buffer);
void ends_close(struct ends *e, int side);
void ends_non_blocking(struct ends *e, int side);

/* An engine over an end, or over a transport; a failure ends the case. */
csync_engine *engine_on(const struct ends *e, int side, const csync_options *options);
struct csync_options options_none(void); /* zeroes, and the size */

/* A transport of functions over an end: never waits in read and write, counts, and keeps sums of what passed. */
struct wire {
	int in, out;
	size_t limit;           /* what max_payload says; 0 is said as 0 */
	const size_t *changing; /* or these, in turn, to the 0 at their end */
	int packets;            /* a packet socket: one write is one packet, the rest of one that was read is kept */
	int waits_itself;       /* with a wait function */
	int holds_back;         /* write keeps everything, flush sends it */
	size_t most;            /* moved by one call at most, 0: no such bound */
	unsigned refuse_reads, refuse_writes; /* so many calls are refused first, with refusal */
	int refusal;
	unsigned pause_us;      /* slept in every call that moves something */
	/* instead of the descriptors: another way to move bytes, and its limit */
	ssize_t (*get)(struct wire *w, void *buffer, size_t count);
	ssize_t (*put)(struct wire *w, const void *buffer, size_t count);
	size_t (*largest_put)(struct wire *w);
	void *session;

	/* seen */
	size_t told, largest;
	unsigned reads, writes, flushes, waits, above;
	uint64_t read_bytes, written_bytes, read_sum, written_sum;

	unsigned turn;
	unsigned char *kept, *held;
	size_t kept_at, kept_len, held_at, held_len, held_room;
};
struct wire wire_on(const struct ends *e, int side);
struct csync_transport wire_functions(struct wire *w);
csync_engine *engine_over(struct wire *w, const csync_options *options);
void wire_free(struct wire *w);
/* A sum that depends on every byte and its place, and not on how the bytes were cut. */
uint64_t sum_more(uint64_t sum, uint64_t at, const void *p, size_t n);

/* A verb with its arguments and what became of it. */
struct call {
	enum csync_verb verb;
	const char *path;
	int descriptor;

	enum csync_status status;
	int err, differs;
	uint64_t length;
	char text[400];
	double seconds;
};
enum csync_status call_now(csync_engine *engine, struct call *c);
/* In a thread. */
struct calls {
	csync_engine *engine;
	struct call *calls;
	unsigned count;
	pthread_t thread;
};
void calls_start(struct calls *c);
void calls_join(struct calls *c);
void thread_start(pthread_t *t, void *(*body)(void *), void *arg);

/* The last call's status, its errno, and texts that must be in its error (end with NULL). */
#define assert_failed(engine, status, expected, err, ...) \
	check_failed((engine), (status), (expected), (err), __FILE__, __LINE__, __VA_ARGS__, NULL)
void check_failed(csync_engine *engine, enum csync_status status, enum csync_status expected, int err, const char *file,
		  int line, ...);
#define assert_ok(engine, status) check_failed((engine), (status), CSYNC_OK, 0, __FILE__, __LINE__, NULL)

/* The peer by hand. */
void feed(int fd, struct bytes b);      /* frees b */
void feed_line(int fd, const char *text);
struct bytes framed(struct bytes b);    /* frees b */
struct bytes unframed(struct bytes b);  /* one frame and nothing behind it; frees b */
struct bytes arrived(int fd);           /* what is there now */
/* Reads everything to the end, in a thread, so that writers need not wait. */
struct sink;
struct sink *sink_start(int fd);
struct bytes sink_join(struct sink *s); /* after the writing end was closed */

#endif
