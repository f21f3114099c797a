/*
 * A host for the functions under test: what csync2's objects would give them, over memory.
 *
 * What a case feeds is what the peer has sent; what is written is collected. Any call of either direction can be told to
 * be short, to fail, or to do something of the case's own first. When the fed bytes are used up, the peer has closed.
 */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <sys/types.h>

/* What csync2 defines. */
extern int conn_fd_in, conn_fd_out;
extern char *csync_tempdir;
extern int csync_ignore_uid, csync_ignore_gid, csync_debug_level;
int conn_read(void *buf, size_t count);
int conn_write(const void *buf, size_t count);
int conn_raw_read(void *buf, size_t count);
int conn_close(void);
size_t conn_gets(char *s, size_t size);
void conn_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void csync_debug(int lv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void csync_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *prefixsubst(const char *in);

/* GnuTLS's codes for "again" and "interrupted", as they come back through conn_write and conn_read. */
#define TLS_AGAIN (-28)
#define TLS_INTERRUPTED (-52)

enum host_do {
	HOST_SHORT, /* move at most value bytes */
	HOST_GIVE,  /* move nothing, return value with errno err */
	HOST_CLOSE, /* the connection is gone from here on */
	HOST_CALL,  /* call hook, then go on as usual */
};

struct host_step {
	unsigned from;  /* the call it applies to, counted from 1 */
	unsigned every; /* 0: that call only; k: each k-th call from there on */
	enum host_do what;
	int value, err;
	void (*hook)(void);
};

struct host {
	/* written by the subject */
	unsigned char *out;
	size_t out_len, out_room; /* bytes written in all */
	unsigned writes;     /* calls of conn_write */
	size_t largest_write, first_write;
	int discard;         /* set by the case: count, keep only the beginning */
	/* sent by the peer */
	unsigned char *in;
	size_t in_len, in_pos;
	unsigned raw_reads, line_reads; /* calls; those of one byte */
	size_t largest_read;
	unsigned starved;    /* reads at the end of what was fed */
	/* what else happened */
	int closed;          /* calls of conn_close */
	unsigned bad_retries; /* repeats of a refused write with another pointer or length */
	unsigned messages;
	/* how conn_read behaves: 0 as csync2's, which hides an error behind a short count; 1 passes it on */
	int read_passes_errors;
	/* called by csync_fatal before the case ends */
	void (*on_fatal)(const char *text);
	void (*on_message)(int level, const char *text);
};
extern struct host host;

/* Forgets everything; also sets csync_tempdir and the other switches to their defaults. */
void host_reset(void);
void host_feed(const void *p, size_t n);
void host_feed_text(const char *text);
/* Drops what was collected. */
void host_forget_output(void);
void host_on_write(struct host_step s);
void host_on_read(struct host_step s);
/* What has not been read yet, as a string. */
const char *host_rest(void);
/* Number of messages at this level or below that hold every one of the strings (end with NULL). */
unsigned host_said(int max_level, ...);
/* The messages, one a line, for failure texts. */
const char *host_log(void);

/*
 * Instead of memory: a real socket pair. The case gets the peer's end; non_blocking sets O_NONBLOCK on the subject's.
 */
int host_use_socket(int non_blocking, int send_buffer);

#endif
