/* csync_host_register: a program that is not csync2 uses the functions of rsync.c. Once per process: each case is one. */
#include "ends.h"
#include "host.h"
#include "peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct ends e;
	char log[4000], fatal[400], mapped[400];
	unsigned reads, writes, closes, closes_before_fatal, fatals, above, no_newline;
} my;

static ssize_t my_read(void *userdata, void *buffer, size_t count)
{
	assert_ptr_equal(userdata, &my);
	my.reads++;
	return read(my.e.in[0], buffer, count);
}

static ssize_t my_write(void *userdata, const void *buffer, size_t count)
{
	assert_ptr_equal(userdata, &my);
	my.writes++;
	my.above += count > CSYNC_CHUNK;
	return write(my.e.out[0], buffer, count);
}

static void my_close(void *userdata)
{
	assert_ptr_equal(userdata, &my);
	my.closes++;
}

static void my_log(void *userdata, int level, const char *message)
{
	assert_ptr_equal(userdata, &my);
	assert_in_range(level, 0, 3);
	assert_null(strchr(message, '\n'));
	snprintf(my.log + strlen(my.log), sizeof(my.log) - strlen(my.log), "%d %s|", level, message);
}

static void my_fatal(void *userdata, const char *message)
{
	assert_ptr_equal(userdata, &my);
	my.fatals++;
	my.closes_before_fatal = my.closes;
	snprintf(my.fatal, sizeof(my.fatal), "%s", message);
}

static const char *my_path(void *userdata, const char *name)
{
	assert_ptr_equal(userdata, &my);
	snprintf(my.mapped, sizeof(my.mapped), "d/%s", name);
	return my.mapped;
}

static struct csync_host everything(void)
{
	return (struct csync_host){ .size = sizeof(struct csync_host), .userdata = &my, .read = my_read, .write = my_write,
		.close = my_close, .log = my_log, .fatal = my_fatal, .local_path = my_path };
}

static void registered(struct csync_host h)
{
	my.e = ends_make(UNIX_SOCKETS, 0);
	host_reset();
	assert_int_equal(csync_host_register(&h), 0);
	memset(&h, 0x5a, sizeof(h)); /* it was copied */
}

static void arguments(void)
{
	struct csync_host h = everything();

	errno = 0;
	assert_int_equal(csync_host_register(NULL), -1);
	assert_int_equal(errno, EINVAL);
	for (h.size = 0; h.size < sizeof(size_t); h.size++) {
		errno = 0;
		assert_int_equal(csync_host_register(&h), -1);
		assert_int_equal(errno, EINVAL);
	}
	/* what was refused is not registered */
	h.size = sizeof(h);
	assert_int_equal(csync_host_register(&h), 0);
}

static void once(void)
{
	struct csync_host h = everything();

	registered(h);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		assert_int_equal(csync_host_register(&h), -1);
		assert_int_equal(errno, EBUSY);
	}
	errno = 0;
	assert_int_equal(csync_host_register(NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void the_functions_of_rsync_c(void)
{
	struct bytes b = bytes_random(50001, 1), made;
	FILE *f;

	registered(everything());
	write_file("d/f", b);
	csync_rs_sig("f");
	assert_bytes(unframed(arrived(my.e.in[1])), peer_signature(b));
	feed(my.e.out[1], framed(peer_signature(b)));
	assert_int_equal(csync_rs_check("f", 1), 0);
	feed(my.e.out[1], framed(peer_no_signature()));
	assert_int_equal(csync_rs_delta("f"), 0);
	assert_int_equal(peer_patch(bytes_text(""), unframed(arrived(my.e.in[1])), &made), 0);
	assert_bytes(made, b);
	feed(my.e.out[1], framed(peer_delta(peer_signature(b), bytes_text("new"))));
	assert_int_equal(csync_rs_patch("f"), 0);
	assert_file("d/f", bytes_text("new"));
	f = file_of(bytes_text("hello"), "r+");
	csync_send_file(f);
	assert_bytes(arrived(my.e.in[1]), bytes_text("octet-stream 5\nhello"));
	feed_line(my.e.out[1], "octet-stream 3\nxyz");
	rewind(f);
	assert_int_equal(csync_recv_file(f), 0);
	fclose(f);
	assert_int_equal(csync_rs_sigfile("f", &f), 0);
	assert_non_null(f);
	fclose(f);
	/* it goes ahead of csync2's own symbols, which are there as well */
	assert_int_equal(host.writes + host.raw_reads + host.messages, 0);
	assert_true(my.reads > 0 && my.writes > 0);
	assert_int_equal(my.above, 0);
	assert_int_equal(my.closes + my.fatals, 0);
}

static void errors_go_to_its_log(void)
{
	registered(everything());
	feed_line(my.e.out[1], "ERROR\n");
	errno = 0;
	assert_int_equal(csync_rs_patch("f"), -1);
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(my.log, "0 ERROR"));
	assert_non_null(strstr(my.log, "f"));
	assert_int_equal(host.messages, 0);
}

/* A stream that says a length and fails on the way. */
static struct {
	off64_t at, length, readable;
} failing;

static ssize_t fail_read(void *cookie, char *buffer, size_t count)
{
	(void)cookie;
	if (failing.at >= failing.readable) {
		errno = EIO;
		return -1;
	}
	if ((off64_t)count > failing.readable - failing.at)
		count = failing.readable - failing.at;
	memset(buffer, 'x', count);
	failing.at += count;
	return count;
}

static int fail_seek(void *cookie, off64_t *offset, int whence)
{
	(void)cookie;
	failing.at = *offset + (whence == SEEK_END ? failing.length : whence == SEEK_CUR ? failing.at : 0);
	*offset = failing.at;
	return 0;
}

static FILE *failing_stream(off64_t length, off64_t readable)
{
	cookie_io_functions_t io = { .read = fail_read, .seek = fail_seek };
	FILE *f = fopencookie(NULL, "r", io);

	assert_non_null(f);
	failing.at = 0;
	failing.length = length;
	failing.readable = readable;
	return f;
}

/* A header, some of what it announces, and nothing else. */
static void check_unfinished(void)
{
	struct bytes sent = arrived(my.e.in[1]), head = bytes_text("octet-stream 200000\n");

	assert_true(sent.n > head.n && sent.n <= head.n + 100000);
	assert_bytes(bytes_part(sent, 0, head.n), head);
	assert_bytes(bytes_part(sent, head.n, sent.n), bytes_fill(sent.n - head.n, 'x'));
	assert_int_equal(my.closes, 1);
	assert_int_equal(my.closes_before_fatal, 1);
	assert_int_equal(my.fatals, 1);
	assert_true(strlen(my.fatal) > 0);
	assert_non_null(strstr(my.log, "0 ERROR: Input/output error in the middle of sending data in csync_send_file"));
	/* the host's own, and not csync2's, which are there as well */
	assert_int_equal(host.closed + host.messages, 0);
}

/* A payload that cannot be completed: the connection is closed first. */
static void a_send_that_cannot_be_completed(void)
{
	FILE *f = failing_stream(200000, 100000);

	registered(everything());
	csync_send_file(f);
	fclose(f);
	check_unfinished();
}

static jmp_buf out_of_it;

static void jumping_fatal(void *userdata, const char *message)
{
	my_fatal(userdata, message);
	longjmp(out_of_it, 1);
}

/* A host may leave by a jump, and go on. */
static void a_fatal_that_does_not_return(void)
{
	struct csync_host h = everything();
	FILE *f = failing_stream(200000, 100000), *good = file_of(bytes_text("hello"), "r+");

	h.fatal = jumping_fatal;
	registered(h);
	if (!setjmp(out_of_it)) {
		csync_send_file(f);
		fail_msg("the jump did not lead here");
	}
	check_unfinished();
	fclose(f);
	csync_send_file(good);
	assert_bytes(arrived(my.e.in[1]), bytes_text("octet-stream 5\nhello"));
	fclose(good);
}

static void exiting_fatal(void *userdata, const char *message)
{
	my_fatal(userdata, message);
	check_unfinished();
	exit(0);
}

static void a_fatal_that_exits(void)
{
	struct csync_host h = everything();

	h.fatal = exiting_fatal;
	registered(h);
	csync_send_file(failing_stream(200000, 100000));
	fail_msg("the program goes on");
}

/* Without the two members nothing more can be done than to say so. */
static void a_host_without_a_way_to_end(void)
{
	struct csync_host h = everything();
	FILE *f = failing_stream(200000, 100000);

	h.fatal = NULL;
	h.close = NULL;
	registered(h);
	csync_send_file(f);
	fclose(f);
	assert_non_null(strstr(my.log, "in the middle of sending data"));
	assert_int_equal(my.closes + my.fatals + host.closed, 0);
}

/* Where nothing has left yet, there is a word for it. */
static void a_send_that_cannot_begin(void)
{
	FILE *f = failing_stream(200000, 0);

	registered(everything());
	csync_send_file(f);
	fclose(f);
	assert_bytes(arrived(my.e.in[1]), bytes_text("ERROR\n"));
	assert_int_equal(my.closes + my.fatals, 0);
	assert_non_null(strstr(my.log, "0 ERROR: Input/output error while reading data to be sent"));
}

static void members_that_are_null(void)
{
	struct csync_host h = { .size = sizeof(h) };
	FILE *f = file_of(bytes_text("hello"), "r+");

	registered(h);
	write_file("d/f", bytes_text("content"));
	errno = 0;
	assert_int_equal(csync_rs_check("d/f", 1), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(csync_rs_delta("d/f"), -1);
	assert_int_equal(csync_rs_patch("d/f"), -1);
	csync_rs_sig("d/f");
	csync_send_file(f);
	assert_int_equal(csync_recv_file(f), -1);
	fclose(f);
	/* names are paths where there is no mapping, and no connection is needed for this one */
	assert_int_equal(csync_rs_sigfile("d/f", &f), 0);
	assert_non_null(f);
	fclose(f);
	assert_int_equal(host.writes + host.raw_reads, 0);

	csync_engine *engine = NULL;
	assert_int_equal(csync_engine_over_host(NULL, &engine), CSYNC_OK);
	assert_failed(engine, csync_engine_signature(engine, "d/f"), CSYNC_E_CONNECTION, ENOTCONN, "sending", "d/f");
	csync_engine_free(engine);
}

/* An older program's structure ends after `write`. */
static void a_smaller_structure(void)
{
	struct csync_host h = everything();

	h.size = offsetof(struct csync_host, close);
	struct csync_host *exact = malloc(h.size);
	memcpy(exact, &h, h.size);
	my.e = ends_make(UNIX_SOCKETS, 0);
	host_reset();
	assert_int_equal(csync_host_register(exact), 0);
	free(exact);
	write_file("d/f", bytes_text("content"));
	csync_rs_sig("d/f");
	assert_bytes(unframed(arrived(my.e.in[1])), peer_signature(bytes_text("content")));
	feed_line(my.e.out[1], "ERROR\n");
	assert_int_equal(csync_rs_patch("d/f"), -1);
	assert_string_equal(my.log, "");
}

static void a_larger_structure(void)
{
	struct {
		struct csync_host h;
		char later[100];
	} newer;

	memset(&newer, 0x5a, sizeof(newer));
	newer.h = everything();
	newer.h.size = sizeof(newer);
	registered(newer.h);
	csync_rs_sig("none");
	assert_bytes(unframed(arrived(my.e.in[1])), peer_no_signature());
}

static void the_temporary_directory_is_copied(void)
{
	struct csync_host h = everything();
	char *where = strdup("t/none");

	h.temp_dir = where;
	registered(h);
	memset(where, 'x', strlen(where));
	free(where);
	feed(my.e.out[1], framed(peer_delta(peer_no_signature(), bytes_text("new"))));
	/* it is not there: staged beside the target, and said so */
	assert_int_equal(csync_rs_patch("f"), 0);
	assert_file("d/f", bytes_text("new"));
	assert_non_null(strstr(my.log, "t/none"));
}

static void an_engine_over_it(void)
{
	csync_engine *engine = NULL;

	registered(everything());
	write_file("d/f", bytes_text("content"));
	assert_int_equal(csync_engine_over_host(NULL, &engine), CSYNC_OK);
	assert_ok(engine, csync_engine_signature(engine, "d/f"));
	assert_bytes(unframed(arrived(my.e.in[1])), peer_signature(bytes_text("content")));
	csync_engine_free(engine);
	assert_int_equal(host.writes, 0);
	assert_int_equal(my.closes, 0);
}

static void owners_are_left_alone(void)
{
	struct csync_host h = everything();
	struct stat st;

	h.ignore_uid = h.ignore_gid = 1;
	registered(h);
	write_file("d/f", bytes_text("old"));
	if (chown("d/f", 12345, 12346))
		ct_skip("not root");
	feed(my.e.out[1], framed(peer_delta(peer_signature(bytes_text("old")), bytes_text("new"))));
	assert_int_equal(csync_rs_patch("f"), 0);
	assert_int_equal(stat("d/f", &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_gid, getegid());
}

static const struct ct_case cases[] = {
	OURS(arguments),
	OURS(once),
	OURS(the_functions_of_rsync_c),
	OURS(errors_go_to_its_log),
	OURS(a_send_that_cannot_be_completed),
	OURS(a_fatal_that_does_not_return),
	OURS(a_fatal_that_exits),
	OURS(a_host_without_a_way_to_end),
	OURS(a_send_that_cannot_begin),
	OURS(members_that_are_null),
	OURS(a_smaller_structure),
	OURS(a_larger_structure),
	OURS(the_temporary_directory_is_copied),
	OURS(an_engine_over_it),
	OURS(owners_are_left_alone),
};
CT_MAIN("test_host_register", cases)
