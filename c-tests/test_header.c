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

/* And those of the engine's interface. */
static int (*volatile p_register)(const struct csync_host *) = csync_host_register;
static const char *(*volatile p_text)(int) = csync_status_text;
static enum csync_status (*volatile p_descriptors)(int, int, const struct csync_options *, struct csync_engine **) =
	csync_engine_over_descriptors;
static enum csync_status (*volatile p_transport)(const struct csync_transport *, const struct csync_options *,
						 struct csync_engine **) = csync_engine_over_transport;
static enum csync_status (*volatile p_host)(const struct csync_options *, struct csync_engine **) = csync_engine_over_host;
static void (*volatile p_free)(struct csync_engine *) = csync_engine_free;
static void (*volatile p_cancel)(const struct csync_engine *) = csync_engine_cancel;
static const char *(*volatile p_error)(const struct csync_engine *) = csync_engine_error;
static int (*volatile p_errno)(const struct csync_engine *) = csync_engine_errno;
static enum csync_status (*volatile p_esend)(struct csync_engine *, int) = csync_engine_send;
static enum csync_status (*volatile p_ereceive)(struct csync_engine *, int, uint64_t *) = csync_engine_receive;
static enum csync_status (*volatile p_esignature)(struct csync_engine *, const char *) = csync_engine_signature;
static enum csync_status (*volatile p_echeck)(struct csync_engine *, const char *, int *) = csync_engine_check;
static enum csync_status (*volatile p_edelta)(struct csync_engine *, const char *) = csync_engine_delta;
static enum csync_status (*volatile p_epatch)(struct csync_engine *, const char *) = csync_engine_patch;
static enum csync_status (*volatile p_epush)(struct csync_engine *, const char *) = csync_engine_push;
static enum csync_status (*volatile p_epull)(struct csync_engine *, const char *) = csync_engine_pull;

int main(void)
{
	return p_send && p_recv && p_check && p_sig && p_delta && p_patch && p_sigfile && p_mkpath && p_split && p_mkstemp
		&& p_fsync && p_register && p_text && p_descriptors && p_transport && p_host && p_free && p_cancel && p_error
		&& p_errno && p_esend && p_ereceive && p_esignature && p_echeck && p_edelta && p_epatch && p_epush && p_epull
		? 0 : 1;
}
