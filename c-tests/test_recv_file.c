/* csync_recv_file: strict headers, everything announced is read, no error ends the process. */
#include "ct.h"
#include "files.h"
#include "host.h"
#include "peer.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *scratch(void)
{
	return file_of((struct bytes){ NULL, 0 }, "w+");
}

static void every_size_arrives(void)
{
	static const size_t sizes[] = { 0, 1, 511, 512, 513, 16383, 16384, 16385, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		host_reset();
		struct bytes b = bytes_random(sizes[i], i);
		FILE *f = scratch();
		feed_frame(b);
		host_feed_text("NEXT\n");
		assert_int_equal(csync_recv_file(f), 0);
		assert_rest("NEXT\n");
		assert_int_equal(ftell(f), 0);
		struct bytes got = rest_of(f);
		assert_bytes(got, b);
		assert_int_equal(host.writes, 0);
		bytes_free(got);
		bytes_free(b);
		fclose(f);
	}
}

static void memory_streams_receive(void)
{
	struct bytes b = bytes_random(20000, 1);
	char *text = NULL, *room = calloc(1, 20001);
	size_t size = 0;

	host_reset();
	feed_frame(b);
	FILE *f = open_memstream(&text, &size);
	assert_int_equal(csync_recv_file(f), 0);
	fseek(f, 0, SEEK_END);
	fclose(f);
	assert_memory_equal(text, b.p, b.n);
	free(text);

	host_reset();
	feed_frame(b);
	f = fmemopen(room, 20001, "w+");
	assert_int_equal(csync_recv_file(f), 0);
	assert_int_equal(ftell(f), 0);
	fclose(f);
	assert_memory_equal(room, b.p, b.n);
	free(room);
	bytes_free(b);
}

/* The caller may have written before: the bytes follow. */
static void bytes_follow_what_the_caller_wrote(void)
{
	host_reset();
	host_feed_text("octet-stream 5\nworldNEXT\n");
	FILE *f = scratch();
	fputs("hello ", f);
	assert_int_equal(csync_recv_file(f), 0);
	struct bytes got = rest_of(f);
	assert_string_equal(got.p, "hello world");
	bytes_free(got);
	fclose(f);
}

/* A header that is taken; the payload is "12345". */
static void header_is_taken(void)
{
	host_reset();
	host_feed_text(ct_arg);
	host_feed_text("12345NEXT\n");
	FILE *f = scratch();
	assert_int_equal(csync_recv_file(f), 0);
	assert_rest("NEXT\n");
	struct bytes got = rest_of(f);
	assert_string_equal(got.p, "12345");
	bytes_free(got);
	fclose(f);
}

/* A line that is no header: -1, an errno, nothing behind the line is touched, the process lives. */
static void header_is_refused(void)
{
	host_reset();
	host_feed_text(ct_arg);
	host_feed_text("NEXT\n");
	FILE *f = scratch();
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_true(errno == EIO || errno == EBADMSG || errno == EPROTO || errno == EFBIG || errno == EOVERFLOW);
	assert_rest("NEXT\n");
	fseek(f, 0, SEEK_END);
	assert_int_equal(ftell(f), 0);
	fclose(f);
}

/* The connection ends within or before the line. */
static void half_a_header_is_a_lost_connection(void)
{
	host_reset();
	host_feed_text(ct_arg);
	FILE *f = scratch();
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_not_equal(errno, 0);
	fclose(f);
}

static void s12_a_nul_in_the_header_is_refused(void)
{
	host_reset();
	host_feed("octet-stream 5\0\n", 16);
	host_feed_text("12345NEXT\n");
	FILE *f = scratch();
	assert_int_equal(csync_recv_file(f), -1);
	fclose(f);
}

static void long_line(int c, size_t n)
{
	struct bytes line = bytes_fill(n, c);
	host_reset();
	host_feed(line.p, line.n);
	host_feed_text("\nNEXT\n");
	FILE *f = scratch();
	assert_int_equal(csync_recv_file(f), -1);
	assert_rest("NEXT\n");
	fclose(f);
	bytes_free(line);
}

static void s13_long_error_texts_are_read_to_their_end(void)
{
	static const size_t sizes[] = { 98, 99, 100, 101, 200, 511, 512, 513, 4000 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		long_line('x', sizes[i]);
}

/* All the digits in the world are no reason to read for ever or to fill the disk. */
static void s12_the_largest_size_at_the_end_of_the_connection(void)
{
	host_reset();
	host_feed_text("octet-stream 9223372036854775807\nabc");
	FILE *f = scratch();
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_not_equal(errno, 0);
	fclose(f);
}

static void c6_a_connection_lost_in_the_middle_is_minus_one(void)
{
	host_reset();
	host_feed_text("octet-stream 1000\nabc");
	FILE *f = scratch();
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_not_equal(errno, 0);
	fclose(f);
}

static void s5_a_stream_that_cannot_be_written_is_drained(void)
{
	struct bytes b = bytes_random(50000, 3);
	host_reset();
	write_file("d/ro", b);
	FILE *f = fopen("d/ro", "r");
	feed_frame(b);
	host_feed_text("NEXT\n");
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_equal(errno, EBADF);
	assert_rest("NEXT\n");
	fclose(f);
	bytes_free(b);
}

static void s5_a_full_disk_in_the_middle_is_drained(void)
{
	struct bytes b = bytes_random(100000, 4);
	host_reset();
	FILE *f = fopen("d/f", "w+");
	limit_file_size(65536);
	feed_frame(b);
	host_feed_text("NEXT\n");
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_equal(errno, EFBIG);
	assert_rest("NEXT\n");
	fclose(f);
	bytes_free(b);
}

static void w2_the_last_byte_counts(void)
{
	struct bytes b = bytes_random(8193, 5);
	host_reset();
	FILE *f = fopen("d/f", "w+");
	limit_file_size(8192);
	feed_frame(b);
	host_feed_text("NEXT\n");
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_equal(errno, EFBIG);
	assert_rest("NEXT\n");
	fclose(f);
	bytes_free(b);
}

static void w2_a_full_device_is_noticed(void)
{
	host_reset();
	FILE *f = fopen("/dev/full", "w+");
	if (!f)
		ct_skip("no /dev/full");
	host_feed_text("octet-stream 5\n12345NEXT\n");
	errno = 0;
	assert_int_equal(csync_recv_file(f), -1);
	assert_int_equal(errno, ENOSPC);
	assert_rest("NEXT\n");
	fclose(f);
}

static void w2_a_memory_stream_that_is_too_small_is_noticed(void)
{
	struct bytes b = bytes_random(5000, 6);
	char room[1000];
	host_reset();
	feed_frame(b);
	host_feed_text("NEXT\n");
	FILE *f = fmemopen(room, sizeof(room), "w+");
	assert_int_equal(csync_recv_file(f), -1);
	assert_rest("NEXT\n");
	fclose(f);
	bytes_free(b);
}

static void s15_reads_are_large(void)
{
	struct bytes b = bytes_random(1 << 20, 7);
	host_reset();
	feed_frame(b);
	FILE *f = scratch();
	assert_int_equal(csync_recv_file(f), 0);
	assert_true(host.raw_reads - host.line_reads <= (1 << 20) / CSYNC_CHUNK + 2);
	fclose(f);
	bytes_free(b);
}

static void null_is_drained(void)
{
	host_reset();
	host_feed_text("octet-stream 5\n12345NEXT\n");
	errno = 0;
	assert_int_equal(csync_recv_file(NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_rest("NEXT\n");
}

static const struct ct_case cases[] = {
	SAME(every_size_arrives),
	SAME(memory_streams_receive),
	SAME(bytes_follow_what_the_caller_wrote),
	SAME_ROW("s12_header_plain", header_is_taken, "octet-stream 5\n"),
	SAME_ROW("s12_header_with_carriage_return", header_is_taken, "octet-stream 5\r\n"),
	SAME_ROW("s12_minus_one_is_the_peers_error", header_is_refused, "octet-stream -1\n"),
	SAME_ROW("s12_ERROR_is_the_peers_error", header_is_refused, "ERROR\n"),
	FAULT_ROW("s12_header_with_garbage", header_is_refused, "octet-stream 5garbage\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_plus", header_is_refused, "octet-stream +5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_leading_blank", header_is_refused, " octet-stream 5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_two_blanks", header_is_refused, "octet-stream  5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_tab", header_is_refused, "octet-stream\t5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_without_blank", header_is_refused, "octet-stream5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_trailing_blank", header_is_refused, "octet-stream 5 \n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_second_number", header_is_refused, "octet-stream 5 5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_in_hexadecimal", header_is_refused, "octet-stream 0x5\n", WRONG | FATAL),
	FAULT_ROW("s12_header_with_fraction", header_is_refused, "octet-stream 5.0\n", WRONG | FATAL),
	FAULT_ROW("s12_header_in_capitals", header_is_refused, "OCTET-STREAM 5\n", FATAL),
	FAULT_ROW("s12_header_without_number", header_is_refused, "octet-stream \n", FATAL),
	FAULT_ROW("s12_header_word_only", header_is_refused, "octet-stream\n", FATAL),
	FAULT_ROW("s12_header_minus_only", header_is_refused, "octet-stream -\n", FATAL),
	SAME_ROW("s12_header_minus_two", header_is_refused, "octet-stream -2\n"),
	FAULT_ROW("s12_header_2_to_the_63", header_is_refused, "octet-stream 9223372036854775808\n", WRONG | FATAL),
	FAULT_ROW("s12_header_2_to_the_64", header_is_refused, "octet-stream 18446744073709551616\n", WRONG | FATAL),
	FAULT_ROW("s12_header_of_thirty_digits", header_is_refused, "octet-stream 999999999999999999999999999999\n", WRONG | FATAL),
	FAULT_ROW("s12_empty_line", header_is_refused, "\n", FATAL),
	FAULT(s12_a_nul_in_the_header_is_refused, WRONG | FATAL),
	FAULT(s12_the_largest_size_at_the_end_of_the_connection, FATAL),
	FAULT_ROW("s12_no_header_at_all", half_a_header_is_a_lost_connection, "", FATAL),
	FAULT_ROW("s12_half_a_header", half_a_header_is_a_lost_connection, "octet-st", FATAL),
	FAULT_ROW("s12_one_letter_of_a_header", half_a_header_is_a_lost_connection, "o", FATAL),
	FAULT_ROW("s12_header_without_line_end", half_a_header_is_a_lost_connection, "octet-stream 0", WRONG | FATAL),
	FAULT_ROW("s13_error_text_of_an_unpatched_client", header_is_refused, "No such file or directory\n", FATAL),
	FAULT_ROW("s13_error_text_with_bytes_above_127", header_is_refused, "Datei nicht gefunden \xfc\xff\n", FATAL),
	FAULT_ROW("s13_a_status_line", header_is_refused, "OK (cmd_finished).\n", FATAL),
	FAULT_ROW("s13_error_word_with_more", header_is_refused, "ERROR again\n", FATAL),
	FAULT_ROW("s13_error_word_with_carriage_return", header_is_refused, "ERROR\r\n", FATAL),
	FAULT(s13_long_error_texts_are_read_to_their_end, FATAL),
	FAULT(c6_a_connection_lost_in_the_middle_is_minus_one, FATAL),
	FAULT(s5_a_stream_that_cannot_be_written_is_drained, FATAL),
	FAULT(s5_a_full_disk_in_the_middle_is_drained, FATAL),
	FAULT(w2_the_last_byte_counts, WRONG),
	FAULT(w2_a_full_device_is_noticed, WRONG),
	FAULT(w2_a_memory_stream_that_is_too_small_is_noticed, WRONG | FATAL),
	FAULT(s15_reads_are_large, WRONG),
	FAULT(null_is_drained, CRASH),
};
CT_MAIN("test_recv_file", cases)
