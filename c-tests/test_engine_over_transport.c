/* csync_engine_over_transport: what a transport of functions may do, and what it must. */
#include "laws.h"
#include "peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void refused(const struct csync_transport *t, const struct csync_options *o)
{
	csync_engine *engine = (csync_engine *)0x10;

	assert_int_equal(csync_engine_over_transport(t, o, &engine), CSYNC_E_ARGUMENT);
	assert_null(engine);
}

static void null_arguments(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct csync_transport good = wire_functions(&w), t = good;
	struct csync_options o = options_none();

	refused(NULL, NULL);
	assert_int_equal(csync_engine_over_transport(NULL, NULL, NULL), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_engine_over_transport(&good, NULL, NULL), CSYNC_E_ARGUMENT);
	t.read = NULL;
	refused(&t, NULL);
	t = good;
	t.write = NULL;
	refused(&t, NULL);
	for (size_t size = 0; size < sizeof(size_t); size++) {
		t = good;
		t.size = size;
		refused(&t, NULL);
		o.size = size;
		refused(&good, &o);
	}
}

/* A good call over a transport of this size, of which exactly that much is readable. */
static void with_size(size_t size, int expect_limit)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct csync_transport whole = wire_functions(&w), *exact = malloc(size);
	csync_engine *engine = NULL;

	w.limit = 100;
	whole.size = size;
	memset(exact, 0x5a, size);
	memcpy(exact, &whole, size < sizeof(whole) ? size : sizeof(whole));
	if (size < offsetof(struct csync_transport, write) + sizeof(whole.write)) {
		refused(exact, NULL);
	} else {
		assert_int_equal(csync_engine_over_transport(exact, NULL, &engine), CSYNC_OK);
		memset(exact, 0x5a, size);
		free(exact);
		exact = NULL;
		write_file("d/f", bytes_random(50000, 1));
		assert_ok(engine, csync_engine_signature(engine, "d/f"));
		assert_int_equal(w.largest == 100, expect_limit);
		assert_bytes(unframed(arrived(e.in[1])), peer_signature(bytes_random(50000, 1)));
		csync_engine_free(engine);
	}
	free(exact);
	ends_close(&e, 0);
	ends_close(&e, 1);
}

static void structs_of_every_size(void)
{
	size_t limit_end = offsetof(struct csync_transport, max_payload) + sizeof(void *);

	for (size_t size = sizeof(size_t); size <= sizeof(struct csync_transport) + 40; size += 8)
		with_size(size, size >= limit_end);
}

static void a_call_flushes_when_the_peer_is_waited_for(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct call push = { .verb = CSYNC_PUSH, .path = "d/f" };

	w.holds_back = 1;
	csync_engine *engine = engine_over(&w, NULL), *peer = engine_on(&e, 1, NULL);
	struct calls ours = { .engine = engine, .calls = &push, .count = 1 };
	write_file("d/f", bytes_random(50000, 1));
	calls_start(&ours);
	assert_ok(peer, csync_engine_pull(peer, "d/t"));
	calls_join(&ours);
	assert_ok(engine, push.status);
	assert_true(w.flushes > 0);
	assert_int_equal(w.held_len, 0);
	assert_file("d/t", bytes_random(50000, 1));
	csync_engine_free(engine);
	csync_engine_free(peer);
	wire_free(&w);
}

/* A transport that answers by a table. */
struct odd {
	ssize_t read, write;
	int err, flush;
	unsigned calls;
};

static ssize_t odd_read(void *userdata, void *buffer, size_t count)
{
	struct odd *o = userdata;
	(void)buffer, (void)count;
	o->calls++;
	errno = o->err;
	return o->read;
}

static ssize_t odd_write(void *userdata, const void *buffer, size_t count)
{
	struct odd *o = userdata;
	(void)buffer;
	o->calls++;
	errno = o->err;
	return o->write == 1000000 ? (ssize_t)count + 5 : o->write;
}

static int odd_flush(void *userdata)
{
	struct odd *o = userdata;
	errno = o->flush ? o->err : 0;
	return o->flush;
}

static void errors_end_the_call(void)
{
	static const struct {
		struct odd odd;
		int sends, err;
	} rows[] = {
		{ { .read = -1, .err = EIO }, 0, EIO },
		{ { .read = -1, .err = ETIMEDOUT }, 0, ETIMEDOUT },
		{ { .read = -1, .err = EBADF }, 0, EBADF },
		{ { .read = -1, .err = 0 }, 0, ECONNRESET },
		{ { .read = 0 }, 0, ECONNRESET },
		{ { .write = -1, .err = EPIPE }, 1, EPIPE },
		{ { .write = -1, .err = 0 }, 1, ECONNRESET },
		{ { .write = 0 }, 1, ECONNRESET },
		{ { .write = 1000000, .flush = -1, .err = ENOBUFS }, 1, ENOBUFS },
		{ { .write = 1000000, .flush = -1, .err = 0 }, 1, EIO },
		{ { .write = 1000000, .flush = 1, .err = 0 }, 1, EIO },
	};

	write_file("d/f", bytes_text("content"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct odd odd = rows[i].odd;
		struct csync_transport t = { .size = sizeof(t), .userdata = &odd, .read = odd_read, .write = odd_write,
			.flush = odd_flush };
		csync_engine *engine = NULL;
		int differs;
		assert_int_equal(csync_engine_over_transport(&t, NULL, &engine), CSYNC_OK);
		csync_status status = rows[i].sends ? csync_engine_signature(engine, "d/f") : csync_engine_check(engine, "d/f", &differs);
		assert_failed(engine, status, CSYNC_E_CONNECTION, rows[i].err, "connection", rows[i].sends ? "sending" : "receiving",
			      "d/f");
		assert_true(odd.calls < 20);
		unsigned before = odd.calls;
		assert_failed(engine, csync_engine_signature(engine, "d/f"), CSYNC_E_STATE, ENOTCONN, "earlier call");
		assert_int_equal(odd.calls, before);
		csync_engine_free(engine);
	}
}

/* More than was asked for: counted as what was asked for. */
static void a_write_that_claims_too_much(void)
{
	struct odd odd = { .write = 1000000 };
	struct csync_transport t = { .size = sizeof(t), .userdata = &odd, .read = odd_read, .write = odd_write };
	csync_engine *engine = NULL;

	write_file("d/f", bytes_random(50000, 1));
	assert_int_equal(csync_engine_over_transport(&t, NULL, &engine), CSYNC_OK);
	assert_ok(engine, csync_engine_signature(engine, "d/f"));
	csync_engine_free(engine);
}

static ssize_t generous_read(void *userdata, void *buffer, size_t count)
{
	static const char line[] = "octet-stream 5\nhello";
	size_t *at = userdata;

	if (*at == strlen(line))
		return 0;
	memcpy(buffer, line + *at, count < strlen(line) - *at ? count : strlen(line) - *at);
	*at += count;
	return count + 1000;
}

static void a_read_that_claims_too_much(void)
{
	size_t at = 0;
	struct csync_transport t = { .size = sizeof(t), .userdata = &at, .read = generous_read, .write = odd_write };
	csync_engine *engine = NULL;
	uint64_t length = 0;
	int fd = open("d/out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(csync_engine_over_transport(&t, NULL, &engine), CSYNC_OK);
	assert_ok(engine, csync_engine_receive(engine, fd, &length));
	assert_int_equal(length, 5);
	assert_file("d/out", bytes_text("hello"));
	csync_engine_free(engine);
	close(fd);
}

/* The chunk of the options is one more limit. */
static void the_smaller_of_chunk_and_limit(void)
{
	static const size_t rows[][3] = { { 100, 50, 50 }, { 50, 100, 50 }, { 0, 77, 77 }, { 33, SIZE_MAX, 33 }, { 1, 1, 1 },
		{ SIZE_MAX, 64, 64 }, { 0, SIZE_MAX, 0 } };

	write_file("d/f", bytes_random(5000, 1));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ends e = ends_make(UNIX_SOCKETS, 0);
		struct wire w = wire_on(&e, 0);
		struct csync_options o = options_none();
		o.chunk = rows[i][0];
		w.limit = rows[i][1];
		csync_engine *engine = engine_over(&w, &o);
		assert_ok(engine, csync_engine_signature(engine, "d/f"));
		if (rows[i][2])
			assert_int_equal(w.largest, rows[i][2]);
		assert_bytes(unframed(arrived(e.in[1])), peer_signature(bytes_random(5000, 1)));
		csync_engine_free(engine);
		ends_close(&e, 0);
		ends_close(&e, 1);
	}
}

static const struct ct_case cases[] = {
	OURS(null_arguments),
	OURS(structs_of_every_size),
	OURS(a_call_flushes_when_the_peer_is_waited_for),
	OURS(errors_end_the_call),
	OURS(a_write_that_claims_too_much),
	OURS(a_read_that_claims_too_much),
	OURS(the_smaller_of_chunk_and_limit),
};
CT_MAIN("test_engine_over_transport", cases)
