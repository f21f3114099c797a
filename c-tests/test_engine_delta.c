/* csync_engine_delta: the peer's signature is read, and exactly one thing is sent: a delta, or ERROR. */
#include "laws.h"
#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_kind_of_edit(void)
{
	struct bytes basis = bytes_random(60001, 1);
	struct bytes edits[] = {
		bytes_part(basis, 0, basis.n),
		bytes_part(basis, 0, 20000),
		bytes_join(bytes_random(777, 2), bytes_part(basis, 0, basis.n)),
		bytes_join(bytes_part(basis, 30000, 30001), bytes_part(basis, 0, 30000)),
		bytes_random(50001, 3),
		bytes_text(""),
		bytes_text("x"),
	};
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++)
		for (int with_basis = 0; with_basis < 2; with_basis++) {
			struct bytes of = with_basis ? basis : bytes_text(""), made;
			write_file("d/f", edits[i]);
			feed(s.e.out[1], framed(with_basis ? peer_signature(of) : peer_no_signature()));
			assert_ok(s.engine, csync_engine_delta(s.engine, "d/f"));
			assert_int_equal(peer_patch(of, unframed(arrived(s.e.in[1])), &made), 0);
			assert_bytes(made, edits[i]);
		}
	scene_end(&s);
}

/* Both are in step after each: the peer got ERROR, and the next delta is a good one. */
static void refused(struct scene *s, const char *path, struct bytes sent, csync_status status, int err, const char *text)
{
	struct bytes made;

	feed(s->e.out[1], sent);
	assert_failed(s->engine, csync_engine_delta(s->engine, path), status, err, text, path);
	assert_string_equal((char *)arrived(s->e.in[1]).p, "ERROR\n");
	feed(s->e.out[1], framed(peer_no_signature()));
	assert_ok(s->engine, csync_engine_delta(s->engine, "d/f"));
	assert_int_equal(peer_patch(bytes_text(""), unframed(arrived(s->e.in[1])), &made), 0);
	assert_bytes(made, bytes_text("content"));
}

static void what_cannot_be_sent(void)
{
	static const struct {
		const char *path;
		int err;
	} rows[] = { { "d/none", ENOENT }, { "", ENOENT }, { "d/link", ELOOP }, { "d", EISDIR }, { "d/fifo", EINVAL },
		     { "d/f/below", ENOENT } };
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("content"));
	assert_int_equal(symlink("f", "d/link") | mkfifo("d/fifo", 0600), 0);
	for (size_t i = 0; i < 5; i++)
		refused(&s, rows[i].path, framed(peer_signature(bytes_text("old"))), CSYNC_E_FILE, rows[i].err,
			strerror(rows[i].err));
	scene_end(&s);
}

static void what_may_not_be_read(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);

	write_file("d/f", bytes_text("content"));
	write_file("d/secret", bytes_text("secret"));
	assert_int_equal(chmod("d/secret", 0), 0);
	become_nobody();
	refused(&s, "d/secret", framed(peer_signature(bytes_text("old"))), CSYNC_E_FILE, EACCES, strerror(EACCES));
	scene_end(&s);
}

static void what_the_peer_should_not_send(void)
{
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	struct bytes cut = peer_signature(bytes_random(10000, 1));

	write_file("d/f", bytes_text("content"));
	refused(&s, "d/f", bytes_text("ERROR\n"), CSYNC_E_PEER, EIO, "peer reports an error");
	refused(&s, "d/f", bytes_text("octet-stream -1\n"), CSYNC_E_PEER, EIO, "peer reports an error");
	refused(&s, "d/f", bytes_text("No space left on device\n"), CSYNC_E_FORMAT, EIO, "No space left on device");
	refused(&s, "d/f", framed(bytes_text("this is no signature at all")), CSYNC_E_FORMAT, EBADMSG, "bad signature");
	refused(&s, "d/f", framed(bytes_text("rs")), CSYNC_E_FORMAT, EBADMSG, "bad signature");
	refused(&s, "d/f", framed(bytes_part(cut, 0, cut.n - 1)), CSYNC_E_FORMAT, EBADMSG, "bad signature");
	scene_end(&s);
}

static void change_it(void *userdata, int level, const char *message)
{
	(void)userdata, (void)level;
	if (strstr(message, "Sending the delta"))
		append_file("d/f", bytes_text("more"));
}

/* What was read has been sent, and the file must be tried again. */
static void a_file_that_changes(void)
{
	struct csync_options o = options_none();
	struct bytes b = bytes_random(50000, 1), made;

	o.log = change_it;
	struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
	write_file("d/f", b);
	feed(s.e.out[1], framed(peer_no_signature()));
	assert_failed(s.engine, csync_engine_delta(s.engine, "d/f"), CSYNC_E_CHANGED, EAGAIN, "d/f", "changed");
	assert_int_equal(peer_patch(bytes_text(""), unframed(arrived(s.e.in[1])), &made), 0);
	assert_bytes(made, b);
	scene_end(&s);
}

struct fed {
	int fd;
	struct bytes b;
};

static void *run_feed(void *arg)
{
	struct fed *f = arg;

	for (size_t at = 0; at < f->b.n;) {
		ssize_t n = write(f->fd, f->b.p + at, f->b.n - at);
		if (n <= 0)
			break;
		at += n;
	}
	return NULL;
}

/* A signature whose index does not fit the memory. */
static void too_little_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
	ct_skip("no limit of the address space under AddressSanitizer");
#endif
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 0);
	size_t n = 12 + 20 * (size_t)2000000;
	struct bytes sig = bytes_random(n, 1);
	struct call c = { .verb = CSYNC_DELTA, .path = "d/f" };
	pthread_t feeder;
	struct rlimit before, limit;
	unsigned long pages = 0;

	memcpy(sig.p, "rs\0016\0\0\010\0\0\0\0\020", 12);
	struct fed fed = { s.e.out[1], framed(sig) };
	write_file("d/f", bytes_text("content"));
	/* The peer is the thread: what a thread may allocate is set aside for it, beyond any limit. */
	thread_start(&feeder, run_feed, &fed);
	FILE *f = fopen("/proc/self/statm", "r");
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	getrlimit(RLIMIT_AS, &before);
	limit = before;
	limit.rlim_cur = pages * 4096 + (12 << 20);
	setrlimit(RLIMIT_AS, &limit);
	call_now(s.engine, &c);
	setrlimit(RLIMIT_AS, &before);
	pthread_join(feeder, NULL);
	assert_failed(s.engine, c.status, CSYNC_E_MEMORY, ENOMEM, "d/f");
	assert_string_equal((char *)arrived(s.e.in[1]).p, "ERROR\n");
	scene_end(&s);
}

static unsigned reports;

static int no_at_the_third(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)userdata, (void)verb, (void)done, (void)announced;
	return ++reports == 3;
}

/* A search takes long, and the connection has no part in it: 1 TiB of zeroes, and a basis without any. */
static void cancelled_while_the_delta_is_found(void)
{
	for (int i = 0; i < 4; i++) {
		struct csync_options o = options_none();
		struct call c = { .verb = i / 2 ? CSYNC_PUSH : CSYNC_DELTA, .path = "d/f" };
		pthread_t t;

		if (i % 2)
			o.progress = no_at_the_third;
		reports = 0;
		struct scene s = scene_of(UNIX_SOCKETS, &o, 0);
		write_file("d/f", bytes_text("x"));
		assert_int_equal(truncate("d/f", 1ll << 40), 0);
		feed(s.e.out[1], framed(peer_signature(bytes_random(5000, 1))));
		if (!(i % 2))
			thread_start(&t, cancel_soon, s.engine);
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED,
			      i / 2 ? "push cancelled while finding the delta: d/f" : "delta cancelled while finding the delta: d/f");
		if (!(i % 2))
			pthread_join(t, NULL);
		assert_int_equal(arrived(s.e.in[1]).n, 0);
		assert_failed(s.engine, csync_engine_delta(s.engine, "d/f"), CSYNC_E_STATE, ENOTCONN, "earlier call");
		scene_end(&s);
	}
}

static const struct ct_case cases[] = {
	LAWS(CSYNC_DELTA),
	OURS(cancelled_while_the_delta_is_found),
	OURS(every_kind_of_edit),
	OURS(what_cannot_be_sent),
	OURS(what_may_not_be_read),
	OURS(what_the_peer_should_not_send),
	OURS(a_file_that_changes),
	OURS_F(too_little_memory, CT_LARGE),
};
CT_MAIN("test_engine_delta", cases)
