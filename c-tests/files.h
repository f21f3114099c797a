/* Bytes, files and directories, for the cases. Everything ends the case where it cannot be done. */
#ifndef FILES_H
#define FILES_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct bytes {
	unsigned char *p; /* followed by a NUL that is not counted */
	size_t n;
};

struct bytes bytes_of(const void *p, size_t n);
struct bytes bytes_text(const char *text);
struct bytes bytes_random(size_t n, unsigned seed);
struct bytes bytes_fill(size_t n, int c);
struct bytes bytes_join(struct bytes a, struct bytes b); /* frees both */
struct bytes bytes_part(struct bytes a, size_t from, size_t n);
void bytes_free(struct bytes b);
/* All that was made since there were so many, for cases that would fill the memory: bytes_made() says how many. */
size_t bytes_made(void);
void bytes_free_since(size_t made);
#define assert_bytes(a, b) check_bytes((a), (b), __FILE__, __LINE__)
void check_bytes(struct bytes a, struct bytes b, const char *file, int line);

void write_file(const char *path, struct bytes b);
void append_file(const char *path, struct bytes b);
struct bytes read_file(const char *path);
#define assert_file(path, b) check_file((path), (b), __FILE__, __LINE__)
void check_file(const char *path, struct bytes b, const char *file, int line);
FILE *file_of(struct bytes b, const char *mode); /* an unlinked file with this content, at its start */
struct bytes rest_of(FILE *f);

/* The absolute path of a name in the case's directory (a ring of 8 results). */
const char *absolute(const char *name);
/* The names in a directory with type, size, mode and owner, sorted, one a line. */
char *listing(const char *dir);
/* Number of names in a directory that hold this part. */
unsigned names_with(const char *dir, const char *part);
/* The descriptors below 200 that are open. */
unsigned open_descriptors(void);
/* The next descriptor that open() gives. */
int next_descriptor(void);

void become_nobody(void); /* where the case runs as root; the case's directories d and t stay writable for nobody */
void limit_file_size(size_t n);  /* writes beyond give EFBIG, no signal */
void limit_descriptors(int n);   /* at most n more can be opened; -1: no limit again, which checkers need at the end */
/* A tmpfs of this size (bytes) at the directory, in a mount namespace of the case's own; skips where that is impossible. */
void small_tmpfs(const char *dir, size_t size);
/* A directory on another file system than the case's directory; removed by the case with rmdir or left empty. */
const char *other_file_system(void);

double seconds_now(void);

#endif
