/*
 * Faults in the system calls of one thread, whoever makes them: a seccomp filter hands the calls of interest to a
 * supervisor in the same process, which counts them and lets one fail, cuts it short, kills the process ahead of it, or
 * does something else first. A filter stays for ever: each fault needs a process of its own.
 */
#ifndef SYSCALLS_H
#define SYSCALLS_H

#include <stdbool.h>

enum measure {
	LOOK,  /* nothing but record */
	FAIL,  /* the nth call fails */
	FAIL_ON, /* so do all later ones of its kind */
	SHORTEN, /* the nth call moves fewer bytes */
	KILL,  /* SIGKILL ahead of the nth call */
	HOOK,  /* the hook is called ahead of the nth call */
};

/* Which calls count. */
enum calls { OF_FILES, OF_DESCRIPTORS };

/* A file system, or a kernel, that cannot do it, from the start. */
enum lack { NOTHING, NO_TMPFILE, NO_LINK };

#define MOST_CALLS 4000

/* In memory that outlives the process. */
struct injection {
	enum calls calls;
	enum lack lack;
	enum measure measure;
	unsigned int nth;
	int error;
	void (*hook)(void);
	/* Found: */
	bool fired;
	unsigned int count;
	short seen[MOST_CALLS]; /* index of each call, for call_name() and errors_of() */
};

/* Once per process, ahead of inject(). */
void supervise(struct injection *injection);
/* In the thread that is to suffer. */
void inject(void);

const char *call_name(int index);
/* The errors that this call can end with; 0 at the end. */
const int *errors_of(int index);
bool can_be_short(int index);

#endif
