#include "laws.h"
#include "peer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static enum csync_verb verb(void)
{
	return *(const enum csync_verb *)ct_arg;
}

static int sends_first(void)
{
	return verb() == CSYNC_SEND || verb() == CSYNC_SIGNATURE || verb() == CSYNC_PULL;
}

static int writes(void)
{
	return sends_first() || verb() == CSYNC_DELTA || verb() == CSYNC_PUSH;
}

static int reads(void)
{
	return verb() != CSYNC_SEND && verb() != CSYNC_SIGNATURE;
}

/* What d/f holds: long enough for sendfile where it is sent. */
static struct bytes content(void)
{
	return bytes_random(400001, 1);
}

static struct bytes basis(void)
{
	return bytes_join(bytes_random(300, 2), bytes_part(content(), 4000, 300000));
}

static struct bytes newer(void)
{
	struct bytes c = content(), all = bytes_join(bytes_part(c, 0, 200000), bytes_random(500, 3));
	return bytes_join(all, bytes_part(c, 200000, c.n));
}

/* The file is there, and the verb's arguments. */
static struct call prepared(void)
{
	struct call c = { .verb = verb(), .path = "d/f" };

	write_file("d/f", content());
	if (verb() == CSYNC_SEND)
		c.descriptor = open("d/f", O_RDONLY | O_CLOEXEC);
	if (verb() == CSYNC_RECEIVE)
		c.descriptor = open("d/out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return c;
}

/* What the peer sends during a good call. */
static struct bytes peers_part(void)
{
	switch (verb()) {
	case CSYNC_RECEIVE: return framed(newer());
	case CSYNC_CHECK: return framed(peer_signature(content()));
	case CSYNC_DELTA: return framed(peer_signature(basis()));
	case CSYNC_PUSH: return bytes_join(framed(peer_signature(basis())), bytes_text("octet-stream 0\n"));
	case CSYNC_PATCH:
	case CSYNC_PULL: return framed(peer_delta(peer_signature(content()), newer()));
	default: return bytes_text("");
	}
}

/* What a good call has made of the files, and what it sent. */
static void check_result(const struct call *c, struct bytes sent)
{
	struct bytes made;

	switch (verb()) {
	case CSYNC_SEND:
		assert_bytes(unframed(sent), content());
		assert_int_equal(lseek(c->descriptor, 0, SEEK_CUR), 0);
		return;
	case CSYNC_RECEIVE:
		assert_file("d/out", newer());
		assert_int_equal(c->length, newer().n);
		break;
	case CSYNC_SIGNATURE:
		assert_bytes(unframed(sent), peer_signature(content()));
		return;
	case CSYNC_CHECK:
		assert_int_equal(c->differs, 0);
		break;
	case CSYNC_DELTA:
	case CSYNC_PUSH:
		assert_int_equal(peer_patch(basis(), unframed(sent), &made), 0);
		assert_bytes(made, content());
		return;
	case CSYNC_PATCH:
		assert_file("d/f", newer());
		break;
	case CSYNC_PULL:
		assert_file("d/f", newer());
		assert_true(sent.n > 15 && !memcmp(sent.p + sent.n - 15, "octet-stream 0\n", 15));
		assert_bytes(unframed(bytes_part(sent, 0, sent.n - 15)), peer_signature(content()));
		return;
	}
	assert_int_equal(sent.n, 0);
}

/* After an error: the old file, and nothing new. */
static void nothing_changed(void)
{
	assert_file("d/f", content());
	assert_int_equal(names_with("d", "f"), 1);
}

/* A call that this side has ended says which and when, and blames no connection. */
static void our_own_end(csync_engine *engine, const char *what)
{
	static const char *const names[] = { "", "send", "receive", "signature", "check", "delta", "patch", "push", "pull" };
	const char *text = csync_engine_error(engine);
	char front[60];

	snprintf(front, sizeof(front), "%s %s while ", names[verb()], what);
	if (strncmp(text, front, strlen(front)) || strstr(text, "connection"))
		fail_msg("`%s` does not begin with `%s`", text, front);
}

/* The name that an error says. */
static const char *said_name(void)
{
	return verb() == CSYNC_SEND || verb() == CSYNC_RECEIVE ? "(descriptor)" : "d/f";
}

static void unusable(csync_engine *engine)
{
	struct call c = prepared();

	c.differs = 77;
	assert_failed(engine, call_now(engine, &c), CSYNC_E_STATE, ENOTCONN, "earlier call");
	assert_int_equal(c.differs, 77);
	assert_true(c.seconds < 0.5);
	if (c.descriptor)
		close(c.descriptor);
}

struct scene scene_of(enum ends_kind kind, const struct csync_options *options, int with_sink)
{
	struct scene s = { .e = ends_make(kind, 0) };

	s.engine = engine_on(&s.e, 0, options);
	if (with_sink)
		s.sink = sink_start(s.e.in[1]);
	return s;
}

struct bytes scene_end(struct scene *s)
{
	struct bytes sent = bytes_text("");

	csync_engine_free(s->engine);
	if (s->sink) {
		/* The peer's reading thread sees the end first. */
		shutdown(s->e.out[0], SHUT_WR);
		ends_close(&s->e, 0);
		bytes_free(sent);
		sent = sink_join(s->sink);
		s->sink = NULL;
	}
	ends_close(&s->e, 0);
	ends_close(&s->e, 1);
	return sent;
}

struct feeding {
	int fd;
	struct bytes b;
};

static void *run_feed(void *arg)
{
	struct feeding *f = arg;
	size_t at = 0;

	while (at < f->b.n) {
		ssize_t n = send(f->fd, f->b.p + at, f->b.n - at, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(f->fd, f->b.p + at, f->b.n - at);
		if (n <= 0)
			break;
		at += n;
	}
	return NULL;
}

/* A call while the peer sends its part and takes ours. */
static struct bytes good_call(struct scene *s, struct call *c)
{
	struct feeding f = { s->e.out[1], peers_part() };
	pthread_t feeder;

	thread_start(&feeder, run_feed, &f);
	assert_ok(s->engine, call_now(s->engine, c));
	pthread_join(feeder, NULL);
	return scene_end(s);
}

void law_a_good_call(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct call c = prepared();
		struct scene s = scene_of(kind, NULL, 1);
		check_result(&c, good_call(&s, &c));
		if (c.descriptor)
			close(c.descriptor);
	}
}

void law_null_arguments(void)
{
	struct call c = prepared(), null = c;
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 1);

	assert_int_equal(call_now(NULL, &c), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_engine_errno(NULL), EINVAL);
	assert_string_equal(csync_engine_error(NULL), "");
	if (!c.descriptor) {
		null.path = NULL;
		assert_failed(s.engine, call_now(s.engine, &null), CSYNC_E_ARGUMENT, EINVAL, "path", "NULL");
	}
	/* the engine is as good as before */
	check_result(&c, good_call(&s, &c));
}

void law_a_peer_that_is_gone(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct call c = prepared();
		struct scene s = scene_of(kind, NULL, 0);

		ends_close(&s.e, 1);
		if (kind == TCP_SOCKETS && !reads()) {
			scene_end(&s); /* the kernel takes it all */
			continue;
		}
		call_now(s.engine, &c);
		int err = c.err;
		assert_true(err == ECONNRESET || err == EPIPE);
		assert_failed(s.engine, c.status, CSYNC_E_CONNECTION, err, "connection",
			      sends_first() && kind != TCP_SOCKETS ? "sending" : "ing", said_name());
		nothing_changed();
		unusable(s.engine);
		scene_end(&s);
	}
}

void law_a_peer_that_goes_midway(void)
{
	for (int kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct call c = prepared();
		struct scene s = scene_of(kind, NULL, 0);
		struct bytes part = peers_part();

		if (!writes())
			part = bytes_part(part, 0, part.n / 2);
		if (part.n > 60000)
			part = bytes_part(part, 0, 60000);
		feed(s.e.out[1], part);
		ends_close(&s.e, 1);
		call_now(s.engine, &c);
		int err = c.err;
		assert_true(err == ECONNRESET || err == EPIPE);
		assert_failed(s.engine, c.status, CSYNC_E_CONNECTION, err, "connection", writes() ? "sending" : "receiving",
			      said_name());
		nothing_changed();
		unusable(s.engine);
		scene_end(&s);
	}
}

/* A scene in which the verb waits for its peer: for input, or for room in a buffer that is too small for what it sends. */
static struct scene waiting_scene(struct call *c, const struct csync_options *options, int kind)
{
	struct scene s = { .e = ends_make(kind, 4096) };

	*c = prepared();
	if (!reads())
		assert_int_equal(truncate("d/f", 1 << 30), 0); /* a pipe takes large pages of a file by the slot */
	s.engine = engine_on(&s.e, 0, options);
	return s;
}

void law_a_silent_peer_is_given_up(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct csync_options o = options_none();
		struct call c;

		o.silence_limit = 300;
		struct scene s = waiting_scene(&c, &o, kind);
		if (!reads() && kind == TCP_SOCKETS) {
			scene_end(&s); /* the kernel takes megabytes there */
			continue;
		}
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_TIMEOUT, ETIMEDOUT, "timed out",
			      reads() ? "receiving" : "sending", said_name());
		our_own_end(s.engine, "timed out");
		assert_true(c.seconds > 0.29 && c.seconds < 60); /* valgrind takes its time */
		assert_int_equal(names_with("d", "f"), 1);
		unusable(s.engine);
		scene_end(&s);
		if (c.descriptor)
			close(c.descriptor);
	}
}

/* EINTR or EAGAIN for ever is silence as well. */
void law_interruptions_without_end(void)
{
	static const int refusals[] = { EINTR, EAGAIN };

	for (int i = 0; i < 4; i++) {
		struct csync_options o = options_none();
		struct ends e = ends_make(UNIX_SOCKETS, 0);
		struct wire w = wire_on(&e, 0);
		struct call c = prepared();

		o.silence_limit = 300;
		w.refuse_reads = w.refuse_writes = UINT32_MAX;
		w.refusal = refusals[i % 2];
		w.waits_itself = i / 2;
		csync_engine *engine = engine_over(&w, &o);
		assert_failed(engine, call_now(engine, &c), CSYNC_E_TIMEOUT, ETIMEDOUT, "timed out", said_name());
		our_own_end(engine, "timed out");
		assert_true(c.seconds > 0.29 && c.seconds < 60); /* valgrind takes its time */
		nothing_changed();
		unusable(engine);
		csync_engine_free(engine);
		ends_close(&e, 0);
		ends_close(&e, 1);
		if (c.descriptor)
			close(c.descriptor);
	}
}

/* Over a transport of functions; the peer's part is fed beforehand or by a thread. */
static void good_call_over(struct wire *w, struct ends *e, const struct csync_options *o, struct call *c)
{
	struct feeding f = { e->out[1], peers_part() };
	pthread_t feeder;
	struct sink *sink;
	csync_engine *engine = engine_over(w, o);

	sink = sink_start(e->in[1]);
	thread_start(&feeder, run_feed, &f);
	assert_ok(engine, call_now(engine, c));
	assert_int_equal(w->above, 0);
	pthread_join(feeder, NULL);
	csync_engine_free(engine);
	shutdown(e->out[0], SHUT_WR);
	ends_close(e, 0);
	check_result(c, sink_join(sink));
	ends_close(e, 1);
	wire_free(w);
}

void law_refusals_and_interruptions(void)
{
	static const int refusals[] = { EINTR, EAGAIN };

	for (int i = 0; i < 4; i++) {
		struct ends e = ends_make(UNIX_SOCKETS, 4096);
		struct wire w = wire_on(&e, 0);
		struct call c = prepared();

		w.refuse_reads = w.refuse_writes = 9;
		w.refusal = refusals[i % 2];
		w.waits_itself = i / 2;
		w.most = 777;
		w.holds_back = i == 3;
		good_call_over(&w, &e, NULL, &c);
		if (c.descriptor)
			close(c.descriptor);
	}
}

static struct {
	csync_engine *engine;
	useconds_t after;
	pthread_t target;
} canceller;

static void *cancel_later(void *arg)
{
	(void)arg;
	usleep(canceller.after);
	csync_engine_cancel(canceller.engine);
	return NULL;
}

void law_cancelled_from_another_thread(void)
{
	for (int kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct csync_options o = options_none();
		struct call c;
		pthread_t t;

		o.silence_limit = UINT_MAX;
		struct scene s = waiting_scene(&c, &o, kind);
		canceller.engine = s.engine;
		canceller.after = 200000;
		thread_start(&t, cancel_later, NULL);
		assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "cancelled", said_name());
		our_own_end(s.engine, "cancelled");
		assert_true(c.seconds > 0.15 && c.seconds < 3);
		pthread_join(t, NULL);
		unusable(s.engine);
		scene_end(&s);
		if (c.descriptor)
			close(c.descriptor);
	}
}

static void on_signal(int number)
{
	(void)number;
	csync_engine_cancel(canceller.engine);
}

static void *signal_later(void *arg)
{
	(void)arg;
	usleep(canceller.after);
	pthread_kill(canceller.target, SIGUSR1);
	return NULL;
}

void law_cancelled_from_a_signal_handler(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	struct call c;
	pthread_t t;
	struct scene s = waiting_scene(&c, NULL, UNIX_SOCKETS);

	sigaction(SIGUSR1, &a, NULL);
	canceller.engine = s.engine;
	canceller.after = 200000;
	canceller.target = pthread_self();
	thread_start(&t, signal_later, NULL);
	assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "cancelled");
	our_own_end(s.engine, "cancelled");
	assert_true(c.seconds < 3);
	pthread_join(t, NULL);
	scene_end(&s);
}

void law_cancelled_before(void)
{
	struct call c = prepared();
	struct scene s = scene_of(UNIX_SOCKETS, NULL, 1);

	csync_engine_cancel(NULL);
	csync_engine_cancel(s.engine);
	assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "cancelled", said_name());
	our_own_end(s.engine, "cancelled");
	assert_true(c.seconds < 1);
	nothing_changed();
	unusable(s.engine);
	assert_int_equal(scene_end(&s).n, 0);
}

/* What the progress function saw. */
static struct {
	unsigned calls, too_soon;
	double last;
	uint64_t done, announced;
	int wrong_verb, went_back;
	unsigned cancel_at;      /* this call of it says so */
	uint64_t cancel_at_done; /* or the one with this many bytes, */
	unsigned same, cancel_at_same; /* so many times */
	int said_no;
	csync_engine *again;
	struct call again_call;
	void *userdata;
} told;

static int on_progress(void *userdata, enum csync_verb v, uint64_t done, uint64_t announced)
{
	double now = seconds_now();

	told.calls++;
	told.wrong_verb |= v != verb();
	told.went_back |= done < told.done || announced < told.announced;
	if (told.calls > 1 && now - told.last < 0.095)
		told.too_soon++;
	told.last = now;
	told.same = done == told.done ? told.same + 1 : 1;
	told.done = done;
	told.announced = announced;
	told.userdata = userdata;
	if (told.again) {
		csync_engine *engine = told.again;
		told.again = NULL;
		told.again_call.status = CSYNC_OK;
		/* Not call_now: the error of an engine at work is not to be asked for. */
		switch (verb()) {
		case CSYNC_SEND: told.again_call.status = csync_engine_send(engine, 0); break;
		case CSYNC_RECEIVE: told.again_call.status = csync_engine_receive(engine, 1, NULL); break;
		case CSYNC_SIGNATURE: told.again_call.status = csync_engine_signature(engine, "d/f"); break;
		case CSYNC_CHECK: told.again_call.status = csync_engine_check(engine, "d/f", &told.again_call.differs); break;
		case CSYNC_DELTA: told.again_call.status = csync_engine_delta(engine, "d/f"); break;
		case CSYNC_PATCH: told.again_call.status = csync_engine_patch(engine, "d/f"); break;
		case CSYNC_PUSH: told.again_call.status = csync_engine_push(engine, "d/f"); break;
		case CSYNC_PULL: told.again_call.status = csync_engine_pull(engine, "d/f"); break;
		}
	}
	if (told.calls != told.cancel_at && (!done || done != told.cancel_at_done || told.same != told.cancel_at_same))
		return 0;
	told.said_no = 1;
	return 1;
}

static struct csync_options with_progress(void)
{
	struct csync_options o = options_none();

	memset(&told, 0, sizeof(told));
	o.progress = on_progress;
	o.userdata = &told;
	return o;
}

/* The length of all payloads of a good call, both ways. */
static uint64_t payloads(const struct wire *w)
{
	struct bytes theirs = peers_part();
	uint64_t all = w->read_bytes + w->written_bytes;
	char head[64];
	uint64_t heads = 0;
	size_t lengths[3], n = 0;

	assert_int_equal(w->read_bytes, theirs.n);
	/* every frame's header is taken off */
	if (verb() == CSYNC_SEND)
		lengths[n++] = content().n;
	if (verb() == CSYNC_RECEIVE)
		lengths[n++] = newer().n;
	if (verb() == CSYNC_SIGNATURE || verb() == CSYNC_CHECK || verb() == CSYNC_PULL)
		lengths[n++] = peer_signature(content()).n;
	if (verb() == CSYNC_DELTA || verb() == CSYNC_PUSH) {
		lengths[n++] = peer_signature(basis()).n;
		for (size_t digits = 1, most = 9; digits < 19; digits++, most = 10 * most + 9) {
			/* the delta is ours: its length follows from what was written */
			size_t length = w->written_bytes - strlen("octet-stream \n") - digits;
			if (length <= most) {
				lengths[n++] = length;
				break;
			}
		}
	}
	if (verb() == CSYNC_PATCH || verb() == CSYNC_PULL)
		lengths[n++] = peer_delta(peer_signature(content()), newer()).n;
	if (verb() == CSYNC_PUSH || verb() == CSYNC_PULL)
		lengths[n++] = 0;
	for (size_t i = 0; i < n; i++)
		heads += snprintf(head, sizeof(head), "octet-stream %zu\n", lengths[i]);
	return all - heads;
}

void law_progress(void)
{
	struct csync_options o = with_progress();
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct call c = prepared();

	/* slow enough for several reports */
	w.most = 512;
	w.pause_us = ct_valgrind() ? 10000 : 2000;
	if (verb() == CSYNC_SEND || verb() == CSYNC_RECEIVE || verb() == CSYNC_DELTA || verb() == CSYNC_PUSH)
		w.most = 4096;
	double start = seconds_now();
	good_call_over(&w, &e, &o, &c);
	double took = seconds_now() - start;

	assert_int_equal(told.wrong_verb, 0);
	assert_int_equal(told.went_back, 0);
	assert_ptr_equal(told.userdata, &told);
	assert_true(told.calls >= 2);
	assert_true(told.calls <= 10 * took + 2);
	/* only the one at the end may follow another closely */
	assert_true(told.too_soon <= 1);
	assert_int_equal(told.done, w.read_bytes + w.written_bytes);
	assert_int_equal(told.announced, payloads(&w));
}

void law_progress_cancels(void)
{
	struct csync_options o = with_progress();
	struct call c = prepared();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 1);
	struct feeding f = { s.e.out[1], peers_part() };
	pthread_t feeder;

	thread_start(&feeder, run_feed, &f);
	told.cancel_at = 1;
	assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "cancelled", said_name());
	our_own_end(s.engine, "cancelled");
	nothing_changed();
	unusable(s.engine);
	shutdown(s.e.in[0], SHUT_RDWR);
	pthread_join(feeder, NULL);
	scene_end(&s);
}

/* One try: whether the last report, which is known by its number, came where it was expected. */
static int last_report_says_no(uint64_t total, unsigned same)
{
	struct csync_options o = with_progress();
	struct call c = prepared();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 1);
	struct feeding f = { s.e.out[1], bytes_join(peers_part(), peers_part()) };
	pthread_t feeder;

	told.cancel_at_done = total;
	told.cancel_at_same = same;
	thread_start(&feeder, run_feed, &f);
	call_now(s.engine, &c);
	int met = told.said_no && c.status == CSYNC_OK;
	told.cancel_at_done = 0;
	told.done = told.announced = 0;
	if (met) {
		c = prepared();
		assert_ok(s.engine, call_now(s.engine, &c));
	} else
		shutdown(s.e.in[0], SHUT_RDWR);
	pthread_join(feeder, NULL);
	scene_end(&s);
	return met;
}

/* A report at the end of a call that is done: there is nothing to cancel, and the next call is another. */
void law_the_last_report_cancels_nothing_else(void)
{
	struct csync_options o = with_progress();
	struct call c = prepared();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 1);

	good_call(&s, &c);
	uint64_t total = told.done;
	/* with its last bytes a call may just be due for a report, and say the same number twice */
	for (int try = 0; try < 6; try++)
		if (last_report_says_no(total, 1 + try % 2))
			return;
	ct_skip("the reports come at other times in each call");
}

static void *call_again(void *arg)
{
	struct call *c = arg;
	double start = seconds_now();

	usleep(200000);
	switch (c->verb) {
	case CSYNC_SEND: c->status = csync_engine_send(canceller.engine, 0); break;
	case CSYNC_RECEIVE: c->status = csync_engine_receive(canceller.engine, 1, NULL); break;
	case CSYNC_SIGNATURE: c->status = csync_engine_signature(canceller.engine, "d/f"); break;
	case CSYNC_CHECK: c->status = csync_engine_check(canceller.engine, "d/f", &c->differs); break;
	case CSYNC_DELTA: c->status = csync_engine_delta(canceller.engine, "d/f"); break;
	case CSYNC_PATCH: c->status = csync_engine_patch(canceller.engine, "d/f"); break;
	case CSYNC_PUSH: c->status = csync_engine_push(canceller.engine, "d/f"); break;
	case CSYNC_PULL: c->status = csync_engine_pull(canceller.engine, "d/f"); break;
	}
	c->seconds = seconds_now() - start;
	csync_engine_cancel(canceller.engine);
	return NULL;
}

void law_one_call_at_a_time(void)
{
	struct csync_options o = options_none();
	struct call c, second = { .verb = verb() };
	pthread_t t;

	o.silence_limit = 10000;
	struct scene s = waiting_scene(&c, &o, UNIX_SOCKETS);
	canceller.engine = s.engine;
	thread_start(&t, call_again, &second);
	assert_failed(s.engine, call_now(s.engine, &c), CSYNC_E_CANCELLED, ECANCELED, "cancelled");
	our_own_end(s.engine, "cancelled");
	pthread_join(t, NULL);
	assert_int_equal(second.status, CSYNC_E_STATE);
	assert_true(second.seconds < 3);
	scene_end(&s);
}

void law_a_callback_that_calls_again(void)
{
	struct csync_options o = with_progress();
	struct call c = prepared();
	struct scene s = scene_of(UNIX_SOCKETS, &o, 1);

	told.again = s.engine;
	check_result(&c, good_call(&s, &c));
	assert_int_equal(told.again_call.status, CSYNC_E_STATE);
}

static volatile sig_atomic_t sigpipes;

static void count_sigpipe(int number)
{
	(void)number;
	sigpipes++;
}

static void lose_the_peer(enum ends_kind kind, csync_status expected)
{
	struct call c = prepared();
	struct scene s = scene_of(kind, NULL, 0);
	struct bytes part = peers_part();

	if (part.n > 60000)
		part = bytes_part(part, 0, 60000);
	feed(s.e.out[1], part);
	ends_close(&s.e, 1);
	call_now(s.engine, &c);
	/* a kernel takes what it never delivers */
	if (c.status != CSYNC_OK || (writes() && kind != TCP_SOCKETS))
		assert_int_equal(c.status, expected);
	scene_end(&s);
	if (c.descriptor)
		close(c.descriptor);
}

/* SIGPIPE as a program finds it: it would end it. */
void law_no_sigpipe(void)
{
	for (int kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		signal(SIGPIPE, SIG_DFL);
		lose_the_peer(kind, CSYNC_E_CONNECTION);
		signal(SIGPIPE, count_sigpipe);
		lose_the_peer(kind, CSYNC_E_CONNECTION);
	}
	assert_int_equal(sigpipes, 0);
}

static int pending(int number)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, number);
}

void law_mask_and_pending_signals_stay(void)
{
	sigset_t mask, before, after;

	for (int i = 0; i < 4; i++) {
		int blocked = i & 1, raised = blocked && (i & 2);
		sigemptyset(&mask);
		sigaddset(&mask, SIGPIPE);
		pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &mask, NULL);
		sigemptyset(&mask);
		sigaddset(&mask, SIGUSR2);
		pthread_sigmask(i & 2 ? SIG_BLOCK : SIG_UNBLOCK, &mask, NULL);
		signal(SIGPIPE, count_sigpipe);
		if (raised)
			pthread_kill(pthread_self(), SIGPIPE);
		pthread_sigmask(SIG_SETMASK, NULL, &before);

		lose_the_peer(PIPES, CSYNC_E_CONNECTION);
		lose_the_peer(UNIX_SOCKETS, CSYNC_E_CONNECTION);

		pthread_sigmask(SIG_SETMASK, NULL, &after);
		for (int s = 1; s < 64; s++)
			assert_int_equal(sigismember(&before, s), sigismember(&after, s));
		assert_int_equal(pending(SIGPIPE), raised);
	}
	assert_int_equal(sigpipes, 0);
}

void law_descriptors_stay_as_they_are(void)
{
	for (int i = 0; i < 6; i++) {
		enum ends_kind kind = i / 2;
		struct call c = prepared();
		struct scene s = { .e = ends_make(kind, 0) };
		int status_in, status_out;

		if (i % 2)
			ends_non_blocking(&s.e, 0);
		s.sink = sink_start(s.e.in[1]);
		status_in = fcntl(s.e.in[0], F_GETFL);
		status_out = fcntl(s.e.out[0], F_GETFL);
		unsigned open_before = open_descriptors();
		s.engine = engine_on(&s.e, 0, NULL);

		struct feeding f = { s.e.out[1], peers_part() };
		pthread_t feeder;
		thread_start(&feeder, run_feed, &f);
		assert_ok(s.engine, call_now(s.engine, &c));
		pthread_join(feeder, NULL);
		csync_engine_free(s.engine);
		s.engine = NULL;

		assert_int_equal(open_descriptors(), open_before);
		assert_int_equal(fcntl(s.e.in[0], F_GETFL), status_in);
		assert_int_equal(fcntl(s.e.out[0], F_GETFL), status_out);
		if (c.descriptor)
			assert_true(fcntl(c.descriptor, F_GETFD) >= 0);
		check_result(&c, scene_end(&s));
		if (c.descriptor)
			close(c.descriptor);
	}
}

/* 0: a verb that has to send says so; one that only reads has nothing to carry. */
void law_a_transport_that_carries_nothing(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	struct wire w = wire_on(&e, 0);
	struct call c = prepared();

	w.limit = 0;
	if (!writes()) {
		good_call_over(&w, &e, NULL, &c);
		return;
	}
	csync_engine *engine = engine_over(&w, NULL);
	feed(e.out[1], peers_part());
	assert_failed(engine, call_now(engine, &c), CSYNC_E_PAYLOAD, EMSGSIZE, "sending", "Message too long", said_name());
	assert_int_equal(w.writes, 0);
	nothing_changed();
	unusable(engine);
	csync_engine_free(engine);
	ends_close(&e, 0);
	ends_close(&e, 1);
}

void law_a_limit_that_changes(void)
{
	static const size_t limits[] = { 1, 65537, 7, 16384, 512, 1443, SIZE_MAX, 3, 0 };
	struct ends e = ends_make(UNIX_SOCKETS, 4096);
	struct wire w = wire_on(&e, 0);
	struct call c = prepared();

	w.changing = limits;
	good_call_over(&w, &e, NULL, &c);
}

/* The caller has closed them meanwhile. */
void law_closed_descriptors(void)
{
	for (int kind = UNIX_SOCKETS; kind <= PIPES; kind++) {
		struct call c = prepared();
		struct scene s = scene_of(kind, NULL, 0);

		ends_close(&s.e, 0);
		call_now(s.engine, &c);
		/* a file that the verb opens first may get the number */
		assert_true(c.err == EBADF || (c.err == ENOTSOCK && c.path && sends_first()));
		assert_failed(s.engine, c.status, CSYNC_E_CONNECTION, c.err, "connection failed", said_name());
		nothing_changed();
		unusable(s.engine);
		scene_end(&s);
	}
}

void law_after_a_fork(void)
{
	struct scene s = { .e = ends_make(UNIX_SOCKETS, 0) };
	struct call c = prepared();
	int status;

	s.engine = engine_on(&s.e, 0, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		s.sink = sink_start(s.e.in[1]);
		check_result(&c, good_call(&s, &c));
		_exit(0);
	}
	csync_engine_free(s.engine);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

void *cancel_soon(void *engine)
{
	usleep(200000);
	csync_engine_cancel(engine);
	return NULL;
}
