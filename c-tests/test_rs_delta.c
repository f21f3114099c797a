/* csync_rs_delta: reads the peer's signature, then puts exactly one thing on the wire: a delta, or ERROR. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The peer has basis and gets content; takes the signature. */
static struct bytes delta_for(const char *name, struct bytes signature)
{
	host_reset();
	feed_frame_of(signature);
	host_feed_text("NEXT\n");
	assert_int_equal(csync_rs_delta(name), 0);
	assert_rest("NEXT\n");
	return take_frame();
}

static void arrives(struct bytes basis, struct bytes content, struct bytes signature)
{
	struct bytes result, delta;

	write_file("d/f", content);
	delta = delta_for("d/f", signature);
	assert_int_equal(peer_patch(basis, delta, &result), 0);
	assert_bytes(result, content);
	bytes_free(result);
	bytes_free(delta);
}

static void without_a_basis_all_is_sent(void)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 255, 256, 257, 2048, 16384, 65535, 65536, 65537, 300001 };
	struct bytes none = { NULL, 0 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes b = bytes_random(sizes[i], i);
		arrives(none, b, peer_no_signature());
		arrives(none, b, peer_signature(none));
		bytes_free(b);
	}
}

static void every_kind_of_edit_arrives(void)
{
	struct bytes basis = bytes_random(100001, 1);
	struct bytes edits[] = {
		bytes_part(basis, 0, basis.n),                                                       /* the same */
		bytes_part(basis, 0, 50000),                                                         /* cut */
		bytes_part(basis, 33333, 66668),                                                     /* beginning gone */
		bytes_join(bytes_part(basis, 0, basis.n), bytes_random(777, 2)),                     /* grown */
		bytes_join(bytes_random(777, 2), bytes_part(basis, 0, basis.n)),                     /* shifted */
		bytes_join(bytes_part(basis, 0, 40000), bytes_part(basis, 41000, 70000)),            /* a piece gone */
		bytes_join(bytes_part(basis, 60000, 40001), bytes_part(basis, 0, 60000)),            /* turned round */
		bytes_join(bytes_part(basis, 2048, 2048), bytes_part(basis, 2048, 2048)),            /* a block twice */
		bytes_random(100001, 3),                                                             /* unrelated */
		bytes_part(basis, 0, 0),                                                             /* empty */
		bytes_part(basis, 0, 2047),
		bytes_part(basis, 2048, 2048),
		bytes_part(basis, 100001 - 1697, 1697),                                              /* the short last block */
	};
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		arrives(basis, edits[i], peer_signature(basis));
		bytes_free(edits[i]);
	}
	bytes_free(basis);
}

static void one_byte_changed_is_a_small_delta(void)
{
	struct bytes b = bytes_random(1 << 20, 1), s = peer_signature(b);
	b.p[500000] ^= 1;
	write_file("d/f", b);
	struct bytes d = delta_for("d/f", s);
	assert_true(d.n < 4096);
	bytes_free(d);
	bytes_free(b);
}

static void other_signatures_are_understood(void)
{
	struct bytes basis = bytes_random(50000, 1);
	struct bytes b = bytes_join(bytes_text("in front"), bytes_part(basis, 0, basis.n));

	arrives(basis, b, peer_signature_with(basis, 2048, 8, PEER_MD4));
	arrives(basis, b, peer_signature_with(basis, 700, 16, PEER_MD4));
	arrives(basis, b, peer_signature_with(basis, 100000, 16, PEER_MD4));
	arrives(basis, b, peer_signature_with(basis, 2048, 32, PEER_BLAKE2));
	bytes_free(basis);
	bytes_free(b);
}

static void names_are_bytes_and_prefixes_are_replaced(void)
{
	struct bytes b = bytes_random(5000, 1);
	write_file("d/\xff\xfe\x01 x", b);
	bytes_free(delta_for("%t%/d/\xff\xfe\x01 x", peer_no_signature()));
	bytes_free(b);
}

static void s15_header_and_first_bytes_leave_in_one_write(void)
{
	write_file("d/f", bytes_text("hello"));
	bytes_free(delta_for("d/f", peer_no_signature()));
	host_reset();
	feed_frame_of(peer_no_signature());
	csync_rs_delta("d/f");
	assert_int_equal(host.writes, 1);
}

static void s15_large_pieces(void)
{
	struct bytes b = bytes_random(5 << 20, 2);
	write_file("d/f", b);
	host_reset();
	feed_frame_of(peer_no_signature());
	assert_int_equal(csync_rs_delta("d/f"), 0);
	assert_true(host.largest_write <= CSYNC_CHUNK);
	assert_true(host.writes <= (5 << 20) / CSYNC_CHUNK + 3);
	bytes_free(b);
}

/* ERROR and -1, the errno, everything read, a message that names the file. */
static void refused(const char *name, struct bytes signature, int want_errno)
{
	host_reset();
	feed_frame_of(signature);
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_delta(name), e = errno;
	struct bytes got = take_output();
	assert_int_equal(r, -1);
	assert_string_equal(got.p, "ERROR\n");
	assert_int_equal(e, want_errno);
	assert_rest("NEXT\n");
	if (name)
		assert_true(host_said(1, name, strerror(want_errno), NULL));
	bytes_free(got);
}

static struct bytes some_signature(void)
{
	struct bytes b = bytes_random(100000, 1), s = peer_signature(b);
	bytes_free(b);
	return s;
}

static void s2_the_source_is_gone(void)
{
	refused("d/gone", some_signature(), ENOENT);
}

static void s2_the_sources_directory_is_gone(void)
{
	refused("gone/f", some_signature(), ENOENT);
}

static void s2_the_source_cannot_be_read(void)
{
	write_file("d/f", bytes_text("x"));
	chmod("d/f", 0);
	if (getuid() == 0 && chown("d/f", 65534, 65534))
		ct_skip("no chown");
	become_nobody();
	refused("d/f", some_signature(), EACCES);
}

static void s2_the_source_is_a_directory(void)
{
	refused("d", some_signature(), EISDIR);
}

static void w14_the_source_is_a_fifo(void)
{
	assert_int_equal(mkfifo("d/fifo", 0644), 0);
	refused("d/fifo", some_signature(), EINVAL);
}

static void w14_the_source_is_a_device(void)
{
	refused("/dev/zero", some_signature(), EINVAL);
}

static void w14_the_source_is_a_symlink(void)
{
	write_file("d/f", bytes_text("elsewhere"));
	assert_int_equal(symlink("f", "d/link"), 0);
	refused("d/link", some_signature(), ELOOP);
}

static void t1_an_overlong_name(void)
{
	struct bytes b = bytes_join(bytes_text("/"), bytes_join(bytes_fill(5000, 'n'), bytes_text("/f")));
	refused((char *)b.p, some_signature(), ENAMETOOLONG);
	bytes_free(b);
}

static void empty_name_is_missing(void)
{
	refused("", some_signature(), ENOENT);
}

static void null_is_an_empty_name(void)
{
	refused(NULL, some_signature(), ENOENT);
}

/* Nothing came that could be a signature: the peer waits for something all the same. */
static void a_line_in_place_of_the_signature(void)
{
	write_file("d/f", bytes_text("x"));
	host_reset();
	host_feed_text(ct_arg);
	host_feed_text("NEXT\n");
	errno = 0;
	int r = csync_rs_delta("d/f"), e = errno;
	assert_int_equal(r, -1);
	assert_int_not_equal(e, 0);
	struct bytes got = take_output();
	assert_string_equal(got.p, "ERROR\n");
	bytes_free(got);
	assert_rest("NEXT\n");
}

static void c19_a_connection_lost_in_the_signature_is_minus_one(void)
{
	write_file("d/f", bytes_text("x"));
	host_reset();
	host_feed_text("octet-stream 1000\nrs");
	errno = 0;
	assert_int_equal(csync_rs_delta("d/f"), -1);
	assert_int_not_equal(errno, 0);
}

static void c19_a_connection_lost_in_the_delta_is_minus_one(void)
{
	struct bytes b = bytes_random(1 << 20, 2);
	write_file("d/f", b);
	for (unsigned n = 1; n < 4; n++) {
		host_reset();
		feed_frame_of(peer_no_signature());
		host_on_write((struct host_step){ .from = n, .what = HOST_CLOSE });
		errno = 0;
		assert_int_equal(csync_rs_delta("d/f"), -1);
		assert_int_equal(errno, EPIPE);
	}
	bytes_free(b);
}

static const struct ct_case cases[] = {
	SAME(without_a_basis_all_is_sent),
	SAME(every_kind_of_edit_arrives),
	SAME(one_byte_changed_is_a_small_delta),
	SAME(other_signatures_are_understood),
	SAME(names_are_bytes_and_prefixes_are_replaced),
	FAULT(s15_header_and_first_bytes_leave_in_one_write, WRONG),
	FAULT(s15_large_pieces, WRONG),
	FAULT(s2_the_source_is_gone, CRASH),
	FAULT(s2_the_sources_directory_is_gone, CRASH | WRONG),
	FAULT(s2_the_source_cannot_be_read, CRASH),
	FAULT(s2_the_source_is_a_directory, FATAL),
	FAULT(w14_the_source_is_a_fifo, HANG),
	/* It would copy zeroes to the disk until that is full. */
	CANNOT(w14_the_source_is_a_device, "it fills the disk with an endless delta"),
	FAULT(w14_the_source_is_a_symlink, WRONG),
	FAULT(t1_an_overlong_name, CRASH),
	FAULT(empty_name_is_missing, CRASH | WRONG),
	FAULT(null_is_an_empty_name, CRASH),
	FAULT_ROW("s1_minus_one_for_a_signature_is_answered", a_line_in_place_of_the_signature, "octet-stream -1\n", WRONG),
	FAULT_ROW("s1_ERROR_for_a_signature_is_answered", a_line_in_place_of_the_signature, "ERROR\n", WRONG),
	FAULT_ROW("s13_error_text_for_a_signature_is_answered", a_line_in_place_of_the_signature, "Permission denied\n", FATAL),
	FAULT(c19_a_connection_lost_in_the_signature_is_minus_one, FATAL),
	FAULT(c19_a_connection_lost_in_the_delta_is_minus_one, FATAL),
};
CT_MAIN("test_rs_delta", cases)
