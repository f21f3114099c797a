/* csync_engine_push: the peer has the file, or it says that it has not. */
#include "laws.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The peer's answer to the delta. */
static void answered(const char *answer, csync_status status, int err, const char *text)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct bytes made;

	write_file("d/f", bytes_text("content"));
	feed(s.e.out[1], framed(peer_no_signature()));
	feed_line(s.e.out[1], answer);
	if (status == CSYNC_OK)
		assert_ok(s.engine, csync_engine_push(s.engine, "d/f"));
	else
		assert_failed(s.engine, csync_engine_push(s.engine, "d/f"), status, err, text, "d/f");
	assert_int_equal(peer_patch(bytes_text(""), unframed(arrived(s.e.in[1])), &made), 0);
	assert_bytes(made, bytes_text("content"));
	/* in step */
	feed(s.e.out[1], bytes_join(framed(peer_no_signature()), bytes_text("octet-stream 0\n")));
	assert_ok(s.engine, csync_engine_push(s.engine, "d/f"));
	scene_end(&s);
}

static void what_the_peer_answers(void)
{
	answered("octet-stream 0\n", CSYNC_OK, 0, "");
	answered("octet-stream 3\nabc", CSYNC_OK, 0, ""); /* later versions may say more */
	answered("ERROR\n", CSYNC_E_PEER, EIO, "peer reports an error");
	answered("octet-stream -1\n", CSYNC_E_PEER, EIO, "peer reports an error");
	answered("Disk quota exceeded\n", CSYNC_E_FORMAT, EIO, "Disk quota exceeded");
}

/* The peer is told ERROR, says ERROR as well, and our reason is the one that counts. */
static void what_cannot_be_sent(void)
{
	static const struct {
		const char *path;
		int err;
	} rows[] = { { "d/none", ENOENT }, { "", ENOENT }, { "d/link", ELOOP }, { "d", EISDIR }, { "/dev/null", EINVAL } };
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	assert_int_equal(symlink("f", "d/link"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		feed(s.e.out[1], bytes_join(framed(peer_no_signature()), bytes_text("ERROR\n")));
		assert_failed(s.engine, csync_engine_push(s.engine, rows[i].path), CSYNC_E_FILE, rows[i].err,
			      strerror(rows[i].err), "opening", rows[i].path);
		assert_string_equal((char *)arrived(s.e.in[1]).p, "ERROR\n");
	}
	scene_end(&s);
}

static void no_signature_comes(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("content"));
	feed_line(s.e.out[1], "ERROR\nERROR\n");
	assert_failed(s.engine, csync_engine_push(s.engine, "d/f"), CSYNC_E_PEER, EIO, "d/f");
	feed(s.e.out[1], bytes_join(framed(bytes_text("this is no signature")), bytes_text("ERROR\n")));
	assert_failed(s.engine, csync_engine_push(s.engine, "d/f"), CSYNC_E_FORMAT, EBADMSG, "bad signature", "d/f");
	assert_string_equal((char *)arrived(s.e.in[1]).p, "ERROR\nERROR\n");
	scene_end(&s);
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_PUSH),
	OURS(what_the_peer_answers),
	OURS(what_cannot_be_sent),
	OURS(no_signature_comes),
};
CT_MAIN("test_engine_push", cases)
