/* What is under test: csync_rs.h of the library, or (CT_ORIGINAL) the same functions of csync2's rsync.c. */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef CT_ORIGINAL
#define CSYNC_CHUNK 16384
void csync_send_file(FILE *in);
int csync_recv_file(FILE *out);
int csync_rs_check(const char *filename, int isreg);
void csync_rs_sig(const char *filename);
int csync_rs_delta(const char *filename);
int csync_rs_patch(const char *filename);
int csync_rs_sigfile(const char *filename, FILE **sig_file_out);
int mkpath(const char *path, mode_t mode);
void split_dirname_basename(char *dirname, char *basename, const char *filepath);
int do_mkstemp(char *template, mode_t perms);
/* The original has no such switch: it never syncs. */
static inline int csync_rs_fsync(int enable)
{
	(void)enable;
	return 0;
}
#else
#include "csync_rs.h"
#endif

#endif
