/* csync_engine_check: equal, or different; every payload is read to its end. */
#include "laws.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[1000];

static void on_log(void *userdata, int level, const char *message)
{
	assert_ptr_equal(userdata, said);
	if (level == 0)
		snprintf(said, sizeof(said), "%s", message);
}

static struct csync_options with_log(void)
{
	struct csync_options o = options_none();

	o.log = on_log;
	o.userdata = said;
	return o;
}

/* The peer sends b; what the check finds, and that the next payload is found behind it. */
static int found(csync_engine *engine, const struct ends *e, const char *path, struct bytes b)
{
	int differs = 77, next = 77;

	said[0] = 0;
	feed(e->out[1], b);
	feed_line(e->out[1], "octet-stream 0\n");
	assert_ok(engine, csync_engine_check(engine, path, &differs));
	char kept[sizeof(said)];
	strcpy(kept, said);
	assert_ok(engine, csync_engine_check(engine, "d/no such file", &next));
	assert_int_equal(next, 0);
	strcpy(said, kept);
	return differs;
}

static void equal_and_different(void)
{
	struct csync_options o = with_log();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	struct bytes b = bytes_random(100001, 1), c = bytes_random(100001, 1);

	c.p[70000] ^= 1;
	write_file("d/f", b);
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature(b))), 0);
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature(c))), 1);
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature(bytes_part(b, 0, 100000)))), 1);
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature(bytes_text("")))), 1);
	/* another version's block length and sums */
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature_with(b, 512, 8, PEER_MD4))), 0);
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(peer_signature_with(b, 700, 32, PEER_BLAKE2))), 0);
	assert_int_equal(found(s.engine, &s.e, "d/none", framed(bytes_text(""))), 0);
	assert_int_equal(found(s.engine, &s.e, "d/none", framed(peer_signature(b))), 1);
	assert_int_equal(found(s.engine, &s.e, "", framed(peer_signature(b))), 1);
	assert_string_equal(said, "");
	scene_end(&s);
}

static void troubles_are_differences_with_a_message(void)
{
	struct csync_options o = with_log();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	struct bytes sig = peer_signature(bytes_text("content"));
	const struct {
		const char *path;
		struct bytes sent;
		const char *text;
	} rows[] = {
		{ "d/f", bytes_text("ERROR\n"), "peer reports an error" },
		{ "d/f", bytes_text("octet-stream -1\n"), "peer reports an error" },
		{ "d/f", bytes_text("Permission denied\n"), "Permission denied" },
		{ "d/f", framed(bytes_text("no signature, this is")), "signature" },
		{ "d/link", framed(bytes_part(sig, 0, sig.n)), strerror(ELOOP) },
		{ "d", framed(bytes_part(sig, 0, sig.n)), strerror(EISDIR) },
		{ "d/f/below", framed(bytes_part(sig, 0, sig.n)), strerror(ENOTDIR) },
	};

	write_file("d/f", bytes_text("content"));
	assert_int_equal(symlink("f", "d/link"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(found(s.engine, &s.e, rows[i].path, rows[i].sent), 1);
		if (!strstr(said, rows[i].text) || !strstr(said, rows[i].path))
			fail_msg("row %zu: `%s`", i, said);
	}
	/* too short for a signature: different */
	assert_int_equal(found(s.engine, &s.e, "d/f", framed(bytes_text("rs\0016"))), 1);
	scene_end(&s);
}

static void a_place_for_the_result_is_needed(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	int differs;

	assert_failed(s.engine, csync_engine_check(s.engine, "d/f", NULL), CSYNC_E_ARGUMENT, EINVAL, "result", "NULL");
	assert_int_equal(csync_engine_check(NULL, NULL, NULL), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_engine_check(NULL, "d/f", NULL), CSYNC_E_ARGUMENT);
	feed_line(s.e.out[1], "octet-stream 0\n");
	assert_ok(s.engine, csync_engine_check(s.engine, "d/f", &differs));
	scene_end(&s);
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_CHECK),
	OURS(equal_and_different),
	OURS(troubles_are_differences_with_a_message),
	OURS(a_place_for_the_result_is_needed),
};
CT_MAIN("test_engine_check", cases)
