/*
 * Faults in system calls, whoever makes them: a seccomp filter hands the calls of interest to a thread of the case,
 * which lets them pass, makes them fail, or does something first (a file that changes just then).
 * Works for libc's calls as for a library's own. Under valgrind, or without seccomp, the case is skipped.
 */
#ifndef SYSFAULT_H
#define SYSFAULT_H

enum sys_class {
	SYS_READS,   /* read, pread64, readv, preadv, preadv2, copy_file_range and sendfile from the file */
	SYS_WRITES,  /* write, pwrite64, writev, pwritev, pwritev2, copy_file_range to the file */
	SYS_SYNCS,   /* fsync, fdatasync */
	SYS_RENAMES, /* rename, renameat, renameat2 */
	SYS_CREATES, /* open, openat with O_CREAT or O_TMPFILE */
	SYS_CLASSES
};

/*
 * Calls of this class on a file whose path holds part (NULL: any), from the nth on (counted from 1).
 * once: only the nth. For SYS_RENAMES and SYS_CREATES the path is the (new) name given.
 */
void sys_fail(enum sys_class c, const char *part, unsigned nth, int err);
void sys_hook(enum sys_class c, const char *part, unsigned nth, void (*hook)(void));
/* Installs the filter in this thread, after the rules. From here to the end of the case. */
void sys_start(void);

/* What passed: position of the nth event of this class in the order of all (0: did not happen). */
unsigned sys_seen(enum sys_class c, const char *part, unsigned nth);

#endif
