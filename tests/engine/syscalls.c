#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT = 1, LINKS = 2, OPENS = 4 };

static const struct known {
	int number;
	const char *name;
	enum calls calls;
	int count_argument; /* of what can be cut short; else -1 */
	int errors[14];
} known[] = {
	{ SYS_openat, "openat", OF_FILES, -1,
	  { EACCES, EMFILE, ENFILE, ENOSPC, EDQUOT, EROFS, ENAMETOOLONG, EIO, EINTR, ENOMEM } },
#ifdef SYS_open
	{ SYS_open, "open", OF_FILES, -1,
	  { EACCES, EMFILE, ENFILE, ENOSPC, EDQUOT, EROFS, ENAMETOOLONG, EIO, EINTR, ENOMEM } },
#endif
	{ SYS_read, "read", OF_FILES, 2, { EIO, EINTR, EISDIR } },
	{ SYS_pread64, "pread64", OF_FILES, 2, { EIO, EINTR } },
	{ SYS_write, "write", OF_FILES, 2, { ENOSPC, EDQUOT, EFBIG, EIO, EINTR } },
	{ SYS_pwrite64, "pwrite64", OF_FILES, 2, { ENOSPC, EDQUOT, EFBIG, EIO, EINTR } },
	{ SYS_copy_file_range, "copy_file_range", OF_FILES, 4,
	  { ENOSPC, EDQUOT, EFBIG, EIO, EINTR, EXDEV, EINVAL, EOPNOTSUPP, ENOSYS, EPERM, ENOMEM, ETXTBSY } },
	{ SYS_fsync, "fsync", OF_FILES, -1, { EIO, ENOSPC, EDQUOT, EROFS, EINTR } },
	{ SYS_fdatasync, "fdatasync", OF_FILES, -1, { EIO, ENOSPC, EDQUOT, EROFS, EINTR } },
	{ SYS_linkat, "linkat", OF_FILES, -1,
	  { EACCES, EROFS, ENOSPC, EDQUOT, ENAMETOOLONG, EIO, EMLINK, ENOENT, EPERM, EINVAL, EXDEV } },
	{ SYS_renameat, "renameat", OF_FILES, -1, { EACCES, EROFS, ENOSPC, EDQUOT, EIO, EBUSY, EPERM, ENOENT } },
	{ SYS_renameat2, "renameat2", OF_FILES, -1, { EACCES, EROFS, ENOSPC, EDQUOT, EIO, EBUSY, EPERM, EINVAL, ENOSYS } },
#ifdef SYS_rename
	{ SYS_rename, "rename", OF_FILES, -1, { EACCES, EROFS, ENOSPC, EDQUOT, EIO, EBUSY, EPERM } },
#endif
	{ SYS_unlinkat, "unlinkat", OF_FILES, -1, { EACCES, EROFS, EIO, EPERM, EBUSY } },
	{ SYS_fchmod, "fchmod", OF_FILES, -1, { EPERM, EROFS, EIO } },
	{ SYS_fchown, "fchown", OF_FILES, -1, { EPERM, EROFS, EDQUOT, EIO } },
	{ SYS_fstat, "fstat", OF_FILES, -1, { EIO, ENOMEM } },
	{ SYS_newfstatat, "newfstatat", OF_FILES, -1, { EIO, ENOMEM, EACCES, ENAMETOOLONG } },
	{ SYS_statx, "statx", OF_FILES, -1, { EIO, ENOMEM, EACCES } },
	{ SYS_flistxattr, "flistxattr", OF_FILES, -1, { EOPNOTSUPP, EIO, ENOMEM, EACCES } },
	{ SYS_fgetxattr, "fgetxattr", OF_FILES, -1, { ENODATA, EIO, EACCES } },
	{ SYS_fsetxattr, "fsetxattr", OF_FILES, -1, { ENOSPC, EDQUOT, EPERM, EOPNOTSUPP } },
	{ SYS_fremovexattr, "fremovexattr", OF_FILES, -1, { EOPNOTSUPP, ENODATA, EPERM, EIO } },
	{ SYS_fcntl, "fcntl", OF_FILES, -1, { EMFILE } },
	{ SYS_flock, "flock", OF_FILES, -1, { EWOULDBLOCK, EINTR, ENOLCK, EOPNOTSUPP } },
	{ SYS_lseek, "lseek", OF_FILES, -1, { EIO } },
	{ SYS_ftruncate, "ftruncate", OF_FILES, -1, { EIO, ENOSPC } },
	{ SYS_recvfrom, "recvfrom", OF_DESCRIPTORS, 2, { EINTR, EAGAIN, EIO, ECONNRESET, ETIMEDOUT, ENOMEM } },
	{ SYS_sendto, "sendto", OF_DESCRIPTORS, 2, { EINTR, EAGAIN, EIO, EPIPE, ECONNRESET, ENOBUFS, ENOMEM } },
	{ SYS_sendfile, "sendfile", OF_DESCRIPTORS, 3, { EINTR, EAGAIN, EIO, EPIPE, ECONNRESET, EINVAL, ENOSYS, ENOMEM } },
	{ SYS_splice, "splice", OF_DESCRIPTORS, 4, { EINTR, EAGAIN, EIO, EPIPE, EINVAL, ENOSYS, ENOMEM } },
	{ SYS_pwritev2, "pwritev2", OF_DESCRIPTORS, -1, { EINTR, EAGAIN, EIO, EPIPE, EOPNOTSUPP, ENOSYS, EINVAL } },
	{ SYS_poll, "poll", OF_DESCRIPTORS, -1, { EINTR, ENOMEM } },
	{ SYS_ppoll, "ppoll", OF_DESCRIPTORS, -1, { EINTR, ENOMEM } },
	/* On a pipe. */
	{ SYS_read, "read", OF_DESCRIPTORS, 2, { EINTR, EAGAIN, EIO } },
	{ SYS_write, "write", OF_DESCRIPTORS, 2, { EINTR, EAGAIN, EIO, EPIPE } },
};
#define KNOWN (int)(sizeof(known) / sizeof(known[0]))

static struct injection *injection;
static int listener = -1;

const char *call_name(int index)
{
	return known[index].name;
}

const int *errors_of(int index)
{
	return known[index].errors;
}

bool can_be_short(int index)
{
	return known[index].count_argument >= 0;
}

static bool is_pipe(int descriptor)
{
	struct stat stat;
	return !fstat(descriptor, &stat) && S_ISFIFO(stat.st_mode);
}

static int index_of(const struct seccomp_data *data)
{
	bool ambiguous = data->nr == SYS_read || data->nr == SYS_write;
	enum calls calls = injection->calls;

	if (ambiguous && is_pipe((int)data->args[0]) != (calls == OF_DESCRIPTORS))
		return -1;
	for (int i = 0; i < KNOWN; i++)
		if (known[i].number == data->nr && known[i].calls == calls)
			return i;
	return -1;
}

/* The error of a call that can never be done here. */
static int lacking(const struct seccomp_data *data)
{
	bool unnamed = data->nr == SYS_openat && (data->args[2] & O_TMPFILE) == O_TMPFILE;

	if (injection->lack == NO_TMPFILE && unnamed)
		return EOPNOTSUPP;
	if (injection->lack == NO_LINK && data->nr == SYS_linkat)
		return ENOENT;
	return 0;
}

/* The same process: the call can be made for the thread that waits. */
static long shortened(const struct seccomp_data *data, int index)
{
	uint64_t arguments[6];

	memcpy(arguments, data->args, sizeof(arguments));
	uint64_t *count = &arguments[known[index].count_argument];
	*count = *count > 2 ? *count / 2 : 1;
	long result = syscall(data->nr, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
	return result < 0 ? -errno : result;
}

static void judge(const struct seccomp_data *data, struct seccomp_notif_resp *answer)
{
	answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	int index = index_of(data), error = lacking(data);
	if (error) {
		answer->flags = 0;
		answer->error = -error;
		return;
	}
	if (index < 0)
		return;
	unsigned int number = ++injection->count;
	if (number <= MOST_CALLS)
		injection->seen[number - 1] = (short)index;
	static int kind = -1;
	bool again = injection->measure == FAIL_ON && number > injection->nth && index == kind;
	if (number != injection->nth && !again)
		return;
	kind = index;
	injection->fired = true;
	switch (injection->measure) {
	case LOOK:
		injection->fired = false;
		break;
	case FAIL:
	case FAIL_ON:
		answer->flags = 0;
		answer->error = -injection->error;
		break;
	case SHORTEN:
		answer->flags = 0;
		answer->val = shortened(data, index);
		if (answer->val < 0) {
			answer->error = (int)answer->val;
			answer->val = 0;
		}
		break;
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case HOOK:
		injection->hook();
		break;
	}
}

static void *supervisor(void *unused)
{
	(void)unused;
	while (__atomic_load_n(&listener, __ATOMIC_ACQUIRE) < 0)
		usleep(50);
	for (;;) {
		struct seccomp_notif call;
		struct seccomp_notif_resp answer;

		memset(&call, 0, sizeof(call));
		memset(&answer, 0, sizeof(answer));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			return NULL;
		}
		answer.id = call.id;
		judge(&call.data, &answer);
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

void supervise(struct injection *wanted)
{
	pthread_t thread;

	injection = wanted;
	if (pthread_create(&thread, NULL, supervisor, NULL))
		_exit(91);
	pthread_detach(thread);
}

void inject(void)
{
	struct sock_filter filter[2 * KNOWN + 2];
	unsigned short length = 0;

	filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < KNOWN; i++) {
		if (known[i].calls != injection->calls)
			continue;
		filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)known[i].number, 0, 1);
		filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { length, filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long descriptor = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (descriptor < 0)
		_exit(92);
	__atomic_store_n(&listener, (int)descriptor, __ATOMIC_RELEASE);
}
