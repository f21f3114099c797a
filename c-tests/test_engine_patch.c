/* csync_engine_patch: the old file or the new one, and all of the delta read. */
#include "laws.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct bytes old_content(void) { return bytes_random(30001, 1); }
static struct bytes new_content(void) { return bytes_join(bytes_text("new"), bytes_part(old_content(), 100, 25000)); }
static struct bytes a_delta(void) { return framed(peer_delta(peer_signature(old_content()), new_content())); }

static void after_its_signature(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct stat st;

	write_file("d/f", old_content());
	assert_int_equal(chmod("d/f", 0751), 0);
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
	assert_bytes(unframed(arrived(s.e.in[1])), peer_signature(old_content()));
	feed(s.e.out[1], a_delta());
	assert_ok(s.engine, csync_engine_patch(s.engine, "d/f"));
	assert_file("d/f", new_content());
	assert_int_equal(stat("d/f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(names_with("d", "f"), 1);
	/* a new one */
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/new"));
	feed(s.e.out[1], framed(peer_delta(peer_no_signature(), old_content())));
	assert_ok(s.engine, csync_engine_patch(s.engine, "d/new"));
	assert_file("d/new", old_content());
	assert_int_equal(stat("d/new", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	scene_end(&s);
}

/* The old file stays, nothing new is left, both are in step. */
static void fails(struct scene *s, const char *path, struct bytes sent, csync_status status, int err, const char *text)
{
	char *before = listing("d");

	feed(s->e.out[1], sent);
	assert_failed(s->engine, csync_engine_patch(s->engine, path), status, err, text, path);
	char *after = listing("d");
	assert_string_equal(after, before);
	free(before);
	free(after);
	assert_file("d/f", old_content());
	feed(s->e.out[1], framed(peer_delta(peer_no_signature(), bytes_text("next"))));
	assert_ok(s->engine, csync_engine_patch(s->engine, "t/next"));
	assert_file("t/next", bytes_text("next"));
	assert_int_equal(unlink("t/next"), 0);
}

static void what_the_peer_should_not_send(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct bytes good = peer_delta(peer_signature(old_content()), new_content());

	write_file("d/f", old_content());
	fails(&s, "d/f", bytes_text("ERROR\n"), CSYNC_E_PEER, EIO, "peer reports an error");
	fails(&s, "d/f", bytes_text("Permission denied\n"), CSYNC_E_FORMAT, EIO, "Permission denied");
	fails(&s, "d/f", framed(bytes_text("")), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	fails(&s, "d/f", framed(bytes_text("this is no delta")), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	fails(&s, "d/f", framed(bytes_part(good, 0, good.n - 1)), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	fails(&s, "d/f", framed(bytes_join(bytes_part(good, 0, good.n), bytes_text("x"))), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	fails(&s, "d/f", framed(delta_end(delta_copy(delta_begin(), 30000, 2))), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	fails(&s, "d/new", framed(delta_end(delta_copy(delta_begin(), 0, 1))), CSYNC_E_FORMAT, EBADMSG, "corrupt delta");
	scene_end(&s);
}

static void what_cannot_be_replaced(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", old_content());
	assert_int_equal(symlink("f", "d/link") | mkfifo("d/fifo", 0600) | mkdir("d/sub", 0700), 0);
	fails(&s, "d/none/f", a_delta(), CSYNC_E_FILE, ENOENT, strerror(ENOENT));
	fails(&s, "d/link", a_delta(), CSYNC_E_FILE, ELOOP, strerror(ELOOP));
	fails(&s, "d/sub", a_delta(), CSYNC_E_FILE, EISDIR, strerror(EISDIR));
	fails(&s, "d/fifo", a_delta(), CSYNC_E_FILE, EINVAL, strerror(EINVAL));
	fails(&s, "", framed(peer_delta(peer_no_signature(), bytes_text("x"))), CSYNC_E_FILE, ENOENT, strerror(ENOENT));
	scene_end(&s);
}

static void what_may_not_be_replaced(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", old_content());
	assert_int_equal(mkdir("d/locked", 0700), 0);
	assert_int_equal(chmod("d/locked", 0555), 0);
	become_nobody();
	fails(&s, "d/locked/f", framed(peer_delta(peer_no_signature(), bytes_text("x"))), CSYNC_E_FILE, EACCES, strerror(EACCES));
	scene_end(&s);
}

static void no_room(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	struct bytes delta = a_delta(), next = framed(peer_delta(peer_no_signature(), bytes_text("next")));

	write_file("d/f", old_content());
	feed(s.e.out[1], delta);
	limit_file_size(9000);
	assert_failed(s.engine, csync_engine_patch(s.engine, "d/f"), CSYNC_E_FILE, EFBIG, strerror(EFBIG), "d/f");
	assert_file("d/f", old_content());
	assert_int_equal(names_with("d", "f"), 1);
	feed(s.e.out[1], next);
	assert_ok(s.engine, csync_engine_patch(s.engine, "d/next"));
	scene_end(&s);
}

static void a_file_that_changed_since_its_signature(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_random(30001, 9));
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
	write_file("d/f", old_content());
	fails(&s, "d/f", a_delta(), CSYNC_E_CHANGED, EAGAIN, "changed");
	/* appeared */
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/g"));
	write_file("d/g", bytes_text("appeared"));
	fails(&s, "d/g", framed(peer_delta(peer_no_signature(), bytes_text("x"))), CSYNC_E_CHANGED, EAGAIN, "changed");
	/* vanished */
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/g"));
	assert_int_equal(unlink("d/g"), 0);
	fails(&s, "d/g", framed(peer_delta(peer_signature(bytes_text("appeared")), bytes_text("x"))), CSYNC_E_CHANGED, EAGAIN,
	      "changed");
	scene_end(&s);
}

static void options_are_copied_and_used(void)
{
	struct csync_options o = options_none();
	char staging[] = "t/staging";
	struct stat st;

	assert_int_equal(mkdir(staging, 0700), 0);
	o.temp_dir = staging;
	o.fsync = 1;
	o.ignore_owner = 1;
	o.literal_budget = 1;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	memset(staging, 'x', sizeof(staging) - 1);
	memset(&o, 0xff, sizeof(o));

	write_file("d/f", old_content());
	int given = chown("d/f", 12345, 12345) == 0;
	feed(s.e.out[1], a_delta());
	assert_ok(s.engine, csync_engine_patch(s.engine, "d/f"));
	assert_file("d/f", new_content());
	assert_int_equal(stat("d/f", &st), 0);
	if (given)
		assert_true(st.st_uid == geteuid());
	assert_int_equal(names_with("t/staging", "f"), 0);
	scene_end(&s);
}

static char said[4096];

static void remember(void *userdata, int level, const char *message)
{
	(void)userdata;
	if (level == 1)
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", message);
}

/* It is no reason not to receive the file, and no secret. */
static void a_staging_directory_that_cannot_be_used(void)
{
	struct csync_options o = options_none();

	o.temp_dir = "d/nowhere";
	o.log = remember;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	feed(s.e.out[1], framed(peer_delta(peer_no_signature(), bytes_text("x"))));
	assert_ok(s.engine, csync_engine_patch(s.engine, "d/f"));
	assert_file("d/f", bytes_text("x"));
	assert_non_null(strstr(said, "d/f: staged beside it, not in d/nowhere: No such file or directory"));
	scene_end(&s);
}

static unsigned reports;

static int no_at_the_second(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	return ++reports == 2;
}

/* The whole of a large file is copied, and the connection has no part in it. */
static void cancelled_while_it_is_copied(void)
{
	const unsigned long long size = 1ull << 40;

	for (int i = 0; i < 4; i++) {
		struct csync_options o = options_none();
		pthread_t t;

		/* valgrind lets no other thread run during copy_file_range */
		if (i == 0 && ct_valgrind())
			continue;
		if (i % 2)
			o.progress = no_at_the_second;
		reports = 0;
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		write_file("d/f", bytes_text("x"));
		assert_int_equal(truncate("d/f", size), 0);
		/* by whole pages, and moved by three bytes */
		struct bytes d = i / 2 ? delta_literal(delta_begin(), "new") : delta_begin();
		feed(s.e.out[1], framed(delta_end(delta_copy(d, 0, size))));
		if (!(i % 2))
			thread_start(&t, cancel_soon, s.engine);
		assert_failed(s.engine, csync_engine_patch(s.engine, "d/f"), CSYNC_E_CANCELLED, ECANCELED,
			      "patch cancelled while writing the new file: d/f");
		if (!(i % 2))
			pthread_join(t, NULL);
		struct stat st;
		assert_int_equal(stat("d/f", &st), 0);
		assert_true((unsigned long long)st.st_size == size);
		assert_int_equal(names_with("d", "f"), 1);
		scene_end(&s);
	}
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_PATCH),
	OURS(after_its_signature),
	OURS(what_the_peer_should_not_send),
	OURS(what_cannot_be_replaced),
	OURS(what_may_not_be_replaced),
	OURS(no_room),
	OURS(a_file_that_changed_since_its_signature),
	OURS(options_are_copied_and_used),
	OURS(a_staging_directory_that_cannot_be_used),
	OURS(cancelled_while_it_is_copied),
};
CT_MAIN("test_engine_patch", cases)
