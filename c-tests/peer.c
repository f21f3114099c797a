#include "peer.h"
#include "ct.h"
#include "host.h"

#include <librsync.h>
#include <stdlib.h>
#include <string.h>

struct bytes peer_signature_with(struct bytes content, size_t block, size_t strong, int magic)
{
	FILE *in = file_of(content, "r+"), *out = file_of((struct bytes){ NULL, 0 }, "r+");
	rs_result r = rs_sig_file(in, out, block, strong, (rs_magic_number)magic, NULL);

	assert_int_equal(r, RS_DONE);
	rewind(out);
	struct bytes b = rest_of(out);
	fclose(in);
	fclose(out);
	return b;
}

struct bytes peer_signature(struct bytes content)
{
	return peer_signature_with(content, 2048, 16, PEER_MD4);
}

struct bytes peer_no_signature(void)
{
	return bytes_of("rs\0016\0\0\010\0\0\0\0\010", 12);
}

struct bytes peer_delta(struct bytes signature, struct bytes content)
{
	FILE *sig = file_of(signature, "r+"), *in = file_of(content, "r+"), *out = file_of((struct bytes){ NULL, 0 }, "r+");
	rs_signature_t *sums = NULL;

	assert_int_equal(rs_loadsig_file(sig, &sums, NULL), RS_DONE);
	assert_int_equal(rs_build_hash_table(sums), RS_DONE);
	assert_int_equal(rs_delta_file(sums, in, out, NULL), RS_DONE);
	rewind(out);
	struct bytes b = rest_of(out);
	rs_free_sumset(sums);
	fclose(sig);
	fclose(in);
	fclose(out);
	return b;
}

int peer_patch(struct bytes basis, struct bytes delta, struct bytes *result)
{
	FILE *base = file_of(basis, "r+"), *in = file_of(delta, "r+"), *out = file_of((struct bytes){ NULL, 0 }, "r+");
	rs_result r;

	rs_trace_set_level(RS_LOG_EMERG);
	r = rs_patch_file(base, in, out, NULL);
	rewind(out);
	*result = rest_of(out);
	fclose(base);
	fclose(in);
	fclose(out);
	return r;
}

void feed_frame(struct bytes b)
{
	char head[64];
	snprintf(head, sizeof(head), "octet-stream %zu\n", b.n);
	host_feed_text(head);
	host_feed(b.p, b.n);
}

void feed_frame_of(struct bytes b)
{
	feed_frame(b);
	bytes_free(b);
}

struct bytes take_output(void)
{
	struct bytes b = bytes_of(host.out, host.out_len);
	host_forget_output();
	return b;
}

struct bytes take_frame_at(const char *file, int line)
{
	struct bytes all = take_output();
	unsigned long long n = 0;
	int head = 0;

	/* A NUL stands behind the bytes: the scan ends. */
	if (sscanf((char *)all.p, "octet-stream %llu%n", &n, &head) != 1 || all.p[head] != '\n') {
		print_error("no frame, but: %.60s\n%s", all.n ? (char *)all.p : "(nothing)", host_log());
		_fail(file, line);
	}
	head++;
	if (all.n - head != n) {
		print_error("%llu bytes were announced, %zu follow\n", n, all.n - head);
		_fail(file, line);
	}
	struct bytes b = bytes_of(all.p + head, n);
	bytes_free(all);
	return b;
}

struct bytes delta_begin(void)
{
	return bytes_of("rs\0026", 4);
}

struct bytes delta_raw(struct bytes d, const char *p, size_t n)
{
	return bytes_join(d, bytes_of(p, n));
}

struct bytes delta_literal(struct bytes d, const char *text)
{
	size_t n = strlen(text);
	unsigned char op[3] = { 0x42, n >> 8, n & 255 }; /* a two-byte length */
	return bytes_join(bytes_join(d, bytes_of(op, 3)), bytes_text(text));
}

struct bytes delta_copy(struct bytes d, unsigned long long from, unsigned long long n)
{
	unsigned char op[17] = { 0x54 }; /* offset and length of eight bytes each */
	for (int i = 0; i < 8; i++) {
		op[1 + i] = from >> (56 - 8 * i);
		op[9 + i] = n >> (56 - 8 * i);
	}
	return bytes_join(d, bytes_of(op, sizeof(op)));
}

struct bytes delta_end(struct bytes d)
{
	return delta_raw(d, "\0", 1);
}
