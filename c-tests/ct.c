#include "ct.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const void *ct_arg;

static struct {
	unsigned passed, failed, skipped, same, shown, not_shown;
} tally;

int ct_valgrind(void)
{
	return getenv("CT_VALGRIND") != NULL;
}

void ct_skip(const char *why)
{
	printf("skipped: %s\n", why);
	fflush(stdout);
	_exit(CT_EXIT_SKIP);
}

/* What became of a case's child. */
enum verdict { V_OK = 0, V_SKIPPED = 16, V_CHECKER = 32 }; /* or WRONG, FATAL, CRASH, HANG */

void ct_remove_tree(const char *path)
{
	/* Deeper than descriptors and longer than PATH_MAX, some of them: rm knows how. */
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void in_child(const struct ct_case *c, const char *sandbox, int out, int seconds)
{
	struct rlimit none = { 0, 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	setrlimit(RLIMIT_CORE, &none);
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP)
			signal(s, SIG_DFL);
	dup2(out, 1);
	dup2(out, 2);
	if (out > 2)
		close(out);
	setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion prints its message and aborts */
	umask(022);
	if (chdir(sandbox) || mkdir("d", 0755) || mkdir("t", 01777) || chmod("t", 01777)) {
		perror(sandbox);
		exit(1);
	}
	char tmp[600];
	snprintf(tmp, sizeof(tmp), "%s/t", sandbox);
	setenv("TMPDIR", tmp, 1);
	setenv("CT_SANDBOX", sandbox, 1);
	alarm(seconds + 5); /* in case the parent is gone */
	ct_arg = c->arg;
	c->body();
	fflush(stdout);
	exit(0);
}

static long long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Runs the case; what it printed is left in text. */
static int run_child(const struct ct_case *c, char *text, size_t size)
{
	const char *base = getenv("CT_TMP") ? getenv("CT_TMP") : "/tmp";
	char sandbox[512];
	int p[2], status = 0, hang = 0;
	size_t got = 0;

	snprintf(sandbox, sizeof(sandbox), "%s/ct-XXXXXX", base);
	if (!mkdtemp(sandbox) || chmod(sandbox, 0755) || pipe2(p, O_CLOEXEC)) {
		snprintf(text, size, "no sandbox: %s", strerror(errno));
		return WRONG;
	}

	int seconds = c->seconds ? c->seconds : 20;
#ifdef CT_ORIGINAL
	if (c->shows & HANG)
		seconds = 2;
#endif
	if (ct_valgrind())
		seconds *= 4;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[0]);
		in_child(c, sandbox, p[1], seconds);
	}
	close(p[1]);
	setpgid(pid, pid);

	long long end = now_ms() + seconds * 1000LL;
	for (;;) {
		struct pollfd f = { .fd = p[0], .events = POLLIN };
		long long left = end - now_ms();
		char dump[512];
		ssize_t n;

		if (left <= 0 || poll(&f, 1, (int)left) == 0) {
			hang = 1;
			break;
		}
		n = got < size - 1 ? read(p[0], text + got, size - 1 - got) : read(p[0], dump, sizeof(dump));
		if (n <= 0)
			break;
		if (got < size - 1)
			got += n;
	}
	text[got] = 0;
	close(p[0]);
	/* The child has closed its output, or is late: a moment for it to be gone by itself. */
	for (int i = 0; !hang && i < 5000; i++) {
		siginfo_t info = { 0 };
		if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
			break;
		poll(NULL, 0, 1);
		hang = i == 4999;
	}
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ct_remove_tree(sandbox);

	if (hang)
		return HANG;
	if (strstr(text, "[   LINE   ]") || strstr(text, ": error: Failure!"))
		return WRONG;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? HANG : CRASH;
	switch (WEXITSTATUS(status)) {
	case 0:
		return V_OK;
	case CT_EXIT_FATAL:
		return FATAL;
	case CT_EXIT_SKIP:
		return V_SKIPPED;
	case 99: /* valgrind's, and the sanitizers' by ASAN_OPTIONS and UBSAN_OPTIONS */
		return V_CHECKER;
	default:
		return WRONG;
	}
}

static const char *verdict_name(int v)
{
	switch (v) {
	case V_OK: return "passed";
	case V_SKIPPED: return "skipped";
	case V_CHECKER: return "the memory checker complained";
	case WRONG: return "wrong result";
	case FATAL: return "csync_fatal";
	case CRASH: return "crash";
	case HANG: return "hang";
	}
	return "?";
}

#ifndef CT_ORIGINAL
/* What a case counted; the original's cases count nothing. */
static void show_counts(const char *text)
{
	for (const char *line = text, *end; line && *line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (!strncmp(line, "count: ", 7))
			printf("%.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
	}
}
#endif

/* One cmocka test: a child and the judgement of its end. */
static void judge(void **state)
{
	const struct ct_case *c = *state;
	static char text[16384];
	int v;

	if (ct_valgrind() && (c->flags & (CT_LARGE | CT_NO_CHECKER))) {
		tally.skipped++;
		skip();
	}
#ifdef CT_ORIGINAL
	if (c->original == CT_CANNOT) {
		tally.not_shown++;
		printf("             not run on the original: %s\n", c->why);
		return;
	}
#endif
	v = run_child(c, text, sizeof(text));
	if (v == V_SKIPPED) {
		tally.skipped++;
		printf("             %s", text);
		skip();
	}
#ifdef CT_ORIGINAL
	if (v == V_OK && (c->flags & CT_SOME_VERSIONS)) {
		tally.passed++;
		tally.not_shown++;
		printf("             not shown on the original: not with this librsync\n");
		return;
	}
	int holds = c->original == CT_FAULT ? (v & c->shows) != 0 : v == V_OK;
	if (holds) {
		tally.passed++;
		if (c->original == CT_FAULT) {
			tally.shown++;
			printf("             the original: %s\n", verdict_name(v));
			if (getenv("CT_VERBOSE"))
				printf("%s%s", text, text[0] ? "\n" : "");
		} else if (c->original == CT_NOT_SHOWN) {
			tally.not_shown++;
			printf("             not shown on the original: %s\n", c->why);
		} else
			tally.same++;
		return;
	}
#else
	if (v == V_OK) {
		tally.passed++;
		show_counts(text);
		return;
	}
#endif
	tally.failed++;
	fail_msg("%s: %s%s%s", c->name, verdict_name(v), text[0] ? "\n" : "", text);
}

int ct_run(const char *program, const struct ct_case *cases, size_t count)
{
	struct CMUnitTest *tests = calloc(count ? count : 1, sizeof(*tests));
	const char *only = getenv("CT_ONLY"), *results = getenv("CT_RESULTS");
	size_t n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (only && !strstr(cases[i].name, only))
			continue;
		tests[n].name = cases[i].name;
		tests[n].test_func = judge;
		tests[n].initial_state = (void *)&cases[i];
		n++;
	}
	int rc = n ? _cmocka_run_group_tests(program, tests, n, NULL, NULL) : 0;

	if (results) {
		FILE *f = fopen(results, "a");
		if (f) {
			fprintf(f, "%s %u %u %u %u %u %u", program, tally.passed, tally.failed, tally.skipped, tally.same,
				tally.shown, tally.not_shown);
			for (size_t i = 0; i < n; i++)
				fprintf(f, " %s", tests[i].name);
			fprintf(f, "\n");
			fclose(f);
		}
	}
	free(tests);
	return rc ? 1 : 0;
}
