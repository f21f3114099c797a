/* csync_send_file: a header and the whole file, in large pieces. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* csync2 calls it with the position at the end. */
static void send_from(FILE *f, long at, int whence)
{
	fseek(f, at, whence);
	csync_send_file(f);
}

static void every_size_arrives(void)
{
	static const size_t sizes[] = { 0, 1, 2, 511, 512, 513, 4095, 4096, 16383 - 19, 16384 - 19, 16383, 16384, 16385, 32768, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		host_reset();
		struct bytes b = bytes_random(sizes[i], i);
		FILE *f = file_of(b, "r+");
		send_from(f, 0, SEEK_END);
		struct bytes got = take_frame();
		assert_bytes(got, b);
		bytes_free(got);
		bytes_free(b);
		fclose(f);
	}
}

static void what_is_still_in_the_buffer_is_sent_too(void)
{
	host_reset();
	FILE *f = file_of(bytes_text(""), "w+");
	fputs("not flushed yet", f);
	csync_send_file(f);
	struct bytes got = take_frame();
	assert_string_equal(got.p, "not flushed yet");
	bytes_free(got);
	fclose(f);
}

static void a_memory_stream_is_sent(void)
{
	host_reset();
	struct bytes b = bytes_random(40000, 1);
	FILE *f = fmemopen(b.p, b.n, "r");
	send_from(f, 0, SEEK_END);
	struct bytes got = take_frame();
	assert_bytes(got, b);
	bytes_free(got);
	bytes_free(b);
	fclose(f);
}

static void s11_the_whole_file_is_sent_from_any_position(void)
{
	struct bytes b = bytes_random(50000, 2);
	const long at[] = { 0, 1, 4096, 20000 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		host_reset();
		FILE *f = file_of(b, "r+");
		send_from(f, at[i], SEEK_SET);
		struct bytes got = take_frame();
		assert_bytes(got, b);
		bytes_free(got);
		fclose(f);
	}
	bytes_free(b);
}

static void s11_a_memory_stream_is_sent_from_its_start(void)
{
	host_reset();
	struct bytes b = bytes_random(30000, 3);
	FILE *f = fmemopen(b.p, b.n, "r");
	csync_send_file(f);
	struct bytes got = take_frame();
	assert_bytes(got, b);
	bytes_free(got);
	bytes_free(b);
	fclose(f);
}

static void s11_a_pipe_is_an_error_not_minus_one(void)
{
	int p[2];
	host_reset();
	assert_int_equal(pipe(p), 0);
	FILE *f = fdopen(p[0], "r");
	csync_send_file(f);
	struct bytes got = take_output();
	assert_string_equal(got.p, "ERROR\n");
	bytes_free(got);
	fclose(f);
	close(p[1]);
}

/* A long of 32 bits cannot say it; one of 64 bits can. */
static void s11_sizes_above_2_gib_are_announced(void)
{
	const long long size = (1ll << 31) + 5;
	host_reset();
	host.discard = 1;
	int fd = memfd_create("large", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, size), 0);
	FILE *f = fdopen(fd, "r+");
	send_from(f, 0, SEEK_END);
	static const char head[] = "octet-stream 2147483653\n";
	assert_memory_equal(host.out, head, strlen(head));
	assert_true(host.out_len == strlen(head) + (size_t)size);
	fclose(f);
}

static void s15_header_and_first_bytes_leave_in_one_write(void)
{
	host_reset();
	struct bytes b = bytes_random(100, 4);
	FILE *f = file_of(b, "r+");
	send_from(f, 0, SEEK_END);
	assert_int_equal(host.writes, 1);
	assert_int_equal(host.first_write, host.out_len);
	fclose(f);
	bytes_free(b);
}

static void s15_no_small_writes_and_none_above_the_chunk(void)
{
	host_reset();
	struct bytes b = bytes_random(5 << 20, 5);
	FILE *f = file_of(b, "r+");
	send_from(f, 0, SEEK_END);
	assert_true(host.largest_write <= CSYNC_CHUNK);
	assert_true(host.writes <= (5 << 20) / CSYNC_CHUNK + 2);
	assert_true(host.first_write > 1000);
	struct bytes got = take_frame();
	assert_bytes(got, b);
	bytes_free(got);
	bytes_free(b);
	fclose(f);
}

static void s10_what_cannot_be_read_is_not_announced(void)
{
	host_reset();
	FILE *f = fopen("d/out", "w"); /* for writing only */
	fputs("something", f);
	csync_send_file(f);
	struct bytes got = take_output();
	assert_string_equal(got.p, "ERROR\n");
	bytes_free(got);
	fclose(f);
}

/* Half a stream is out and the function is void: either all that was announced comes, or the connection is closed. */
static void closed_first(const char *text)
{
	(void)text;
	if (host.closed)
		_exit(0);
}

static void cut(void)
{
	if (truncate("d/f", 10))
		abort();
}

static void s10_a_file_that_shrinks_meanwhile_leaves_no_gap(void)
{
	host_reset();
	struct bytes b = bytes_random(1 << 20, 6);
	write_file("d/f", b);
	FILE *f = fopen("d/f", "r");
	host.on_fatal = closed_first;
	host_on_write((struct host_step){ .from = 3, .what = HOST_CALL, .hook = cut });
	send_from(f, 0, SEEK_END);
	if (!host.closed) {
		struct bytes got = take_frame();
		assert_int_equal(got.n, b.n);
		bytes_free(got);
	}
	fclose(f);
	bytes_free(b);
}

static void null_is_an_error_line(void)
{
	host_reset();
	csync_send_file(NULL);
	struct bytes got = take_output();
	assert_string_equal(got.p, "ERROR\n");
	bytes_free(got);
}

static const struct ct_case cases[] = {
	SAME(every_size_arrives),
	SAME(what_is_still_in_the_buffer_is_sent_too),
	SAME(a_memory_stream_is_sent),
	FAULT(s11_the_whole_file_is_sent_from_any_position, WRONG),
	FAULT(s11_a_memory_stream_is_sent_from_its_start, WRONG),
	FAULT(s11_a_pipe_is_an_error_not_minus_one, WRONG),
	{ .name = "s11_sizes_above_2_gib_are_announced", .body = s11_sizes_above_2_gib_are_announced,
	  .original = CT_NOT_SHOWN, .why = "a long has 64 bits here", .flags = CT_LARGE },
	FAULT(s15_header_and_first_bytes_leave_in_one_write, WRONG),
	FAULT(s15_no_small_writes_and_none_above_the_chunk, WRONG),
	FAULT(s10_what_cannot_be_read_is_not_announced, WRONG | FATAL),
	FAULT(s10_a_file_that_shrinks_meanwhile_leaves_no_gap, WRONG | FATAL),
	FAULT(null_is_an_error_line, CRASH),
};
CT_MAIN("test_send_file", cases)
