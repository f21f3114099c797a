#include "ends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *const scene_names[SCENES] = { "edited", "absent", "emptied", "left" };
const char *const trouble_names[TROUBLES] = { "none", "cut short", "EINTR", "EAGAIN", "zero once", "EIO once",
					      "end of stream", "EIO", "EPIPE", "ECONNRESET" };

char ends_directory[200], ends_source[250], ends_target[250];
struct content old_content, new_content, second_content;

static void stop(const char *what)
{
	perror(what);
	_exit(90);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void put(const char *path, struct content content)
{
	static const struct timespec long_ago[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	if (file < 0 || write(file, content.data, content.length) != (ssize_t)content.length || futimens(file, long_ago))
		stop(path);
	close(file);
}

struct content content_of(const char *path)
{
	struct content content = { NULL, 0 };
	struct stat stat;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return content;
	fstat(file, &stat);
	content.length = (size_t)stat.st_size;
	content.data = malloc(content.length + 1);
	if (read(file, content.data, content.length) != (ssize_t)content.length)
		stop(path);
	close(file);
	return content;
}

bool same_content(struct content one, struct content other)
{
	return one.data && other.data && one.length == other.length && !memcmp(one.data, other.data, one.length);
}

static struct content random_content(size_t length, unsigned int seed)
{
	struct content content = { malloc(length), length };

	for (size_t i = 0; i < length; i++) {
		seed = seed * 1103515245 + 12345;
		content.data[i] = (char)(seed >> 16);
	}
	return content;
}

static void in_directory(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", ends_directory, name);
}

void ends_open(const char *directory)
{
	char path[250];

	snprintf(ends_directory, sizeof(ends_directory), "%s/fault-matrix-XXXXXX", directory);
	if (!mkdtemp(ends_directory))
		stop(ends_directory);
	in_directory(path, sizeof(path), "src");
	mkdir(path, 0700);
	in_directory(path, sizeof(path), "dst");
	mkdir(path, 0700);
	in_directory(ends_source, sizeof(ends_source), "src/file");
	in_directory(ends_target, sizeof(ends_target), "dst/file");
	if (old_content.data)
		return;
	/* The new version: a part replaced, a part moved, a part added, the rest (long enough for the kernel) kept. */
	old_content = random_content(200000, 1);
	new_content = random_content(230000, 2);
	memcpy(new_content.data, old_content.data, 90000);
	memcpy(new_content.data + 100000, old_content.data + 90000, 80000);
	memcpy(new_content.data + 200000, old_content.data + 10000, 8192);
	second_content = random_content(10000, 3);
}

static void clear(const char *name)
{
	char path[250], below[600];
	struct dirent *entry;

	in_directory(path, sizeof(path), name);
	DIR *directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && remove(below))
			stop(below);
	}
	if (directory)
		closedir(directory);
}

void ends_close(void)
{
	char path[250];

	clear("src");
	clear("dst");
	in_directory(path, sizeof(path), "src");
	rmdir(path);
	in_directory(path, sizeof(path), "dst");
	rmdir(path);
	rmdir(ends_directory);
}

/* The name that a killed process leaves (src/files/temporary.rs). */
#define LEFT_NAME ".file.NeRix9"

void set_scene(enum scene scene)
{
	char path[250];

	clear("src");
	clear("dst");
	put(ends_source, scene == EMPTIED ? (struct content){ "", 0 } : new_content);
	in_directory(path, sizeof(path), "src/second");
	put(path, second_content);
	if (scene != ABSENT)
		put(ends_target, old_content);
	in_directory(path, sizeof(path), "dst/" LEFT_NAME);
	if (scene == LEFT)
		put(path, second_content);
}

unsigned int strangers(const char *directory, char *name)
{
	struct dirent *entry;
	unsigned int found = 0;
	DIR *listing = opendir(directory);

	while (listing && (entry = readdir(listing))) {
		static const char *const expected[] = { ".", "..", "file", "second" };
		bool known = false;
		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
			known |= !strcmp(entry->d_name, expected[i]);
		if (!known) {
			strcpy(name, entry->d_name);
			found++;
		}
	}
	if (listing)
		closedir(listing);
	return found;
}

bool is_temporary(const char *name)
{
	return (!strncmp(name, ".file.", 6) && strlen(name) == 12) || (!strncmp(name, ".second.", 8) && strlen(name) == 14);
}

/* ---- A connection in memory -------------------------------------------------------------------------------------- */

#define RING 8192

struct ring {
	char bytes[RING];
	size_t start, filled;
	bool closed; /* nobody writes any more, or nobody reads any more */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved;
static struct ring rings[2]; /* by the side that reads it */

struct end {
	struct play *play;
	enum side side;
	unsigned int calls[2];
};

/* The fault of this call: NO_TROUBLE, or what is to happen. */
static enum trouble trouble_now(struct end *end, enum call call)
{
	struct play *play = end->play;

	if (play->trouble == NO_TROUBLE || play->side != end->side || play->call != call)
		return NO_TROUBLE;
	unsigned int number = ++end->calls[call];
	if (number < play->nth || (number > play->nth && IS_ONCE(play->trouble)))
		return NO_TROUBLE;
	play->fired = true;
	return play->trouble;
}

/* Errno is set, and 0 or -1 returned, or the count to go on with (0 bytes to be refused by nobody). */
static ssize_t suffer(enum trouble trouble, size_t *count)
{
	static const int errors[TROUBLES] = { [ONCE_EINTR] = EINTR, [ONCE_EAGAIN] = EAGAIN, [ONCE_EIO] = EIO,
					      [ALWAYS_EIO] = EIO, [ALWAYS_EPIPE] = EPIPE, [ALWAYS_ECONNRESET] = ECONNRESET };

	if (trouble == CUT_SHORT)
		*count = 1;
	if (trouble == NO_TROUBLE || trouble == CUT_SHORT)
		return 1;
	if (trouble == ONCE_ZERO || trouble == ALWAYS_ZERO)
		return 0;
	errno = errors[trouble];
	return -1;
}

static ssize_t move_in(struct ring *ring, char *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = ring->bytes[ring->start];
		ring->start = (ring->start + 1) % RING;
	}
	ring->filled -= count;
	pthread_cond_broadcast(&moved);
	return (ssize_t)count;
}

static ssize_t memory_read(void *userdata, void *buffer, size_t count)
{
	struct end *end = userdata;
	struct ring *ring = &rings[end->side];
	ssize_t result;

	pthread_mutex_lock(&lock);
	if (ring->filled == 0) {
		errno = EAGAIN;
		result = ring->closed ? 0 : -1;
	} else {
		if (count > ring->filled)
			count = ring->filled;
		result = suffer(trouble_now(end, READ), &count);
		if (result > 0)
			result = move_in(ring, buffer, count);
	}
	int error = errno;
	pthread_mutex_unlock(&lock);
	errno = error;
	return result;
}

static ssize_t move_out(struct ring *ring, const char *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ring->bytes[(ring->start + ring->filled + i) % RING] = from[i];
	ring->filled += count;
	pthread_cond_broadcast(&moved);
	return (ssize_t)count;
}

static ssize_t memory_write(void *userdata, const void *buffer, size_t count)
{
	struct end *end = userdata;
	struct ring *ring = &rings[!end->side];
	ssize_t result = -1;

	pthread_mutex_lock(&lock);
	if (ring->closed) {
		errno = EPIPE;
	} else if (ring->filled == RING) {
		errno = EAGAIN;
	} else {
		if (count > RING - ring->filled)
			count = RING - ring->filled;
		result = suffer(trouble_now(end, WRITE), &count);
		if (result > 0)
			result = move_out(ring, buffer, count);
	}
	int error = errno;
	pthread_mutex_unlock(&lock);
	errno = error;
	return result;
}

/* Whether a call of this kind would be refused, under the lock. */
static bool is_stuck(const struct end *end, int for_write)
{
	const struct ring *in = &rings[end->side], *out = &rings[!end->side];
	return for_write ? out->filled == RING && !out->closed : in->filled == 0 && !in->closed;
}

static void memory_wait(void *userdata, int for_write, unsigned int milliseconds)
{
	struct end *end = userdata;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
	until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	/* A write that waits ends when there is input too. */
	while (is_stuck(end, for_write) && !(for_write && !is_stuck(end, 0)) &&
	       pthread_cond_timedwait(&moved, &lock, &until) == 0)
		;
	pthread_mutex_unlock(&lock);
}

static void memory_close(enum side side)
{
	pthread_mutex_lock(&lock);
	rings[!side].closed = true;
	/* What was sent and not read is lost for the one who closes. */
	rings[side].closed = true;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

static void memory_open(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&moved, &attributes);
	memset(rings, 0, sizeof(rings));
}

/* ---- The two ends ------------------------------------------------------------------------------------------------ */

static int descriptors[2][2]; /* by side: input, output */

static void open_descriptors(enum carrier carrier)
{
	int one[2], other[2];

	if (carrier == SOCKETS) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, one))
			stop("socketpair");
		descriptors[SENDER][0] = descriptors[SENDER][1] = one[0];
		descriptors[RECEIVER][0] = descriptors[RECEIVER][1] = one[1];
	} else {
		if (pipe2(one, O_CLOEXEC) || pipe2(other, O_CLOEXEC))
			stop("pipe");
		descriptors[SENDER][0] = one[0];
		descriptors[RECEIVER][1] = one[1];
		descriptors[RECEIVER][0] = other[0];
		descriptors[SENDER][1] = other[1];
	}
}

static void close_descriptors(enum side side)
{
	close(descriptors[side][0]);
	if (descriptors[side][1] != descriptors[side][0])
		close(descriptors[side][1]);
}

static struct csync_engine *engine_of(struct end *end)
{
	struct play *play = end->play;
	struct csync_options options = { .size = sizeof(options), .chunk = 4096, .fsync = play->fsync,
					 .temp_dir = play->temp_dir, .silence_limit = 20000 };
	struct csync_transport transport = { .size = sizeof(transport), .userdata = end, .read = memory_read,
					     .write = memory_write, .wait = memory_wait };
	struct csync_engine *engine = NULL;

	if (play->carrier == MEMORY)
		csync_engine_over_transport(&transport, &options, &engine);
	else
		csync_engine_over_descriptors(descriptors[end->side][0], descriptors[end->side][1], NULL, &engine);
	return engine;
}

static bool is_lost(int status)
{
	return status == CSYNC_E_CONNECTION || status == CSYNC_E_TIMEOUT || status == CSYNC_E_STATE ||
	       status == CSYNC_E_PAYLOAD || status == CSYNC_E_CANCELLED || status == CSYNC_E_INTERNAL;
}

static int step(struct end *end, struct csync_engine *engine, int number)
{
	char path[250];
	int differs;

	in_directory(path, sizeof(path), end->side == SENDER ? "src/second" : "dst/second");
	if (end->side == SENDER)
		return number == 0 ? csync_engine_check(engine, ends_source, &differs)
				   : csync_engine_push(engine, number == 1 ? ends_source : path);
	return number == 0 ? csync_engine_signature(engine, ends_target)
			   : csync_engine_pull(engine, number == 1 ? ends_target : path);
}

static void *run(void *argument)
{
	struct end *end = argument;
	struct outcome *outcome = &end->play->outcome[end->side];

	if (end->play->prepare)
		end->play->prepare(end->side);
	struct csync_engine *engine = engine_of(end);
	for (int number = 0; number < 3; number++) {
		int status = step(end, engine, number);
		outcome->status[number] = status;
		snprintf(outcome->error[number], sizeof(outcome->error[0]), "%s", csync_engine_error(engine));
		if (is_lost(status))
			break;
	}
	csync_engine_free(engine);
	if (end->play->carrier == MEMORY)
		memory_close(end->side);
	else
		close_descriptors(end->side);
	outcome->finished = true;
	return NULL;
}

void perform(struct play *play)
{
	struct end ends[2] = { { .play = play, .side = SENDER }, { .play = play, .side = RECEIVER } };
	pthread_t threads[2];

	memset(play->outcome, 0, sizeof(play->outcome));
	for (int side = 0; side < 2; side++)
		for (int number = 0; number < 3; number++)
			play->outcome[side].status[number] = -1;
	play->fired = false;
	if (play->carrier == MEMORY)
		memory_open();
	else
		open_descriptors(play->carrier);
	for (int side = 0; side < 2; side++)
		if (pthread_create(&threads[side], NULL, run, &ends[side]))
			stop("pthread_create");
	for (int side = 0; side < 2; side++)
		pthread_join(threads[side], NULL);
}
