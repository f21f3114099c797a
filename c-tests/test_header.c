/* The header alone, in whatever language it is compiled: the constant and every prototype, as rsync.c has them. */
#include "csync_rs.h"

#if CSYNC_CHUNK != 16384
#error "CSYNC_CHUNK is the largest payload of a TLS record"
#endif

/* Each is assigned to a pointer of rsync.c's own type: another prototype does not compile. */
static void (*const p_send)(FILE *) = csync_send_file;
static int (*const p_recv)(FILE *) = csync_recv_file;
static int (*const p_check)(const char *, int) = csync_rs_check;
static void (*const p_sig)(const char *) = csync_rs_sig;
static int (*const p_delta)(const char *) = csync_rs_delta;
static int (*const p_patch)(const char *) = csync_rs_patch;
static int (*const p_sigfile)(const char *, FILE **) = csync_rs_sigfile;
static int (*const p_mkpath)(const char *, mode_t) = mkpath;
static void (*const p_split)(char *, char *, const char *) = split_dirname_basename;
static int (*const p_mkstemp)(char *, mode_t) = do_mkstemp;
static int (*const p_fsync)(int) = csync_rs_fsync;

int main(void)
{
	return p_send && p_recv && p_check && p_sig && p_delta && p_patch && p_sigfile && p_mkpath && p_split && p_mkstemp
		&& p_fsync ? 0 : 1;
}
