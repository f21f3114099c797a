/* csync_engine_signature: librsync's bytes; where there are none to be had, those of nothing, and the patch fails. */
#include "laws.h"
#include "peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_length(void)
{
	static const size_t lengths[] = { 0, 1, 2047, 2048, 2049, 4096, 100001 };
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct bytes b = bytes_random(lengths[i], i);
		write_file("d/f", b);
		assert_ok(s.engine, csync_engine_signature(s.engine, "d/f"));
		assert_bytes(unframed(arrived(s.e.in[1])), peer_signature(b));
	}
	scene_end(&s);
}

static void a_missing_file_is_nothing(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	assert_ok(s.engine, csync_engine_signature(s.engine, "d/none"));
	assert_bytes(unframed(arrived(s.e.in[1])), peer_no_signature());
	assert_ok(s.engine, csync_engine_signature(s.engine, "d/none/none"));
	assert_bytes(unframed(arrived(s.e.in[1])), peer_no_signature());
	scene_end(&s);
}

struct row {
	const char *path;
	int err;
};

/* The peer gets the signature of nothing; the patch that follows reads its delta, and fails. */
static void unreadable(csync_engine *engine, const struct ends *e, struct row row)
{
	struct bytes empty = { NULL, 0 };

	assert_failed(engine, csync_engine_signature(engine, row.path), CSYNC_E_FILE, row.err, strerror(row.err), " while ",
		      row.path);
	assert_bytes(unframed(arrived(e->in[1])), peer_signature(empty));
	feed(e->out[1], framed(peer_delta(peer_no_signature(), bytes_random(5000, 1))));
	assert_failed(engine, csync_engine_patch(engine, row.path), CSYNC_E_FILE, row.err, strerror(row.err), row.path);
	/* in step */
	assert_ok(engine, csync_engine_signature(engine, "d/f"));
	assert_bytes(unframed(arrived(e->in[1])), peer_signature(bytes_text("content")));
}

static void what_cannot_be_read(void)
{
	static char long_name[300], long_path[5000];
	const struct row rows[] = {
		{ "d/link", ELOOP },
		{ "d/dangling", ELOOP },
		{ "d", EISDIR },
		{ "d/", EISDIR },
		{ "d/fifo", EINVAL },
		{ "/dev/null", EINVAL },
		{ "d/f/below", ENOTDIR },
		{ long_name, ENAMETOOLONG },
		{ long_path, ENAMETOOLONG },
	};
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	memset(long_name, 'n', sizeof(long_name) - 1);
	for (size_t i = 0; i + 2 < sizeof(long_path); i += 2)
		memcpy(long_path + i, "d/", 2);
	write_file("d/f", bytes_text("content"));
	assert_int_equal(symlink("f", "d/link") | symlink("none", "d/dangling") | mkfifo("d/fifo", 0600), 0);
	char *before = listing("d");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		unreadable(s.engine, &s.e, rows[i]);
	char *after = listing("d");
	assert_string_equal(after, before);
	free(before);
	free(after);
	scene_end(&s);
}

static void what_may_not_be_read(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("content"));
	write_file("d/secret", bytes_text("secret"));
	assert_int_equal(chmod("d/secret", 0), 0);
	become_nobody();
	unreadable(s.engine, &s.e, (struct row){ "d/secret", EACCES });
	scene_end(&s);
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_SIGNATURE),
	OURS(every_length),
	OURS(a_missing_file_is_nothing),
	OURS(what_cannot_be_read),
	OURS(what_may_not_be_read),
};
CT_MAIN("test_engine_signature", cases)
