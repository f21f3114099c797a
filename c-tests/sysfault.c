#include "sysfault.h"
#include "ct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct rule {
	enum sys_class class;
	const char *part;
	unsigned nth, count;
	int err;
	void (*hook)(void);
} rules[8];
static unsigned n_rules;

static struct event {
	enum sys_class class;
	char path[200];
} events[4096];
static unsigned n_events;

static int listener = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static const struct call {
	int nr;
	enum sys_class class;
	int fd_arg, path_arg, flags_arg;
} calls[] = {
	{ SYS_read, SYS_READS, 0, -1, -1 },
	{ SYS_pread64, SYS_READS, 0, -1, -1 },
	{ SYS_readv, SYS_READS, 0, -1, -1 },
	{ SYS_preadv, SYS_READS, 0, -1, -1 },
	{ SYS_preadv2, SYS_READS, 0, -1, -1 },
	{ SYS_sendfile, SYS_READS, 1, -1, -1 },
	{ SYS_copy_file_range, SYS_READS, 0, -1, -1 },
	{ SYS_write, SYS_WRITES, 0, -1, -1 },
	{ SYS_pwrite64, SYS_WRITES, 0, -1, -1 },
	{ SYS_writev, SYS_WRITES, 0, -1, -1 },
	{ SYS_pwritev, SYS_WRITES, 0, -1, -1 },
	{ SYS_pwritev2, SYS_WRITES, 0, -1, -1 },
	{ SYS_copy_file_range, SYS_WRITES, 2, -1, -1 },
	{ SYS_fsync, SYS_SYNCS, 0, -1, -1 },
	{ SYS_fdatasync, SYS_SYNCS, 0, -1, -1 },
	{ SYS_renameat, SYS_RENAMES, -1, 3, -1 },
	{ SYS_renameat2, SYS_RENAMES, -1, 3, -1 },
	{ SYS_openat, SYS_CREATES, -1, 1, 2 },
#ifdef SYS_rename
	{ SYS_rename, SYS_RENAMES, -1, 1, -1 },
	{ SYS_open, SYS_CREATES, -1, 0, 1 },
#endif
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

void sys_fail(enum sys_class c, const char *part, unsigned nth, int err)
{
	rules[n_rules++] = (struct rule){ .class = c, .part = part, .nth = nth, .err = err };
}

void sys_hook(enum sys_class c, const char *part, unsigned nth, void (*hook)(void))
{
	rules[n_rules++] = (struct rule){ .class = c, .part = part, .nth = nth, .hook = hook };
}

/* The judgement on one call: an errno, or 0 to let it pass. */
static int consider(const struct seccomp_data *d)
{
	int err = 0;

	for (size_t i = 0; i < N_CALLS; i++) {
		const struct call *c = &calls[i];
		char path[4200] = "";

		if (c->nr != d->nr)
			continue;
		if (c->flags_arg >= 0 && !(d->args[c->flags_arg] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))))
			continue;
		if (c->path_arg >= 0) {
			/* The same address space; the caller waits. */
			snprintf(path, sizeof(path), "%s", (const char *)(uintptr_t)d->args[c->path_arg]);
		} else {
			char link[64];
			snprintf(link, sizeof(link), "/proc/self/fd/%d", (int)d->args[c->fd_arg]);
			ssize_t n = readlink(link, path, sizeof(path) - 1);
			path[n > 0 ? n : 0] = 0;
		}
		if (n_events < sizeof(events) / sizeof(events[0])) {
			events[n_events].class = c->class;
			size_t n = strlen(path), room = sizeof(events[0].path) - 1;
			strcpy(events[n_events].path, n > room ? path + n - room : path);
			n_events++;
		}
		for (unsigned r = 0; r < n_rules; r++) {
			if (rules[r].class != c->class || (rules[r].part && !strstr(path, rules[r].part)))
				continue;
			rules[r].count++;
			if (rules[r].hook && rules[r].count == rules[r].nth)
				rules[r].hook();
			if (rules[r].err && rules[r].count >= rules[r].nth)
				err = rules[r].err;
		}
	}
	return err;
}

/* A leak check at the end would stop the supervisor, and then wait for its answers. */
static void leave_without_leak_check(void)
{
	fflush(stdout);
	_exit(0);
}

static void *supervisor(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (listener < 0)
		pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);

	for (;;) {
		struct seccomp_notif n;
		struct seccomp_notif_resp r;

		memset(&n, 0, sizeof(n));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n)) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			return NULL;
		}
		memset(&r, 0, sizeof(r));
		r.id = n.id;
		r.error = -consider(&n.data);
		if (r.error == 0)
			r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
	}
}

void sys_start(void)
{
	struct sock_filter f[2 * N_CALLS + 4];
	unsigned n = 0;
	pthread_t t;

	/* Only the calls that rules or sys_seen() speak of; reads and writes only where a rule names them. */
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_CALLS; i++) {
		int wanted = calls[i].class != SYS_READS && calls[i].class != SYS_WRITES;
		for (unsigned r = 0; r < n_rules; r++)
			wanted |= rules[r].class == calls[i].class;
		if (!wanted)
			continue;
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].nr, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { n, f };

	if (ct_valgrind())
		ct_skip("no seccomp under valgrind");
	atexit(leave_without_leak_check);
	if (pthread_create(&t, NULL, supervisor, NULL))
		ct_skip("no thread");
	pthread_detach(t);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	if (fd < 0)
		ct_skip("no seccomp listener");
	/* No notified call before the supervisor has the listener: futex is none. */
	pthread_mutex_lock(&lock);
	listener = (int)fd;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
}

unsigned sys_seen(enum sys_class c, const char *part, unsigned nth)
{
	for (unsigned i = 0; i < n_events; i++)
		if (events[i].class == c && (!part || strstr(events[i].path, part)) && --nth == 0)
			return i + 1;
	return 0;
}
