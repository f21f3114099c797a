/* The header alone, in whatever language it is compiled: the constant and every prototype, as rsync.c has them. */
#include "csync_rs.h"

#if CSYNC_CHUNK != 16384
#error "CSYNC_CHUNK is the largest payload of a TLS record"
#endif

/* Each is assigned to a pointer of rsync.c's own type: another prototype does not compile. */
static void (*volatile p_send)(FILE *) = csync_send_file;
static int (*volatile p_recv)(FILE *) = csync_recv_file;
static int (*volatile p_check)(const char *, int) = csync_rs_check;
static void (*volatile p_sig)(const char *) = csync_rs_sig;
static int (*volatile p_delta)(const char *) = csync_rs_delta;
static int (*volatile p_patch)(const char *) = csync_rs_patch;
static int (*volatile p_sigfile)(const char *, FILE **) = csync_rs_sigfile;
static int (*volatile p_mkpath)(const char *, mode_t) = mkpath;
static void (*volatile p_split)(char *, char *, const char *) = split_dirname_basename;
static int (*volatile p_mkstemp)(char *, mode_t) = do_mkstemp;
static int (*volatile p_fsync)(int) = csync_rs_fsync;

int main(void)
{
	return p_send && p_recv && p_check && p_sig && p_delta && p_patch && p_sigfile && p_mkpath && p_split && p_mkstemp
		&& p_fsync ? 0 : 1;
}
