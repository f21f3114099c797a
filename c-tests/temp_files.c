/* Temporaries: none for signatures and deltas, none left, none in a place where nobody looks. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bytes none;

static void t3_a_truncated_delta_leaves_nothing(void)
{
	struct bytes old = bytes_random(5000, 1), b = bytes_random(100000, 2), d = peer_delta(peer_signature(old), b);
	write_file("d/f", old);
	char *before = listing("d");
	host_reset();
	feed_frame_of(bytes_part(d, 0, 50000));
	assert_int_equal(csync_rs_patch("d/f"), -1);
	char *after = listing("d"), *tmp = listing("t");
	assert_string_equal(after, before);
	assert_string_equal(tmp, "");
	assert_file("d/f", old);
	free(before);
	free(after);
	free(tmp);
	bytes_free(d);
	bytes_free(old);
	bytes_free(b);
}

static void t3_a_corrupt_delta_leaves_nothing(void)
{
	struct bytes old = bytes_random(5000, 1);
	write_file("d/f", old);
	char *before = listing("d");
	host_reset();
	feed_frame_of(delta_end(delta_raw(delta_literal(delta_begin(), "abc"), "\x60", 1)));
	assert_int_equal(csync_rs_patch("d/f"), -1);
	char *after = listing("d");
	assert_string_equal(after, before);
	assert_file("d/f", old);
	free(before);
	free(after);
	bytes_free(old);
}

static void t3_a_failing_rename_leaves_nothing(void)
{
	struct bytes b = bytes_random(5000, 1);
	mkdir("d/dir", 0755);
	write_file("d/dir/inside", b);
	char *before = listing("d"), *inside = listing("d/dir");
	host_reset();
	feed_frame_of(peer_delta(peer_no_signature(), b));
	assert_int_equal(csync_rs_patch("d/dir"), -1);
	char *after = listing("d"), *inside_after = listing("d/dir");
	assert_string_equal(after, before);
	assert_string_equal(inside_after, inside);
	free(before);
	free(after);
	free(inside);
	free(inside_after);
	bytes_free(b);
}

/* The host's callback ends the process in the middle of a transfer, as csync2's own error handling does. */
static void leave(void)
{
	exit(0);
}

static void t3_an_exit_in_the_middle_is_survived(void)
{
	struct bytes b = bytes_random(200000, 2), d = peer_delta(peer_no_signature(), b), old = bytes_text("old");
	write_file("d/f", old);
	pid_t pid = fork();
	if (pid == 0) {
		host_reset();
		feed_frame(d);
		host_on_read((struct host_step){ .from = 21, .what = HOST_CALL, .hook = leave });
		csync_rs_patch("d/f");
		_exit(3);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_file("d/f", old);
	bytes_free(b);
	bytes_free(d);
	bytes_free(old);
}

/* The file's name is the case's own, so that /tmp may be shared with others. */
static void t4_a_missing_directory_leaves_nothing_in_tmp(void)
{
	struct bytes b = bytes_random(5000, 1);
	char name[64], path[128];
	snprintf(name, sizeof(name), "ct-missing-%d", (int)getpid());
	snprintf(path, sizeof(path), "d/no/such/%s", name);
	host_reset();
	feed_frame_of(peer_delta(peer_no_signature(), b));
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch(path), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ENOENT);
	assert_rest("NEXT\n");
	unsigned left = names_with("t", name) + names_with("/tmp", name);
	if (left) { /* not to leave more of them at each run on the original */
		char command[200];
		snprintf(command, sizeof(command), "rm -f /tmp/.%s.*", name);
		if (system(command))
			left++;
	}
	assert_int_equal(left, 0);
	bytes_free(b);
}

static void t5_an_unusable_tempdir_is_no_obstacle(void)
{
	struct bytes b = bytes_random(50000, 1);
	mkdir("ro", 0555);
	write_file("d/src", b);
	become_nobody();
	host_reset();
	csync_tempdir = (char *)absolute("ro");
	/* a delta is sent */
	feed_frame_of(peer_no_signature());
	assert_int_equal(csync_rs_delta("d/src"), 0);
	struct bytes d = take_frame();
	/* and applied */
	feed_frame_of(d);
	host_feed_text("NEXT\n");
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_rest("NEXT\n");
	assert_file("d/f", b);
	bytes_free(b);
}

static void t5_a_missing_tempdir_is_no_obstacle(void)
{
	struct bytes b = bytes_random(50000, 1);
	host_reset();
	csync_tempdir = (char *)absolute("nowhere");
	feed_frame_of(peer_delta(peer_no_signature(), b));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_file("d/f", b);
	bytes_free(b);
}

static void t6_a_read_only_source_directory_is_enough(void)
{
	struct bytes b = bytes_random(50000, 1), result;
	write_file("d/f", b);
	become_nobody();
	if (chmod("d", 0555))
		ct_skip("no chmod");
	host_reset();
	feed_frame_of(peer_no_signature());
	assert_int_equal(csync_rs_delta("d/f"), 0);
	struct bytes d = take_frame();
	assert_int_equal(peer_patch(none, d, &result), 0);
	assert_bytes(result, b);
	bytes_free(d);
	bytes_free(result);
	bytes_free(b);
}

/* Everything that a sender does, as a watcher of the directory sees it. */
static void t6_a_watcher_sees_only_reading(void)
{
	struct bytes b = bytes_random(50000, 1);
	char events[4096];
	struct stat before, after;

	write_file("d/f", b);
	assert_int_equal(stat("d", &before), 0);
	int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(in >= 0 && inotify_add_watch(in, "d", IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVE | IN_ATTRIB | IN_CLOSE_WRITE) >= 0);
	host_reset();
	feed_frame_of(peer_signature(b));
	assert_int_equal(csync_rs_check("d/f", 1), 0);
	csync_rs_sig("d/f");
	host_forget_output();
	feed_frame_of(peer_no_signature());
	assert_int_equal(csync_rs_delta("d/f"), 0);
	FILE *f = NULL;
	assert_int_equal(csync_rs_sigfile("d/f", &f), 0);
	fclose(f);
	assert_int_equal(read(in, events, sizeof(events)), -1);
	assert_int_equal(stat("d", &after), 0);
	assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
	bytes_free(b);
}

/* A receiver makes the new file and renames it; nothing else. */
static void t6_a_receiver_makes_one_name(void)
{
	struct bytes b = bytes_random(50000, 1);
	char events[8192] __attribute__((aligned(8)));
	unsigned created = 0, other = 0;

	write_file("d/f", bytes_text("old"));
	int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(in >= 0 && inotify_add_watch(in, "d", IN_CREATE | IN_DELETE) >= 0);
	host_reset();
	csync_rs_sig("d/f");
	feed_frame_of(peer_delta(take_frame(), b));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	ssize_t n = read(in, events, sizeof(events));
	for (ssize_t at = 0; at < n;) {
		struct inotify_event *e = (struct inotify_event *)(events + at);
		if (e->mask & IN_CREATE)
			created++;
		else
			other++;
		at += sizeof(*e) + e->len;
	}
	assert_int_equal(created, 1);
	assert_int_equal(other, 0);
	bytes_free(b);
}

static void t7_no_descriptor_is_left(void)
{
	struct bytes b = bytes_random(50000, 1);
	write_file("d/f", b);
	mkdir("d/dir", 0755);
	host_reset();
	unsigned before = open_descriptors();
	for (int i = 0; i < 3; i++) {
		feed_frame_of(peer_delta(peer_no_signature(), b));
		assert_int_equal(csync_rs_patch("no/such"), -1);
		feed_frame_of(delta_begin());
		assert_int_equal(csync_rs_patch("d/f"), -1);
		feed_frame_of(peer_delta(peer_no_signature(), b));
		assert_int_equal(csync_rs_patch("d/dir"), -1);
		feed_frame_of(peer_delta(peer_no_signature(), b));
		assert_int_equal(csync_rs_patch("d/f"), 0);
		feed_frame_of(peer_signature(b));
		assert_int_equal(csync_rs_check("d/f", 1), 0);
		feed_frame_of(peer_no_signature());
		assert_int_equal(csync_rs_delta("d/f"), 0);
	}
	assert_int_equal(open_descriptors(), before);
	bytes_free(b);
}

static void t9_an_unusable_tempdir_is_named_once(void)
{
	struct bytes b = bytes_random(5000, 1);
	host_reset();
	csync_tempdir = (char *)absolute("nowhere");
	for (int i = 0; i < 3; i++) {
		feed_frame_of(peer_delta(peer_no_signature(), b));
		assert_int_equal(csync_rs_patch("d/f"), 0);
	}
	assert_int_equal(host_said(1, "nowhere", NULL), 1);
	bytes_free(b);
}

/* csync2 reads its configuration before the first transfer; another host may change its mind. */
static void t9_the_tempdir_is_looked_at_anew(void)
{
	struct bytes b = bytes_random(5000, 1);
	mkdir("one", 0777);
	host_reset();
	csync_tempdir = (char *)absolute("one");
	feed_frame_of(peer_delta(peer_no_signature(), b));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_equal(rmdir("one"), 0);
	csync_tempdir = NULL;
	feed_frame_of(peer_delta(peer_no_signature(), b));
	assert_int_equal(csync_rs_patch("d/g"), 0);
	assert_file("d/g", b);
	bytes_free(b);
}

static void patched_by_name(struct bytes name)
{
	struct bytes a = bytes_random(5000, 1), b = bytes_random(6000, 2), path = bytes_join(bytes_text("d/"), name);
	host_reset();
	feed_frame_of(peer_delta(peer_no_signature(), a));
	assert_int_equal(csync_rs_patch((char *)path.p), 0);
	assert_file((char *)path.p, a);
	csync_rs_sig((char *)path.p);
	feed_frame_of(peer_delta(take_frame(), b));
	assert_int_equal(csync_rs_patch((char *)path.p), 0);
	assert_file((char *)path.p, b);
	assert_int_equal(unlink((char *)path.p), 0);
	char *rest = listing("d");
	assert_string_equal(rest, "");
	free(rest);
	bytes_free(a);
	bytes_free(b);
	bytes_free(path);
}

static void t15_the_longest_names(void)
{
	struct bytes utf8 = bytes_of(NULL, 255);
	for (int i = 0; i < 255; i += 3)
		memcpy(utf8.p + i, "\xe2\x82\xac", 3);
	for (size_t n = 240; n <= 255; n++)
		patched_by_name(bytes_fill(n, 'n'));
	patched_by_name(bytes_join(bytes_text("."), bytes_fill(254, 'n')));
	patched_by_name(bytes_join(bytes_text(".."), bytes_fill(253, '.')));
	patched_by_name(bytes_part(utf8, 0, 255));
	patched_by_name(bytes_part(utf8, 0, 249));
	patched_by_name(bytes_join(bytes_text("a"), bytes_part(utf8, 0, 252)));
	patched_by_name(bytes_fill(255, 0xff));
	patched_by_name(bytes_text(".a"));
	patched_by_name(bytes_text("a"));
	bytes_free(utf8);
}

/* Two processes patch the same name: one of the two contents, and no trace of the other. */
static void t15_two_processes_do_not_meet(void)
{
	struct bytes content[2] = { bytes_random(300000, 1), bytes_random(300000, 2) }, got;
	pid_t pid[2];
	int status;

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 2; i++) {
			pid[i] = fork();
			if (pid[i] == 0) {
				host_reset();
				feed_frame_of(peer_delta(peer_no_signature(), content[i]));
				_exit(csync_rs_patch("d/f") ? 1 : 0);
			}
		}
		for (int i = 0; i < 2; i++) {
			assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
			assert_true(WIFEXITED(status));
		}
		got = read_file("d/f");
		assert_int_equal(got.n, 300000);
		assert_true(!memcmp(got.p, content[0].p, got.n) || !memcmp(got.p, content[1].p, got.n));
		assert_int_equal(names_with("d", "f"), 1);
		bytes_free(got);
	}
	bytes_free(content[0]);
	bytes_free(content[1]);
}

static const struct ct_case cases[] = {
	FAULT(t3_a_truncated_delta_leaves_nothing, WRONG),
	FAULT(t3_a_corrupt_delta_leaves_nothing, WRONG),
	FAULT(t3_a_failing_rename_leaves_nothing, WRONG),
	SAME(t3_an_exit_in_the_middle_is_survived),
	FAULT(t4_a_missing_directory_leaves_nothing_in_tmp, WRONG),
	FAULT(t5_an_unusable_tempdir_is_no_obstacle, WRONG),
	SAME(t5_a_missing_tempdir_is_no_obstacle),
	FAULT(t6_a_read_only_source_directory_is_enough, WRONG),
	FAULT(t6_a_watcher_sees_only_reading, WRONG),
	FAULT(t6_a_receiver_makes_one_name, WRONG),
	NOT_SHOWN(t7_no_descriptor_is_left, "its leak needs an fdopen that fails"),
	SAME(t9_an_unusable_tempdir_is_named_once),
	NOT_SHOWN(t9_the_tempdir_is_looked_at_anew, "the next directory is tried when the remembered one is missing"),
	SAME(t15_the_longest_names),
	SAME(t15_two_processes_do_not_meet),
};
CT_MAIN("temp_files", cases)
