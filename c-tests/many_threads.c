/*
 * Large files are hashed by several threads: the bytes are the same, the program does not notice, and nothing of them is
 * left.
 */
#include "host.h"
#include "laws.h"
#include "peer.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARE = 8 << 20, LARGE = 2 * SHARE };

static const size_t numbers[] = { 0, 1, 2, 3, 64, 65, SIZE_MAX };
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static struct csync_options with_threads(size_t n)
{
	struct csync_options o = options_none();
	o.threads = n;
	return o;
}

static struct bytes signature_by(size_t threads)
{
	struct csync_options o = with_threads(threads);
	struct scene s = scene_of(UNIX_SOCKETS, &o, 1);

	assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
	return unframed(scene_end(&s));
}

static int differs_by(size_t threads, struct bytes signature)
{
	struct csync_options o = with_threads(threads);
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	struct call c = { .verb = CSYNC_CHECK, .path = "d/f" };
	struct calls ours = { .engine = s.engine, .calls = &c, .count = 1 };

	calls_start(&ours);
	feed(s.e.out[1], framed(bytes_part(signature, 0, signature.n)));
	calls_join(&ours);
	assert_ok(s.engine, c.status);
	scene_end(&s);
	return c.differs;
}

static void the_same_signature_for_any_number(void)
{
	static const size_t sizes[] = { LARGE - 1, LARGE, LARGE + 1, LARGE + 2049, LARGE + SHARE - 1, LARGE + SHARE,
		LARGE + SHARE + 1, 2 * LARGE, 2 * LARGE + 1 };
	struct bytes all = bytes_random(2 * LARGE + 1, 1);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = { all.p, sizes[i] }, expected = peer_signature(b);
		write_file("d/f", b);
		for (size_t n = 0; n < NUMBERS; n++) {
			struct bytes made = signature_by(numbers[n]);
			assert_bytes(made, expected);
			bytes_free(made);
			assert_int_equal(differs_by(numbers[n], expected), 0);
		}
		bytes_free(expected);
	}
}

/* Wherever one byte is another. */
static void a_check_finds_every_difference(void)
{
	static const size_t places[] = { 0, SHARE - 1, SHARE, LARGE - 1, LARGE, LARGE + SHARE + 5, 2 * LARGE };
	struct bytes all = bytes_random(2 * LARGE + 1, 1), expected = peer_signature(all);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		all.p[places[i]] ^= 1;
		write_file("d/f", all);
		all.p[places[i]] ^= 1;
		for (size_t n = 0; n < 4; n++)
			assert_int_equal(differs_by(numbers[n], expected), 1);
	}
}

/* A thread's entry goes a moment after it was joined. */
static void no_thread_is_left(void)
{
	for (double end = seconds_now() + 10; names_with("/proc/self/task", "") > 3;) /* this one, and the two dots */
		if (seconds_now() > end)
			fail_msg("%u threads are left", names_with("/proc/self/task", "") - 2);
}

/* What happens to calls that make a thread or a process. */
static void on_clone(unsigned action)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(f[0]), f };

	if (ct_valgrind())
		ct_skip("no seccomp under valgrind");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		ct_skip("no seccomp");
}

/* The signature is sent to a file, so that no thread of the case's own is needed. */
static int (*signature_progress)(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced);

static csync_status signature_into_a_file(size_t threads)
{
	struct csync_options o = with_threads(threads);
	csync_engine *engine = NULL;
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out = open("d/sig", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	o.progress = signature_progress;
	assert_int_equal(csync_engine_over_descriptors(in, out, &o, &engine), CSYNC_OK);
	csync_status status = csync_engine_signature(engine, "d/f");
	csync_engine_free(engine);
	close(in);
	close(out);
	return status;
}

static void *nothing(void *arg)
{
	return arg;
}

static void without_threads_one_does_it_all(void)
{
	struct bytes b = bytes_random(2 * LARGE + 7, 1), expected = peer_signature(b);
	pthread_t t;
	int status;

	write_file("d/f", b);
	/* in a process of its own: a leak check at the end wants a thread */
	pid_t pid = fork();
	if (pid == 0) {
		on_clone(SECCOMP_RET_ERRNO | EAGAIN);
		assert_int_equal(pthread_create(&t, NULL, nothing, NULL), EAGAIN);
		for (size_t n = 0; n < NUMBERS; n++) {
			assert_int_equal(signature_into_a_file(numbers[n]), CSYNC_OK);
			assert_bytes(unframed(read_file("d/sig")), expected);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CT_EXIT_SKIP)
		ct_skip("no seccomp");
	assert_int_equal(status, 0);
}

/* How a process ends in which a thread is deadly. */
static int status_where_threads_are_deadly(size_t threads, size_t size)
{
	int status;

	write_file("d/f", bytes_text("x"));
	assert_int_equal(truncate("d/f", size), 0);
	pid_t pid = fork();
	if (pid == 0) {
		on_clone(SECCOMP_RET_KILL_PROCESS);
		_exit(signature_into_a_file(threads));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CT_EXIT_SKIP)
		ct_skip("no seccomp");
	return status;
}

static void small_files_and_the_number_one_start_none(void)
{
	assert_int_equal(status_where_threads_are_deadly(1, 2 * LARGE), CSYNC_OK);
	assert_int_equal(status_where_threads_are_deadly(0, LARGE - 1), CSYNC_OK);
	assert_int_equal(status_where_threads_are_deadly(64, LARGE - 1), CSYNC_OK);
	/* and it would have been seen */
	int status = status_where_threads_are_deadly(2, LARGE);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static void none_is_left(void)
{
	write_file("d/f", bytes_random(2 * LARGE, 1));
	for (size_t n = 0; n < NUMBERS; n++) {
		assert_int_equal(signature_into_a_file(numbers[n]), CSYNC_OK);
		no_thread_is_left();
	}
}

static pid_t main_thread;
static volatile sig_atomic_t alarms, elsewhere;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
	elsewhere += syscall(SYS_gettid) != main_thread;
}

static int check_thread(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	assert_int_equal(syscall(SYS_gettid), main_thread);
	return 0;
}

/* The program's handlers run on the program's own thread, and so do its functions. */
static void signals_and_functions_stay_with_the_caller(void)
{
	struct sigaction a = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };

	main_thread = syscall(SYS_gettid);
	signature_progress = check_thread;
	write_file("d/f", bytes_text("x"));
	assert_int_equal(truncate("d/f", 16 * LARGE), 0);
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (double end = seconds_now() + 10; alarms < 50 && seconds_now() < end;)
		assert_int_equal(signature_into_a_file(4), CSYNC_OK);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(alarms >= 50);
	assert_int_equal(elsewhere, 0);
}

static void after_a_fork(void)
{
	int status;

	write_file("d/f", bytes_random(LARGE + 1, 1));
	struct bytes expected = peer_signature(bytes_random(LARGE + 1, 1));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(signature_into_a_file(3), CSYNC_OK);
		pid_t pid = fork();
		if (pid == 0) {
			assert_int_equal(signature_into_a_file(3), CSYNC_OK);
			assert_bytes(unframed(read_file("d/sig")), expected);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void the_functions_of_rsync_c(void)
{
	struct bytes b = bytes_random(LARGE + 12345, 1), expected = peer_signature(b);
	FILE *f = NULL;

	write_file("d/f", b);
	host_reset();
	csync_rs_sig("d/f");
	assert_bytes(take_frame(), expected);
	host_feed_text("octet-stream ");
	char length[32];
	snprintf(length, sizeof(length), "%zu\n", expected.n);
	host_feed_text(length);
	host_feed(expected.p, expected.n);
	assert_int_equal(csync_rs_check("d/f", 1), 0);
	assert_int_equal(csync_rs_sigfile("d/f", &f), 0);
	rewind(f);
	assert_bytes(rest_of(f), expected);
	fclose(f);
	no_thread_is_left();
}

static const struct ct_case cases[] = {
	OURS_F(the_same_signature_for_any_number, CT_LARGE),
	OURS_F(a_check_finds_every_difference, CT_LARGE),
	OURS_F(without_threads_one_does_it_all, CT_LARGE),
	OURS_F(small_files_and_the_number_one_start_none, CT_LARGE),
	OURS_F(none_is_left, CT_LARGE),
	OURS_F(signals_and_functions_stay_with_the_caller, CT_LARGE),
	OURS_F(after_a_fork, CT_LARGE),
	OURS(the_functions_of_rsync_c),
};
CT_MAIN("many_threads", cases)
