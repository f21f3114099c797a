/*
 * The host's symbols, gathered in one table. They are weak references: linked into csync2 the table is full;
 * another program that defines none of them links all the same and finds null pointers in it.
 * src/ffi/host.rs reads the table; the two must list the same members in the same order.
 */
#include <stddef.h>

#define WEAK __attribute__((weak))

extern int conn_read(void *buffer, size_t count) WEAK;
extern int conn_raw_read(void *buffer, size_t count) WEAK;
extern int conn_write(const void *buffer, size_t count) WEAK;
extern int conn_close(void) WEAK;
extern int conn_fd_in WEAK;
extern int conn_fd_out WEAK;
extern void csync_debug(int level, const char *format, ...) WEAK;
extern void csync_fatal(const char *format, ...) WEAK;
extern const char *prefixsubst(const char *path) WEAK;
extern char *csync_tempdir WEAK;
extern int csync_ignore_uid WEAK;
extern int csync_ignore_gid WEAK;

struct csync_rs_linked_host {
	int (*read)(void *, size_t);
	int (*raw_read)(void *, size_t);
	int (*write)(const void *, size_t);
	int (*close)(void);
	const int *descriptor_in;
	const int *descriptor_out;
	void (*debug)(int, const char *, ...);
	void (*fatal)(const char *, ...);
	const char *(*local_path)(const char *);
	char *const *temp_dir;
	const int *ignore_uid;
	const int *ignore_gid;
};

extern const struct csync_rs_linked_host csync_rs_linked_host;

__attribute__((visibility("hidden"))) const struct csync_rs_linked_host csync_rs_linked_host = {
	.read = conn_read,
	.raw_read = conn_raw_read,
	.write = conn_write,
	.close = conn_close,
	.descriptor_in = &conn_fd_in,
	.descriptor_out = &conn_fd_out,
	.debug = csync_debug,
	.fatal = csync_fatal,
	.local_path = prefixsubst,
	.temp_dir = &csync_tempdir,
	.ignore_uid = &csync_ignore_uid,
	.ignore_gid = &csync_ignore_gid,
};
