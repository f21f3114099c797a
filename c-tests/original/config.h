/* The configuration under which csync2's rsync.c is compiled for the comparison: no TLS, nothing else asked for. */

/* glibc has had strlcpy since 2.38; rsync.c's own is static and would clash with it. */
#include <features.h>
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 38)
#define HAVE_STRLCPY 1
#endif
#endif
