/* The peer, played by librsync: makes the signatures and deltas that an unpatched node sends, and applies ours. */
#ifndef PEER_H
#define PEER_H

#include "files.h"

#define PEER_MD4 0x72730136
#define PEER_BLAKE2 0x72730137

/* As csync2 makes it: MD4, blocks of 2048, sums of 16 bytes. */
struct bytes peer_signature(struct bytes content);
struct bytes peer_signature_with(struct bytes content, size_t block, size_t strong, int magic);
/* The constant that csync2 sends for a missing file. */
struct bytes peer_no_signature(void);
struct bytes peer_delta(struct bytes signature, struct bytes content);
/* 0 and the new content, or an error of librsync's. */
int peer_patch(struct bytes basis, struct bytes delta, struct bytes *result);

/* "octet-stream N\n" and the bytes, fed to the host. */
void feed_frame(struct bytes b);
/* The same, freeing b. */
void feed_frame_of(struct bytes b);
/* What the subject has written must be one frame: its payload. Forgets the output. */
#define take_frame() take_frame_at(__FILE__, __LINE__)
struct bytes take_frame_at(const char *file, int line);
/* What the subject has written, as it is. Forgets the output. */
struct bytes take_output(void);

/* After a call: everything fed was read except this. */
#define assert_rest(text) assert_string_equal(host_rest(), text)

/* Hand-made deltas: a buffer that grows. */
struct bytes delta_begin(void);                                          /* the magic */
struct bytes delta_literal(struct bytes d, const char *text);            /* takes d */
struct bytes delta_copy(struct bytes d, unsigned long long from, unsigned long long n);
struct bytes delta_raw(struct bytes d, const char *p, size_t n);
struct bytes delta_end(struct bytes d);

#endif
