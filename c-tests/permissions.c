/* Whose the new file is, what it may, and what is carried over from the old one. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"
#include "sysfault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct bytes old_content, new_content;

static void prepare(void)
{
	host_reset();
	old_content = bytes_random(50000, 1);
	new_content = bytes_join(bytes_text("new"), bytes_part(old_content, 0, 50000));
}

static void patch(const char *name)
{
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	host_feed_text("NEXT\n");
	assert_int_equal(csync_rs_patch(name), 0);
	assert_rest("NEXT\n");
	assert_file(name, new_content);
}

static struct stat status_of(const char *name)
{
	struct stat st;
	assert_int_equal(lstat(name, &st), 0);
	return st;
}

static void w3_a_basis_that_cannot_be_read_is_not_replaced(void)
{
	struct stat st;
	prepare();
	write_file("d/f", old_content);
	chmod("d/f", 0);
	if (getuid() == 0 && chown("d/f", 65534, 65534))
		ct_skip("no chown");
	become_nobody();
	st = status_of("d/f");
	feed_frame_of(peer_delta(peer_no_signature(), new_content));
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, EACCES);
	assert_rest("NEXT\n");
	assert_int_equal(status_of("d/f").st_ino, st.st_ino);
}

static void w6_a_symlink_is_not_followed(void)
{
	struct bytes secret = bytes_text("elsewhere");
	prepare();
	write_file("elsewhere", secret);
	chmod("elsewhere", 0777);
	assert_int_equal(symlink("../elsewhere", "d/f"), 0);
	struct stat before = status_of("elsewhere");
	char *names = listing("d");
	feed_frame_of(peer_delta(peer_no_signature(), new_content));
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_patch("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_equal(e, ELOOP);
	assert_rest("NEXT\n");
	struct stat after = status_of("elsewhere");
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_file("elsewhere", secret);
	char *names_after = listing("d");
	assert_string_equal(names_after, names);
	free(names);
	free(names_after);
	bytes_free(secret);
}

static void w7_a_new_file_is_the_owners_alone(void)
{
	struct stat st;
	prepare();
	umask(0);
	bytes_free(old_content);
	old_content = bytes_of(NULL, 0);
	patch("d/new");
	st = status_of("d/new");
	assert_int_equal(st.st_mode, S_IFREG | 0600);
}

static void w7_a_replaced_file_keeps_its_mode(void)
{
	static const mode_t modes[] = { 0600, 0640, 0644, 0444, 0755, 0700, 04755, 02755, 01644, 0666 };
	prepare();
	umask(077);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		write_file("d/f", old_content);
		assert_int_equal(chmod("d/f", modes[i]), 0);
		patch("d/f");
		assert_int_equal(status_of("d/f").st_mode, S_IFREG | modes[i]);
		unlink("d/f");
	}
}

static void owned_by_33(mode_t mode)
{
	write_file("d/f", old_content);
	if (chown("d/f", 33, 33))
		ct_skip("not root");
	assert_int_equal(chmod("d/f", mode), 0);
}

static void w7_a_replaced_file_keeps_its_owner(void)
{
	prepare();
	owned_by_33(0640);
	patch("d/f");
	struct stat st = status_of("d/f");
	assert_int_equal(st.st_uid, 33);
	assert_int_equal(st.st_gid, 33);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	unlink("d/f");
	owned_by_33(06755);
	patch("d/f");
	assert_int_equal(status_of("d/f").st_mode, S_IFREG | 06755);
}

static void w7_owner_and_group_can_be_left_alone(void)
{
	prepare();
	owned_by_33(0640);
	host_reset();
	csync_ignore_uid = 1;
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_equal(status_of("d/f").st_uid, 0);
	assert_int_equal(status_of("d/f").st_gid, 33);
	unlink("d/f");
	owned_by_33(0640);
	host_reset();
	csync_ignore_gid = 1;
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_equal(status_of("d/f").st_uid, 33);
	assert_int_equal(status_of("d/f").st_gid, 0);
}

/* At the moment of the rename the new file is complete and has its rights: nobody sees it otherwise. */
static int seen_bad;

static void look(void)
{
	/* called before the rename: the old file still stands */
	struct stat st;
	if (lstat(absolute("d/f"), &st) || st.st_uid != 33 || (st.st_mode & 07777) != 0640)
		seen_bad = 1;
}

static void w7_rights_are_set_before_the_rename(void)
{
	prepare();
	owned_by_33(0640);
	host_reset();
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	sys_hook(SYS_RENAMES, NULL, 1, look);
	sys_start();
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_not_equal(sys_seen(SYS_RENAMES, NULL, 1), 0);
	assert_int_equal(seen_bad, 0);
	struct stat st = status_of("d/f");
	assert_int_equal(st.st_uid, 33);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void w7_without_rights_to_chown_it_is_patched_all_the_same(void)
{
	prepare();
	owned_by_33(0644);
	become_nobody();
	patch("d/f");
	assert_int_equal(status_of("d/f").st_uid, 65534);
}

static void w8_extended_attributes_stay(void)
{
	char value[64] = "";
	prepare();
	write_file("d/f", old_content);
	if (setxattr("d/f", "user.csync", "kept", 4, 0) || setxattr("d/f", "user.empty", "", 0, 0))
		ct_skip("no extended attributes on this file system");
	patch("d/f");
	assert_int_equal(getxattr("d/f", "user.csync", value, sizeof(value)), 4);
	assert_string_equal(value, "kept");
	assert_int_equal(getxattr("d/f", "user.empty", value, sizeof(value)), 0);
}

static void w8_an_acl_stays(void)
{
	/* user::rw- user:33:r-- group::r-- mask::r-- other::---, as the kernel stores it */
	static const unsigned char acl[] = {
		2, 0, 0, 0,
		1, 0, 6, 0, 255, 255, 255, 255,
		2, 0, 4, 0, 33, 0, 0, 0,
		4, 0, 4, 0, 255, 255, 255, 255,
		16, 0, 4, 0, 255, 255, 255, 255,
		32, 0, 0, 0, 255, 255, 255, 255,
	};
	unsigned char got[128];
	prepare();
	write_file("d/f", old_content);
	if (setxattr("d/f", "system.posix_acl_access", acl, sizeof(acl), 0))
		ct_skip("no access lists on this file system");
	patch("d/f");
	assert_int_equal(getxattr("d/f", "system.posix_acl_access", got, sizeof(got)), sizeof(acl));
	assert_memory_equal(got, acl, sizeof(acl));
	assert_int_equal(status_of("d/f").st_mode & 07777, 0640);
}

/*
 * A default list of the directory is not what the old file had: with it, the old file's group bits would become the
 * mask, and user 33 could read what was not for him.
 */
static void w8_a_file_without_an_acl_gets_none(void)
{
	static const unsigned char acl[] = {
		2, 0, 0, 0,
		1, 0, 7, 0, 255, 255, 255, 255,
		2, 0, 7, 0, 33, 0, 0, 0,
		4, 0, 5, 0, 255, 255, 255, 255,
		16, 0, 7, 0, 255, 255, 255, 255,
		32, 0, 5, 0, 255, 255, 255, 255,
	};
	unsigned char got[128];
	prepare();
	write_file("d/f", old_content);
	chmod("d/f", 0640);
	if (setxattr("d", "system.posix_acl_default", acl, sizeof(acl), 0))
		ct_skip("no access lists on this file system");
	patch("d/f");
	assert_int_equal(getxattr("d/f", "system.posix_acl_access", got, sizeof(got)), -1);
	assert_int_equal(status_of("d/f").st_mode & 07777, 0640);
}

/* W9: temporaries on another file system. */
static void patch_with_tempdir(const char *name)
{
	host_reset();
	csync_tempdir = (char *)other_file_system();
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	host_feed_text("NEXT\n");
	int r = csync_rs_patch(name);
	unsigned left = names_with(csync_tempdir, "f");
	ct_remove_tree(csync_tempdir);
	assert_int_equal(r, 0);
	assert_rest("NEXT\n");
	assert_int_equal(left, 0);
	assert_file(name, new_content);
}

static void w9_an_open_reader_keeps_the_old_content(void)
{
	prepare();
	write_file("d/f", old_content);
	struct stat before = status_of("d/f");
	FILE *reader = fopen("d/f", "r");
	patch_with_tempdir("d/f");
	struct bytes got = rest_of(reader);
	assert_bytes(got, old_content);
	assert_int_not_equal(status_of("d/f").st_ino, before.st_ino);
	assert_int_equal(names_with("d", "f"), 1);
	fclose(reader);
	bytes_free(got);
}

static void w9_a_new_file_is_the_owners_alone(void)
{
	prepare();
	umask(0);
	bytes_free(old_content);
	old_content = bytes_of(NULL, 0);
	patch_with_tempdir("d/f");
	assert_int_equal(status_of("d/f").st_mode, S_IFREG | 0600);
}

static void w9_a_replaced_file_keeps_its_rights(void)
{
	prepare();
	owned_by_33(04750);
	patch_with_tempdir("d/f");
	assert_int_equal(status_of("d/f").st_mode, S_IFREG | 04750);
	assert_int_equal(status_of("d/f").st_uid, 33);
}

/* A program that runs cannot be written to, but it can be replaced. */
static void w9_a_running_program_is_replaced(void)
{
	int ready[2], hold[2];
	char c;

	prepare();
	struct bytes program = read_file("/bin/cat");
	write_file("d/f", program);
	chmod("d/f", 0755);
	bytes_free(program);
	assert_int_equal(pipe(ready) | pipe(hold), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(hold[0], 0);
		dup2(ready[1], 1);
		close(hold[1]);
		execl("d/f", "d/f", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(write(hold[1], "x", 1), 1);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1); /* it runs */
	bytes_free(old_content);
	old_content = bytes_of(NULL, 0);
	patch_with_tempdir("d/f");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* W10: the data is on the disk before the name is. */
static void w10_synced_before_the_rename_when_asked(void)
{
	prepare();
	write_file("d/f", old_content);
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	int before = csync_rs_fsync(1);
	assert_int_equal(before, 0);
	sys_start();
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_not_equal(sys_seen(SYS_RENAMES, NULL, 1), 0);
	assert_int_not_equal(sys_seen(SYS_SYNCS, NULL, 1), 0);
	assert_true(sys_seen(SYS_SYNCS, NULL, 1) < sys_seen(SYS_RENAMES, NULL, 1));
	assert_int_equal(csync_rs_fsync(0), 1);
	assert_int_equal(csync_rs_fsync(0), 0);
}

static void w10_not_synced_unless_asked(void)
{
	prepare();
	write_file("d/f", old_content);
	feed_frame_of(peer_delta(peer_signature(old_content), new_content));
	sys_start();
	assert_int_equal(csync_rs_patch("d/f"), 0);
	assert_int_equal(sys_seen(SYS_SYNCS, NULL, 1), 0);
}

static const struct ct_case cases[] = {
	FAULT(w3_a_basis_that_cannot_be_read_is_not_replaced, WRONG),
	FAULT(w6_a_symlink_is_not_followed, WRONG),
	/* W7 is the protocol's: owner and mode follow in later commands. What can be held is held by both. */
	SAME(w7_a_new_file_is_the_owners_alone),
	SAME(w7_a_replaced_file_keeps_its_mode),
	SAME(w7_a_replaced_file_keeps_its_owner),
	SAME(w7_owner_and_group_can_be_left_alone),
	SAME(w7_rights_are_set_before_the_rename),
	SAME(w7_without_rights_to_chown_it_is_patched_all_the_same),
	FAULT(w8_extended_attributes_stay, WRONG),
	FAULT(w8_an_acl_stays, WRONG),
	FAULT(w8_a_file_without_an_acl_gets_none, WRONG),
	FAULT(w9_an_open_reader_keeps_the_old_content, WRONG),
	FAULT(w9_a_new_file_is_the_owners_alone, WRONG),
	SAME(w9_a_replaced_file_keeps_its_rights),
	FAULT(w9_a_running_program_is_replaced, WRONG),
	FAULT(w10_synced_before_the_rename_when_asked, WRONG),
	SAME(w10_not_synced_unless_asked),
};
CT_MAIN("permissions", cases)
