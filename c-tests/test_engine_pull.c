/* csync_engine_pull, with csync_engine_push at the other end: both know what became of the file, and go on. */
#include "laws.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static csync_status both(const struct ends *e, csync_engine *engine[2], const char *from, const char *to, struct call *push,
			 struct call *pull)
{
	struct calls theirs = { .engine = engine[1], .calls = push, .count = 1 };

	(void)e;
	*push = (struct call){ .verb = CSYNC_PUSH, .path = from };
	*pull = (struct call){ .verb = CSYNC_PULL, .path = to };
	calls_start(&theirs);
	call_now(engine[0], pull);
	calls_join(&theirs);
	return pull->status;
}

static void new_changed_equal_and_empty(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct ends e = ends_make(kind, 0);
		csync_engine *engine[2] = { engine_on(&e, 0, NULL), engine_on(&e, 1, NULL) };
		struct bytes versions[] = { bytes_random(100001, 1), bytes_random(100001, 1), bytes_random(90000, 1),
			bytes_text(""), bytes_text("x"), bytes_random(1500000, 2), bytes_random(1500001, 2) };
		struct call push, pull;

		unlink("d/to");
		for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
			write_file("d/from", versions[i]);
			both(&e, engine, "d/from", "d/to", &push, &pull);
			assert_ok(engine[0], pull.status);
			assert_ok(engine[1], push.status);
			assert_file("d/to", versions[i]);
			assert_int_equal(names_with("d", "to"), 1);
		}
		for (int i = 0; i < 2; i++) {
			csync_engine_free(engine[i]);
			ends_close(&e, i);
		}
	}
}

static void both_learn_of_an_error(void)
{
	static const struct {
		const char *from, *to;
		csync_status push;
		int push_err;
		csync_status pull;
		int pull_err;
	} rows[] = {
		{ "d/none", "d/to", CSYNC_E_FILE, ENOENT, CSYNC_E_PEER, EIO },
		{ "d/link", "d/to", CSYNC_E_FILE, ELOOP, CSYNC_E_PEER, EIO },
		{ "d/from", "d/none/to", CSYNC_E_PEER, EIO, CSYNC_E_FILE, ENOENT },
		{ "d/from", "d", CSYNC_E_PEER, EIO, CSYNC_E_FILE, EISDIR },
		{ "d/from", "d/link", CSYNC_E_PEER, EIO, CSYNC_E_FILE, ELOOP },
		{ "d/none", "d/link", CSYNC_E_FILE, ENOENT, CSYNC_E_FILE, ELOOP },
	};
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	csync_engine *engine[2] = { engine_on(&e, 0, NULL), engine_on(&e, 1, NULL) };
	struct call push, pull;

	write_file("d/from", bytes_random(50000, 1));
	write_file("d/to", bytes_text("old"));
	assert_int_equal(symlink("from", "d/link"), 0);
	char *before = listing("d");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		both(&e, engine, rows[i].from, rows[i].to, &push, &pull);
		assert_failed(engine[1], push.status, rows[i].push, rows[i].push_err, rows[i].from);
		assert_failed(engine[0], pull.status, rows[i].pull, rows[i].pull_err, rows[i].to);
		char *after = listing("d");
		assert_string_equal(after, before);
		free(after);
		assert_file("d/to", bytes_text("old"));
		both(&e, engine, "d/from", "t/to", &push, &pull);
		assert_ok(engine[0], pull.status);
		assert_ok(engine[1], push.status);
	}
	free(before);
	for (int i = 0; i < 2; i++) {
		csync_engine_free(engine[i]);
		ends_close(&e, i);
	}
}

static void a_bad_delta_is_answered_with_an_error(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("old"));
	feed(s.e.out[1], framed(bytes_text("this is no delta")));
	assert_failed(s.engine, csync_engine_pull(s.engine, "d/f"), CSYNC_E_FORMAT, EBADMSG, "corrupt delta", "d/f");
	struct bytes sent = arrived(s.e.in[1]);
	assert_string_equal((char *)sent.p + sent.n - 6, "ERROR\n");
	assert_file("d/f", bytes_text("old"));
	assert_int_equal(names_with("d", "f"), 1);
	scene_end(&s);
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_PULL),
	OURS(new_changed_equal_and_empty),
	OURS(both_learn_of_an_error),
	OURS(a_bad_delta_is_answered_with_an_error),
};
CT_MAIN("test_engine_pull", cases)
