#include "files.h"
#include "ct.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what, const char *name)
{
	fail_msg("%s %s: %s", what, name ? name : "", strerror(errno));
	abort();
}

/* The cases' own bytes stay reachable from here: what a checker reports is then the subject's. */
static void **held;
static size_t n_held, room_held;

struct bytes bytes_of(const void *p, size_t n)
{
	struct bytes b = { malloc(n + 1), n };
	if (n_held == room_held) {
		room_held = 2 * room_held + 64;
		held = realloc(held, room_held * sizeof(*held));
	}
	if (!b.p || !held)
		die("malloc", NULL);
	held[n_held++] = b.p;
	if (n && p)
		memcpy(b.p, p, n);
	b.p[n] = 0;
	return b;
}

struct bytes bytes_text(const char *text)
{
	return bytes_of(text, strlen(text));
}

struct bytes bytes_random(size_t n, unsigned seed)
{
	struct bytes b = bytes_of(NULL, n);
	unsigned long long x = 0x9e3779b97f4a7c15ull * (seed + 1);

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		b.p[i] = x >> 32;
	}
	return b;
}

struct bytes bytes_fill(size_t n, int c)
{
	struct bytes b = bytes_of(NULL, n);
	memset(b.p, c, n);
	return b;
}

struct bytes bytes_join(struct bytes a, struct bytes b)
{
	struct bytes c = bytes_of(NULL, a.n + b.n);
	memcpy(c.p, a.p, a.n);
	memcpy(c.p + a.n, b.p, b.n);
	bytes_free(a);
	bytes_free(b);
	return c;
}

struct bytes bytes_part(struct bytes a, size_t from, size_t n)
{
	if (from > a.n)
		from = a.n;
	if (n > a.n - from)
		n = a.n - from;
	return bytes_of(a.p + from, n);
}

void bytes_free(struct bytes b)
{
	for (size_t i = n_held; i-- > 0;)
		if (held[i] == b.p) {
			held[i] = held[--n_held];
			break;
		}
	free(b.p);
}

size_t bytes_made(void)
{
	return n_held;
}

void bytes_free_since(size_t made)
{
	while (n_held > made)
		free(held[--n_held]);
}

void check_bytes(struct bytes a, struct bytes b, const char *file, int line)
{
	size_t i = 0;

	while (i < a.n && i < b.n && a.p[i] == b.p[i])
		i++;
	if (i == a.n && i == b.n)
		return;
	print_error("%zu bytes, expected %zu; the first difference is at %zu\n", a.n, b.n, i);
	_fail(file, line);
}

static void put(const char *path, int flags, struct bytes b)
{
	int fd = open(path, flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		die("open", path);
	for (size_t at = 0; at < b.n;) {
		ssize_t n = write(fd, b.p + at, b.n - at);
		if (n <= 0)
			die("write", path);
		at += n;
	}
	close(fd);
}

void write_file(const char *path, struct bytes b)
{
	put(path, O_TRUNC, b);
}

void append_file(const char *path, struct bytes b)
{
	put(path, O_APPEND, b);
}

struct bytes read_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		die("open", path);
	struct bytes b = bytes_of(NULL, st.st_size);
	size_t at = 0;
	ssize_t n;
	while (at < b.n && (n = read(fd, b.p + at, b.n - at)) > 0)
		at += n;
	b.n = at;
	b.p[at] = 0;
	close(fd);
	return b;
}

void check_file(const char *path, struct bytes b, const char *file, int line)
{
	struct stat st;
	if (lstat(path, &st)) {
		print_error("%s: %s\n", path, strerror(errno));
		_fail(file, line);
	}
	struct bytes a = read_file(path);
	check_bytes(a, b, file, line);
	bytes_free(a);
}

FILE *file_of(struct bytes b, const char *mode)
{
	int fd = memfd_create("case", MFD_CLOEXEC);
	if (fd < 0)
		die("memfd", NULL);
	for (size_t at = 0; at < b.n;) {
		ssize_t n = write(fd, b.p + at, b.n - at);
		if (n <= 0)
			die("write", "memfd");
		at += n;
	}
	lseek(fd, 0, SEEK_SET);
	FILE *f = fdopen(fd, mode);
	if (!f)
		die("fdopen", NULL);
	return f;
}

struct bytes rest_of(FILE *f)
{
	unsigned char *all = NULL;
	size_t got = 0, room = 0, n;

	do {
		if (got == room) {
			room = 2 * room + 8192;
			all = realloc(all, room);
			if (!all)
				die("realloc", NULL);
		}
		n = fread(all + got, 1, room - got, f);
		got += n;
	} while (n > 0);
	struct bytes b = bytes_of(all, got);
	free(all);
	return b;
}

const char *absolute(const char *name)
{
	static char ring[8][1024];
	static unsigned next;
	next = (next + 1) % 8;
	snprintf(ring[next], sizeof(ring[next]), "%s/%s", getenv("CT_SANDBOX"), name);
	return ring[next];
}

char *listing(const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort);
	char *text;
	size_t size;

	if (n < 0)
		die("scandir", dir);
	FILE *f = open_memstream(&text, &size);
	if (!f)
		die("open_memstream", NULL);
	for (int i = 0; i < n; i++) {
		char path[4400];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (strcmp(names[i]->d_name, ".") && strcmp(names[i]->d_name, "..") && !lstat(path, &st))
			fprintf(f, "%o %d:%d %lld %s\n", st.st_mode, (int)st.st_uid, (int)st.st_gid,
				(long long)(S_ISDIR(st.st_mode) ? 0 : st.st_size), names[i]->d_name);
		free(names[i]);
	}
	free(names);
	fclose(f);
	return text;
}

unsigned names_with(const char *dir, const char *part)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		die("opendir", dir);
	while ((e = readdir(d)))
		n += strstr(e->d_name, part) != NULL;
	closedir(d);
	return n;
}

unsigned open_descriptors(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 200; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int next_descriptor(void)
{
	int fd = dup(0);
	if (fd < 0)
		die("dup", NULL);
	close(fd);
	return fd;
}

void become_nobody(void)
{
	if (getuid() != 0)
		return;
	/* SIGKILL at the parent's end is lost by the change of user: alarm() is left. */
	if (chown("d", 65534, 65534) || setgroups(0, NULL) || setresgid(65534, 65534, 65534)
	    || setresuid(65534, 65534, 65534))
		die("setresuid", NULL);
	prctl(PR_SET_DUMPABLE, 1); /* for leak checkers, which trace the process at its end */
}

void limit_file_size(size_t n)
{
	struct rlimit r = { n, n };
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &r))
		die("setrlimit", NULL);
}

void limit_descriptors(int n)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		die("getrlimit", NULL);
	if (n < 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
		return;
	}
	int limit = next_descriptor();
	/* Holes below the limit count too; there are none above next_descriptor() here. */
	r.rlim_cur = limit + n;
	if (setrlimit(RLIMIT_NOFILE, &r))
		die("setrlimit", NULL);
}

void small_tmpfs(const char *dir, size_t size)
{
	char options[64];

	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, ""))
		ct_skip("no mount namespace (not root?)");
	snprintf(options, sizeof(options), "size=%zu,mode=1777", size);
	if (mount("none", dir, "tmpfs", 0, options))
		ct_skip("no tmpfs");
}

const char *other_file_system(void)
{
	static const char *const candidates[] = { "/dev/shm", "/run", "/var/tmp", "/tmp" };
	static char dir[64];
	struct stat here, there;

	if (stat("d", &here))
		die("stat", "d");
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		if (stat(candidates[i], &there) || there.st_dev == here.st_dev || access(candidates[i], W_OK))
			continue;
		snprintf(dir, sizeof(dir), "%s/ct-XXXXXX", candidates[i]);
		if (mkdtemp(dir))
			return dir;
	}
	ct_skip("no second file system");
}

double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
