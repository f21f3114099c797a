/*
 * The fault matrix: a check, a delta and a patch between two ends in one process, again and again, each time with one
 * fault, at every call where it can happen. After each: the old file or the whole new one; no temporary file; both ends
 * in step or ended with an error that names the file.
 *
 *   fault-matrix [DIRECTORY ...]     FAULT_MATRIX=full: every fault; else a selection
 *                                    FAULT_ONLY=text: only the system calls of the settings with it in their name
 */
#include "ends.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool full;
static unsigned int injected, failures, passed_families, failed_families;

/* ---- Verdicts ---------------------------------------------------------------------------------------------------- */

static char context[300];
static unsigned int faults_here;

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list arguments;

	faults_here++;
	if (faults_here > 20)
		return;
	printf("#   %s: ", context);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

static void family(const char *name, unsigned int faults)
{
	printf("%s - %s (%u faults)\n", faults_here ? "not ok" : "ok", name, faults);
	fflush(stdout);
	failures += faults_here;
	if (faults_here)
		failed_families++;
	else
		passed_families++;
	faults_here = 0;
}

static void tell(const struct play *play)
{
	static const char *const sides[] = { "sender", "receiver" };

	for (int side = 0; side < 2; side++)
		for (int number = 0; number < 3; number++)
			if (play->outcome[side].status[number] > 0 && faults_here <= 20)
				printf("#     %s, call %d: %d, %s\n", sides[side], number + 1, play->outcome[side].status[number],
				       play->outcome[side].error[number]);
}

/* What holds after every fault but a killed process. */
static void judge_outcome(const struct play *play)
{
	const struct outcome *sender = &play->outcome[SENDER], *receiver = &play->outcome[RECEIVER];
	static const char *const files[] = { "file", "file", "second" };
	unsigned int before = faults_here;

	for (int side = 0; side < 2; side++)
		for (int number = 0; number < 3; number++) {
			const struct outcome *outcome = &play->outcome[side];
			if (outcome->status[number] > 0 && !strstr(outcome->error[number], files[number]))
				complain("a message that does not name the file: `%s`", outcome->error[number]);
			if (outcome->status[number] == CSYNC_E_INTERNAL || outcome->status[number] == CSYNC_E_TIMEOUT)
				complain("status %d", outcome->status[number]);
		}
	if (sender->status[1] == CSYNC_OK && receiver->status[1] != CSYNC_OK)
		complain("the sender was told that all is well");
	/* An end that is out of step finds something else than it waits for. */
	for (int number = 0; number < 3; number++)
		if (receiver->status[number] == CSYNC_E_FORMAT && sender->status[number] == CSYNC_OK)
			complain("the receiver finds a wrong format in what the sender has sent");
	if (before != faults_here)
		tell(play);
}

static void judge_untouched(const struct play *play)
{
	for (int side = 0; side < 2; side++)
		for (int number = 0; number < 3; number++)
			if (play->outcome[side].status[number] != CSYNC_OK) {
				complain("was to pass untouched");
				tell(play);
				return;
			}
}

static struct content wanted_content(enum scene scene)
{
	return scene == EMPTIED ? (struct content){ "", 0 } : new_content;
}

/* The old file or the whole new one, and no other names but as many of ours as may be left. */
static void judge_files(const struct play *play, bool killed, unsigned int left)
{
	struct content found = content_of(ends_target);
	bool is_new = same_content(found, wanted_content(play->scene));
	bool is_old = play->scene == ABSENT ? !found.data : same_content(found, old_content);
	char path[250], name[256] = "";

	if (!is_new && !is_old)
		complain("neither the old file nor the new one: %zu bytes", found.length);
	if (!killed && play->outcome[RECEIVER].status[1] == CSYNC_OK && !is_new)
		complain("the receiver says that all is well and has the old file");
	free(found.data);
	snprintf(path, sizeof(path), "%s/src", ends_directory);
	if (strangers(path, name))
		complain("%s stands beside the source", name);
	snprintf(path, sizeof(path), "%s/dst", ends_directory);
	unsigned int others = strangers(path, name);
	/* What was there from the start goes with the first that gets so far. */
	if (left == 0 && play->scene == LEFT)
		left = 1;
	if (others > left || (others && !is_temporary(name)))
		complain("%u other names, %s among them", others, name);
}

/* A file that fails does not cost the connection. */
static void judge_connection(const struct play *play)
{
	for (int side = 0; side < 2; side++)
		if (play->outcome[side].status[2] == -1 || play->outcome[side].status[2] == CSYNC_E_CONNECTION) {
			complain("the connection is lost");
			tell(play);
			return;
		}
}

/* Once more without a fault: all is put right. */
static void judge_next(enum scene scene, const char *temp_dir)
{
	struct play next = { .scene = scene, .temp_dir = temp_dir };
	char path[250], name[256] = "";

	perform(&next);
	judge_untouched(&next);
	struct content found = content_of(ends_target), source = content_of(ends_source);
	if (!same_content(found, source))
		complain("the next transfer does not bring the new file");
	free(found.data);
	free(source.data);
	snprintf(path, sizeof(path), "%s/dst", ends_directory);
	if (strangers(path, name))
		complain("%s outlasts the next transfer", name);
	if (temp_dir && strangers(temp_dir, name))
		complain("%s outlasts the next transfer in the temporary directory", name);
}

static unsigned int open_descriptors_now(void)
{
	unsigned int count = 0;
	DIR *listing = opendir("/proc/self/fd");

	while (listing && readdir(listing))
		count++;
	if (listing)
		closedir(listing);
	return count;
}

/* ---- Faults of the transport ------------------------------------------------------------------------------------- */

static void one_of_transport(struct play *play)
{
	unsigned int before = open_descriptors_now();

	snprintf(context, sizeof(context), "%s, %s, %s %u at the %s", scene_names[play->scene], trouble_names[play->trouble],
		 play->call == READ ? "read" : "write", play->nth, play->side == SENDER ? "sender" : "receiver");
	set_scene(play->scene);
	alarm(60);
	perform(play);
	alarm(0);
	judge_outcome(play);
	if (IS_HARMLESS(play->trouble))
		judge_untouched(play);
	judge_files(play, false, 0);
	if (open_descriptors_now() != before)
		complain("descriptors are left open");
}

static void transport_family(enum side side, enum call call)
{
	char name[100];
	unsigned int count = 0;

	for (int scene = 0; scene < LEFT; scene++)
		for (int trouble = NO_TROUBLE + 1; trouble < TROUBLES; trouble++)
			for (unsigned int nth = 1;; nth += full ? 1 : 1 + (nth > 12) * 8) {
				struct play play = { .scene = (enum scene)scene, .side = side, .call = call,
						     .trouble = (enum trouble)trouble, .nth = nth };
				one_of_transport(&play);
				if (!play.fired)
					break;
				count++;
			}
	snprintf(name, sizeof(name), "transport: every %s of the %s", call == READ ? "read" : "write",
		 side == SENDER ? "sender" : "receiver");
	injected += count;
	family(name, count);
}

/* ---- Faults of system calls -------------------------------------------------------------------------------------- */

struct shared {
	struct play play;
	struct injection injection;
	bool done;
	/* What a hook has made of the target. */
	size_t length;
	bool changed, vanished;
	char content[400000];
};
static struct shared *shared;
static enum side filtered;

static void prepare(enum side side)
{
	if (side == filtered)
		inject();
}

static void child(void)
{
	alarm(60);
	supervise(&shared->injection);
	perform(&shared->play);
	shared->done = true;
	_exit(0);
}

/* One play in a process of its own; false where it did not come to its end. */
static bool play_apart(const struct play *play, const struct injection *injection, enum side side)
{
	int status;

	shared->play = *play;
	shared->play.prepare = prepare;
	shared->injection = *injection;
	shared->done = shared->changed = shared->vanished = false;
	filtered = side;
	set_scene(play->scene);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		child();
	waitpid(pid, &status, 0);
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && injection->measure == KILL;
	if (!shared->done && !killed)
		complain(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "died, status %x", status);
	return shared->done;
}

struct setting {
	const char *name;
	enum calls calls;
	enum side side;
	enum carrier carrier;
	enum lack lack;
	bool fsync;
	const char *temp_dir;
	bool only_full;
};

static void describe(const struct setting *setting, enum scene scene, const struct injection *injection, int index)
{
	static const char *const measures[] = { "look", "error", "error from there on", "cut short", "killed", "hook" };

	snprintf(context, sizeof(context), "%s, %s, call %u (%s), %s %s", setting->name, scene_names[scene], injection->nth,
		 call_name(index), measures[injection->measure],
		 injection->measure == FAIL || injection->measure == FAIL_ON ? strerrorname_np(injection->error) : "");
}

static bool one_of_calls(const struct setting *setting, enum scene scene, struct injection *injection, int index)
{
	struct play play = { .scene = scene, .carrier = setting->carrier, .fsync = setting->fsync,
			     .temp_dir = setting->temp_dir };
	bool killed = injection->measure == KILL;

	describe(setting, scene, injection, index);
	bool done = play_apart(&play, injection, setting->side);
	if (!shared->injection.fired)
		return false;
	injected++;
	if (done) {
		judge_outcome(&shared->play);
		/* EINTR and short counts are no errors. */
		if (injection->measure == SHORTEN || (injection->measure == FAIL && injection->error == EINTR))
			judge_untouched(&shared->play);
		if (setting->calls == OF_FILES)
			judge_connection(&shared->play);
	}
	unsigned int left = killed || !strcmp(call_name(index), "unlinkat");
	/* Who cannot look at files any more removes nothing: one of each file. */
	if (injection->measure == FAIL_ON && !strcmp(call_name(index), "fstat"))
		left = 2;
	judge_files(&shared->play, killed, left);
	if (left || scene == LEFT)
		judge_next(scene, setting->temp_dir);
	return true;
}

static unsigned int all_of_call(const struct setting *setting, enum scene scene, unsigned int nth, int index)
{
	struct injection injection = { .calls = setting->calls, .lack = setting->lack, .nth = nth };
	unsigned int count = 0;

	for (const int *error = errors_of(index); *error; error++) {
		injection.error = *error;
		injection.measure = FAIL;
		/* In the selection, the errors of a call take turns. */
		if (!full && (unsigned int)(error - errors_of(index)) % 5 != nth % 5)
			continue;
		count += one_of_calls(setting, scene, &injection, index);
		injection.measure = FAIL_ON;
		if (*error != EINTR && *error != EAGAIN && (full || nth % 4 == 0))
			count += one_of_calls(setting, scene, &injection, index);
	}
	injection.measure = SHORTEN;
	if (can_be_short(index))
		count += one_of_calls(setting, scene, &injection, index);
	injection.measure = KILL;
	count += one_of_calls(setting, scene, &injection, index);
	return count;
}

static void calls_family(const struct setting *setting)
{
	char name[200];
	unsigned int count = 0;

	for (int scene = 0; scene < SCENES; scene++) {
		if (!full && scene == EMPTIED && setting->side == RECEIVER && (setting->lack || setting->temp_dir))
			continue;
		struct injection look = { .calls = setting->calls, .lack = setting->lack };
		struct play play = { .scene = (enum scene)scene, .carrier = setting->carrier, .fsync = setting->fsync,
				     .temp_dir = setting->temp_dir };

		snprintf(context, sizeof(context), "%s, %s, without a fault", setting->name, scene_names[scene]);
		if (play_apart(&play, &look, setting->side))
			judge_untouched(&shared->play);
		look = shared->injection;
		unsigned int calls = look.count < MOST_CALLS ? look.count : MOST_CALLS, last = calls;
		/* Descriptors: many calls are the same. */
		for (unsigned int nth = 1; nth <= last; nth += full || setting->calls == OF_FILES || nth < 8 ? 1 : last / 16 + 1)
			count += all_of_call(setting, (enum scene)scene, nth, look.seen[nth - 1]);
	}
	snprintf(name, sizeof(name), "system calls: %s", setting->name);
	family(name, count);
}

/* ---- Files that change meanwhile --------------------------------------------------------------------------------- */

static const char *changing;
static struct content third_content;

static void note(void)
{
	struct content found = content_of(ends_target);

	shared->changed = true;
	shared->vanished = !found.data;
	shared->length = found.length;
	if (found.data)
		memcpy(shared->content, found.data, found.length);
}

static void overwrite(int flags, struct content content)
{
	int file = open(changing, O_WRONLY | flags, 0600);

	if (file >= 0 && write(file, content.data, content.length) < 0)
		_exit(93);
	close(file);
}

static void vanish(void) { unlink(changing); note(); }
static void shrink(void) { if (truncate(changing, 50000)) {} note(); }
static void grow(void) { overwrite(O_APPEND, second_content); note(); }
static void change_in_place(void) { overwrite(0, third_content); note(); }

static void replace(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/aside", ends_directory);
	const char *target = changing;
	changing = path;
	overwrite(O_CREAT, third_content);
	changing = target;
	rename(path, target);
	note();
}

static const struct change {
	const char *name;
	void (*hook)(void);
} changes[] = { { "vanishes", vanish }, { "becomes shorter", shrink }, { "becomes longer", grow },
		{ "is overwritten", change_in_place }, { "is replaced", replace } };

/* After a change of the source: a mix only where the sender has said so; of the target: the change stands, or the new. */
static void judge_change(enum side side)
{
	struct content found = content_of(ends_target);
	bool known = same_content(found, old_content) || same_content(found, new_content) || same_content(found, third_content);
	const struct outcome *sender = &shared->play.outcome[SENDER];
	struct content noted = { shared->content, shared->length }, source = content_of(ends_source);

	if (side == SENDER) {
		if (!known && !same_content(found, source) && sender->status[1] != CSYNC_E_CHANGED && sender->status[1] != CSYNC_E_FILE)
			complain("a mix of versions, and the sender's status is %d", sender->status[1]);
	} else if (!same_content(found, new_content) && !same_content(found, noted) && !(shared->vanished && !found.data)) {
		complain("what the change has made is gone, and it is not the new file: %zu bytes", found.length);
	}
	free(found.data);
	free(source.data);
	judge_outcome(&shared->play);
	judge_connection(&shared->play);
	char path[250], name[256] = "";
	snprintf(path, sizeof(path), "%s/dst", ends_directory);
	if (strangers(path, name))
		complain("%s is left", name);
}

static void changes_family(enum side side)
{
	struct injection look = { .calls = OF_FILES }, injection = { .calls = OF_FILES, .measure = HOOK };
	struct play play = { .scene = EDITED };
	unsigned int count = 0;

	third_content = old_content;
	third_content.data = malloc(third_content.length);
	for (size_t i = 0; i < third_content.length; i++)
		third_content.data[i] = (char)(old_content.data[i] ^ 0x55);
	changing = side == SENDER ? ends_source : ends_target;
	snprintf(context, sizeof(context), "without a change");
	play_apart(&play, &look, side);
	unsigned int calls = shared->injection.count;
	for (size_t kind = 0; kind < sizeof(changes) / sizeof(changes[0]); kind++)
		for (injection.nth = 1; injection.nth <= calls; injection.nth++) {
			injection.hook = changes[kind].hook;
			snprintf(context, sizeof(context), "the %s %s ahead of call %u", side == SENDER ? "source" : "basis",
				 changes[kind].name, injection.nth);
			if (!play_apart(&play, &injection, side) || !shared->injection.fired)
				continue;
			count++;
			judge_change(side);
		}
	injected += count;
	free(third_content.data);
	family(side == SENDER ? "the source vanishes, shrinks, grows, changes, is replaced at every call"
			      : "the basis vanishes, shrinks, grows, changes, is replaced at every call", count);
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static void matrix(const char *directory, const char *elsewhere)
{
	const struct setting settings[] = {
		{ .name = "the receiver's files", .side = RECEIVER },
		{ .name = "the receiver's files, fsync", .side = RECEIVER, .fsync = true, .only_full = true },
		{ .name = "the receiver's files, no unnamed files, fsync", .side = RECEIVER, .lack = NO_TMPFILE, .fsync = true },
		{ .name = "the receiver's files, no way to name one, fsync", .side = RECEIVER, .lack = NO_LINK, .fsync = true },
		{ .name = "the receiver's files, staged elsewhere", .side = RECEIVER, .temp_dir = elsewhere },
		{ .name = "the receiver's files, staged elsewhere, no unnamed files, fsync", .side = RECEIVER,
		  .lack = NO_TMPFILE, .temp_dir = elsewhere, .fsync = true, .only_full = true },
		{ .name = "the sender's files", .side = SENDER },
		{ .name = "the sender's socket", .side = SENDER, .calls = OF_DESCRIPTORS, .carrier = SOCKETS },
		{ .name = "the receiver's socket", .side = RECEIVER, .calls = OF_DESCRIPTORS, .carrier = SOCKETS },
		{ .name = "the sender's pipes", .side = SENDER, .calls = OF_DESCRIPTORS, .carrier = PIPES },
		{ .name = "the receiver's pipes", .side = RECEIVER, .calls = OF_DESCRIPTORS, .carrier = PIPES },
	};

	ends_open(directory);
	printf("# in %s, staged elsewhere: %s\n", directory, elsewhere);
	const char *only = getenv("FAULT_ONLY");
	for (int side = 0; side < 2 && !only; side++)
		for (int call = 0; call < 2; call++)
			transport_family((enum side)side, (enum call)call);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if ((full || !settings[i].only_full) && (!only || strstr(settings[i].name, only)))
			calls_family(&settings[i]);
	if (!only) {
		changes_family(SENDER);
		changes_family(RECEIVER);
	}
	ends_close();
}

int main(int count, char **arguments)
{
	const char *wanted = getenv("FAULT_MATRIX");
	const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	const char *shm = access("/dev/shm", W_OK) ? tmp : "/dev/shm";
	char elsewhere[200];

	full = wanted && !strcmp(wanted, "full");
	signal(SIGPIPE, SIG_IGN);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(elsewhere, sizeof(elsewhere), "%s/fault-staging-XXXXXX", tmp);
	if (shared == MAP_FAILED || !mkdtemp(elsewhere))
		return 1;
	if (count < 2)
		matrix(shm, elsewhere);
	for (int i = 1; i < count; i++)
		matrix(arguments[i], elsewhere);
	if (rmdir(elsewhere))
		printf("# %s is not empty\n", elsewhere), failed_families++;
	printf("# %u faults injected%s\n", injected, full ? "" : " (a selection: FAULT_MATRIX=full for all)");
	printf("fault-matrix: %u passed, %u failed\n", passed_families, failed_families);
	return failed_families != 0;
}
