/*
 * Any bytes from a peer, through every verb that reads: what is consumed, written and made of the files is what the
 * format says, by a parser of its own and by librsync.
 */
#include "chance.h"
#include "ends.h"
#include "peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The peer: its bytes, how unwillingly they come, and what it got. */
static struct {
	struct bytes in;
	size_t at, most;
	unsigned refuses, empty_in_a_row;
	unsigned char out[1 << 20];
	size_t out_len;
} peer;

static int refused(void)
{
	if (!peer.refuses || !one_in(peer.refuses))
		return 0;
	errno = one_in(2) ? EAGAIN : EINTR;
	return 1;
}

static ssize_t peer_read(void *userdata, void *buffer, size_t count)
{
	(void)userdata;
	if (refused())
		return -1;
	/* nothing, though there is more: the end is told by many of these */
	if (peer.refuses && peer.empty_in_a_row < 5 && one_in(peer.refuses)) {
		peer.empty_in_a_row++;
		return 0;
	}
	peer.empty_in_a_row = 0;
	if (peer.most && count > peer.most)
		count = 1 + chance(peer.most);
	if (count > peer.in.n - peer.at)
		count = peer.in.n - peer.at;
	memcpy(buffer, peer.in.p + peer.at, count);
	peer.at += count;
	return count;
}

static ssize_t peer_write(void *userdata, const void *buffer, size_t count)
{
	(void)userdata;
	if (refused())
		return -1;
	if (peer.most && count > peer.most)
		count = 1 + chance(peer.most);
	assert_true(peer.out_len + count <= sizeof(peer.out));
	memcpy(peer.out + peer.out_len, buffer, count);
	peer.out_len += count;
	return count;
}

static void no_wait(void *userdata, int for_write, unsigned milliseconds)
{
	(void)userdata, (void)for_write, (void)milliseconds;
}

/* One frame of `in` at `*at`: moves behind it, and says its payload's length; -1: nothing follows the line. */
static int parse(struct bytes in, size_t *at, long long *length)
{
	static const char word[] = "octet-stream ";
	unsigned char *line = in.p + *at, *end = memchr(line, '\n', in.n - *at);
	size_t n, digits = 0;

	*length = -1;
	if (!end)
		return 0;
	n = end - line;
	*at += n + 1;
	if (n && line[n - 1] == '\r')
		n--;
	if (n <= strlen(word) || memcmp(line, word, strlen(word)))
		return 1;
	unsigned long long value = 0;
	for (size_t i = strlen(word); i < n; i++, digits++) {
		if (line[i] < '0' || line[i] > '9' || digits == 19)
			return 1;
		value = 10 * value + (line[i] - '0');
	}
	if (value > INT64_MAX)
		return 1;
	*length = (long long)value;
	if (value > in.n - *at)
		return 0;
	*at += value;
	return 1;
}

static struct bytes content, newer;
enum { SEEDS = 12 };
static struct bytes signatures[SEEDS], deltas[SEEDS], contents[SEEDS];
static size_t n_signatures, n_deltas, n_contents, n_same;

static void make_seeds(void)
{
	static const struct {
		size_t block, strong;
		int magic;
	} kinds[] = { { 2048, 16, PEER_MD4 }, { 2048, 8, PEER_MD4 }, { 100, 16, PEER_MD4 }, { 700, 32, PEER_BLAKE2 },
		{ 5000, 5, PEER_BLAKE2 } };

	content = bytes_random(5000, 1);
	newer = bytes_join(bytes_random(50, 2), bytes_join(bytes_part(content, 2000, 2500), bytes_part(content, 0, 2100)));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		signatures[n_signatures++] = peer_signature_with(content, kinds[i].block, kinds[i].strong, kinds[i].magic);
	n_same = n_signatures;
	signatures[n_signatures++] = peer_signature(newer);
	signatures[n_signatures++] = peer_no_signature();
	deltas[n_deltas++] = peer_delta(peer_signature(content), newer);
	deltas[n_deltas++] = peer_delta(peer_signature(content), content);
	deltas[n_deltas++] = peer_delta(peer_no_signature(), newer);
	deltas[n_deltas++] = peer_delta(peer_signature_with(content, 100, 16, PEER_MD4), newer);
	deltas[n_deltas++] = delta_end(delta_copy(delta_literal(delta_copy(delta_begin(), 0, 5000), "between"), 4999, 1));
	contents[n_contents++] = bytes_text("");
	contents[n_contents++] = bytes_random(300, 3);
	contents[n_contents++] = bytes_random(3000, 4);
}

/* A conversation's part: a frame with a payload that is nearly right, or a line that is nearly a header. */
static struct bytes one_frame(const struct bytes *seeds, size_t n)
{
	static const char *const lines[] = { "ERROR\n", "octet-stream -1\n", "octet-stream 0\n", "octet-stream 12\r\n",
		"octet-stream 9223372036854775807\n", "octet-stream 4294967296\n", "No such file or directory\n", "OK\n" };
	struct bytes line = bytes_text(lines[chance(sizeof(lines) / sizeof(lines[0]))]);
	struct bytes seed = seeds[chance(n)], other = seeds[chance(n)];

	switch (chance(8)) {
	case 0:
		return mutated(line, seed);
	case 1:
		return mutated(framed(bytes_part(seed, 0, seed.n)), line);
	default:
		return framed(mutated(seed, other));
	}
}

static int is_one_of(struct bytes b, const struct bytes *many, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b.n == many[i].n && !memcmp(b.p, many[i].p, b.n))
			return 1;
	return 0;
}

/* What was sent: so many frames, of which each may be `ERROR`. The last one's payload; -1 length for an error. */
static struct bytes sent_frames(unsigned frames, int *error)
{
	struct bytes all = bytes_of(peer.out, peer.out_len), payload = bytes_text("");
	size_t at = 0;
	long long n;

	for (unsigned i = 0; i < frames; i++) {
		assert_true(parse(all, &at, &n));
		*error = n < 0;
		if (n >= 0)
			payload = bytes_part(all, at - n, n);
	}
	assert_int_equal(at, all.n);
	return payload;
}

static unsigned be32(const unsigned char *p)
{
	return (unsigned)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void check_is_right(struct bytes payload, int differs)
{
	if (is_one_of(payload, signatures, n_same))
		assert_int_equal(differs, 0);
	if (!differs) {
		assert_true(payload.n >= 12);
		assert_bytes(payload, peer_signature_with(content, be32(payload.p + 4), be32(payload.p + 8), be32(payload.p)));
	}
}

static void patch_is_right(struct bytes payload, enum csync_status status)
{
	struct bytes made;

	if (status == CSYNC_OK) {
		assert_int_equal(peer_patch(content, payload, &made), 0);
		assert_file("d/f", made);
		write_file("d/f", content);
	} else
		assert_file("d/f", content);
	if (is_one_of(payload, deltas, n_deltas))
		assert_int_equal(status, CSYNC_OK);
}

static void delta_is_right(struct bytes signature, struct bytes delta)
{
	struct bytes made;

	if (is_one_of(signature, signatures, n_same)) {
		assert_int_equal(peer_patch(content, delta, &made), 0);
		assert_bytes(made, content);
	}
}

static void one_call(csync_engine *engine, struct call *c, int out)
{
	static const char tail[] = "octet-stream 2\nok";
	size_t end = 0, front;
	long long n, answer = 0;
	int is_error = 0;

	front = peer.in.n;
	peer.in = bytes_join(peer.in, bytes_text(tail));
	int whole = parse(peer.in, &end, &n);
	if (whole && c->verb == CSYNC_PUSH)
		whole = parse(peer.in, &end, &answer);
	struct bytes payload = whole && n >= 0 && c->verb != CSYNC_PUSH ? bytes_part(peer.in, end - n, n) : bytes_text("");

	call_now(engine, c);
	assert_true((c->status == CSYNC_OK) == (c->err == 0) && (c->status == CSYNC_OK) == (c->text[0] == 0));
	assert_null(strstr(c->text, "os error"));
	for (const char *p = c->text; *p; p++)
		assert_true((unsigned char)*p >= ' ');
	assert_int_equal(names_with("d", ""), 4); /* f, out, and the two dots */
	if (!whole) {
		assert_int_equal(c->status, CSYNC_E_CONNECTION);
		assert_int_equal(c->err, ECONNRESET);
		assert_file("d/f", content);
		assert_int_equal(csync_engine_receive(engine, out, NULL), CSYNC_E_STATE);
		return;
	}
	/* while output is refused, input is taken in ahead of its turn */
	if (peer.at < end || (peer.at > end && !peer.refuses)) {
		for (size_t i = 0; i < peer.in.n; i++)
			print_error("%c%02x", i == end ? '|' : i == peer.at ? '^' : ' ', peer.in.p[i]);
		fail_msg("verb %d has read to %zu instead of %zu of %zu (`%s`)", c->verb, peer.at, end, peer.in.n, c->text);
	}
	switch (c->status) {
	case CSYNC_OK:
		assert_true((c->verb == CSYNC_CHECK || n >= 0) && answer >= 0);
		break;
	case CSYNC_E_PEER:
		assert_true(n < 0 || answer < 0);
		break;
	case CSYNC_E_FORMAT:
	case CSYNC_E_MEMORY:
		break;
	default:
		fail_msg("status %d: %s", c->status, c->text);
	}
	switch (c->verb) {
	case CSYNC_RECEIVE:
		if (n >= 0) {
			assert_int_equal(c->status, CSYNC_OK);
			assert_int_equal(c->length, n);
			assert_file("d/out", payload);
		}
		break;
	case CSYNC_CHECK:
		assert_int_equal(c->status, CSYNC_OK);
		check_is_right(payload, c->differs);
		break;
	case CSYNC_DELTA:
		delta_is_right(payload, sent_frames(1, &is_error));
		assert_int_equal(is_error, c->status != CSYNC_OK);
		break;
	case CSYNC_PUSH:
		sent_frames(1, &is_error);
		assert_true(!is_error || c->status != CSYNC_OK);
		break;
	case CSYNC_PULL:
		sent_frames(2, &is_error);
		assert_int_equal(is_error, c->status != CSYNC_OK);
		/* fall through */
	default:
		patch_is_right(payload, c->status);
	}
	/* in step */
	if (end == front) {
		uint64_t length = 0;
		assert_int_equal(ftruncate(out, 0), 0);
		assert_int_equal(lseek(out, 0, SEEK_SET), 0);
		assert_ok(engine, csync_engine_receive(engine, out, &length));
		assert_int_equal(length, 2);
		assert_file("d/out", bytes_text("ok"));
	}
}

static void a_round(void)
{
	static const enum csync_verb verbs[] = { CSYNC_RECEIVE, CSYNC_CHECK, CSYNC_DELTA, CSYNC_PATCH, CSYNC_PUSH, CSYNC_PULL };
	static const size_t pieces[] = { 0, 0, 1, 7, 100 };
	struct csync_transport t = { .size = sizeof(t), .read = peer_read, .write = peer_write, .wait = no_wait };
	struct call c = { .verb = verbs[chance(6)], .path = "d/f" };
	csync_engine *engine = NULL;

	peer.at = peer.out_len = peer.empty_in_a_row = 0;
	peer.most = pieces[chance(5)];
	peer.refuses = one_in(2) ? 0 : 2 + chance(20);
	switch (c.verb) {
	case CSYNC_RECEIVE:
		peer.in = one_frame(contents, n_contents);
		break;
	case CSYNC_PATCH:
	case CSYNC_PULL:
		peer.in = one_frame(deltas, n_deltas);
		break;
	case CSYNC_PUSH:
		peer.in = bytes_join(one_frame(signatures, n_signatures), one_frame(contents, one_in(4) ? n_contents : 1));
		break;
	default:
		peer.in = one_frame(signatures, n_signatures);
	}
	int out = open("d/out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	c.descriptor = out;
	assert_int_equal(csync_engine_over_transport(&t, NULL, &engine), CSYNC_OK);
	one_call(engine, &c, out);
	csync_engine_free(engine);
	close(out);
}

static void any_bytes_from_a_peer(void)
{
	make_seeds();
	write_file("d/f", content);
	write_file("d/out", bytes_text(""));
	rounds(a_round);
}

int main(void)
{
	const struct ct_case cases[] = {
		{ .name = "any_bytes_from_a_peer", .body = any_bytes_from_a_peer, .original = CT_CANNOT,
		  .why = "a function of this library alone", .seconds = rounds_seconds() },
	};
	return ct_run("fuzz_wire", cases, 1);
}
