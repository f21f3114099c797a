/*
 * Any calls in any order: engines over every kind of connection, transports that break every rule but that of memory,
 * arguments that are NULL, closed, of the wrong kind or of no length, cancelled and called from within their own
 * functions, and freed at any time. Each call must come back with a status that fits its error, and nothing may be left.
 */
#include "chance.h"
#include "csync_rs.h"
#include "ct.h"
#include "ends.h"
#include "host.h"
#include "peer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENGINES = 3, SCRIPTS = 12 };

/* One engine and what it stands on. */
static struct place {
	csync_engine *engine;
	int busy, depth;
	struct bytes script;
	size_t at;
	unsigned trouble; /* one call in so many goes wrong; 0: none */
	int ends;         /* the script's end is an end, and not silence */
	int patient;      /* the limit of silence is the default: minutes, so that nothing may be silent */
	size_t payload;
	struct ends e;
	int has_ends;
} places[ENGINES];

static struct bytes scripts[SCRIPTS];
static size_t n_scripts;
static struct bytes content;

static const char *const paths[] = { "d/f", "d/f", "d/f", "d/g", "d/none", "d", "d/link", "d/fifo", "d/f/x", "", NULL, "/dev/null",
	"d/large", "/dev/full" };

static void any_call(struct place *p, int within);

/* ---- The transport of functions ---- */

static int goes_wrong(struct place *p)
{
	return p->trouble && one_in(p->trouble);
}

/* From within a function of the program's, anything may be called; on its own engine it has to be refused. */
static void meddle(struct place *p)
{
	if (!one_in(60))
		return;
	switch (chance(3)) {
	case 0:
		csync_engine_cancel(p->engine);
		break;
	case 1:
		if (p->busy)
			assert_int_equal(csync_engine_signature(p->engine, "d/f"), CSYNC_E_STATE);
		break;
	default:
		any_call(&places[chance(ENGINES)], 1);
	}
}

static ssize_t wrong(size_t count)
{
	static const int errors[] = { EAGAIN, EAGAIN, EINTR, EIO, ECONNRESET, ETIMEDOUT, EPIPE, 0, EMSGSIZE, ENOMEM };

	switch (chance(8)) {
	case 0:
		return 0;
	case 1: /* more than there was */
		return (ssize_t)(count + 1 + chance(1000));
	case 2: /* GnuTLS's codes, and others that are no counts */
		errno = 0;
		return -(ssize_t)chance(100);
	default:
		errno = errors[one_in(3) ? chance(10) : chance(3)];
		return -1;
	}
}

static ssize_t odd_read(void *userdata, void *buffer, size_t count)
{
	struct place *p = userdata;
	size_t left = p->script.n - p->at;

	meddle(p);
	if (goes_wrong(p))
		return wrong(count);
	if (!left) {
		errno = EAGAIN;
		return p->ends ? 0 : -1;
	}
	if (count > left)
		count = left;
	if (p->trouble && count > 1)
		count = 1 + chance(count);
	memcpy(buffer, p->script.p + p->at, count);
	p->at += count;
	return count;
}

static ssize_t odd_write(void *userdata, const void *buffer, size_t count)
{
	struct place *p = userdata;
	volatile unsigned char sum = 0;

	meddle(p);
	for (size_t i = 0; i < count; i += 997) /* all of it is readable */
		sum += ((const unsigned char *)buffer)[i] + ((const unsigned char *)buffer)[count - 1];
	assert_true(count > 0);
	if (goes_wrong(p))
		return wrong(count);
	return p->trouble && one_in(3) ? 1 + chance(count) : count;
}

static int odd_flush(void *userdata)
{
	struct place *p = userdata;

	meddle(p);
	return goes_wrong(p) ? (int)wrong(0) : 0;
}

static size_t odd_payload(void *userdata)
{
	struct place *p = userdata;
	static const size_t others[] = { 1, 7, 512, 16384, SIZE_MAX, 0 };

	return goes_wrong(p) && one_in(4) ? others[chance(6)] : p->payload;
}

static void odd_wait(void *userdata, int for_write, unsigned milliseconds)
{
	(void)for_write;
	assert_true(milliseconds <= 100);
	meddle(userdata);
	usleep(20);
}

static int odd_progress(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	(void)done, (void)announced;
	assert_true(verb >= CSYNC_SEND && verb <= CSYNC_PULL);
	meddle(userdata);
	return one_in(8);
}

static void odd_log(void *userdata, int level, const char *message)
{
	assert_in_range(level, 0, 3);
	assert_true(strlen(message) > 0);
	meddle(userdata);
}

/* ---- Making and freeing ---- */

static struct csync_options any_options(struct place *p)
{
	static const size_t sizes[] = { 1, 2, 7, 16384, 131072, SIZE_MAX };
	struct csync_options o = { .size = sizeof(o), .userdata = p };

	/* a member is 0 as often as not; what is silent for ever would take for ever */
	o.silence_limit = 1 + chance(8);
	if (one_in(2))
		o.chunk = sizes[chance(6)];
	if (one_in(2))
		o.literal_budget = sizes[chance(6)];
	o.threads = chance(4);
	o.fsync = one_in(8);
	o.keepalive = one_in(2);
	o.ignore_owner = one_in(2);
	o.temp_dir = one_in(4) ? (one_in(2) ? "t" : "t/none") : one_in(8) ? "" : NULL;
	if (one_in(2))
		o.progress = odd_progress;
	if (one_in(2))
		o.log = odd_log;
	return o;
}

static void any_engine(struct place *p)
{
	struct csync_options options = any_options(p), *o = &options;
	struct csync_transport t = { .size = sizeof(t), .userdata = p, .read = odd_read, .write = odd_write, .flush = odd_flush,
		.max_payload = odd_payload, .wait = odd_wait };
	static const size_t payloads[] = { SIZE_MAX, SIZE_MAX, 16384, 1443, 1 };
	csync_status s;

	memset(p, 0, sizeof(*p));
	p->script = mutated(scripts[chance(n_scripts)], scripts[chance(n_scripts)]);
	if (one_in(2))
		p->script = bytes_join(p->script, bytes_part(scripts[chance(n_scripts)], 0, SIZE_MAX));
	p->trouble = one_in(2) ? 0 : 3 + chance(40);
	p->payload = payloads[chance(5)];
	p->ends = one_in(2);
	switch (chance(8)) {
	case 0: /* what is not taken */
		if (one_in(2))
			t.size = chance(sizeof(size_t));
		else
			o->size = chance(sizeof(size_t));
		s = one_in(4) ? csync_engine_over_transport(&t, o, NULL) : csync_engine_over_transport(one_in(8) ? NULL : &t, o, &p->engine);
		assert_int_equal(s, CSYNC_E_ARGUMENT);
		return;
	case 1: { /* descriptors that are closed, files, or the wrong way round */
		int in = open(one_in(2) ? "d/f" : "/dev/null", one_in(4) ? O_WRONLY : O_RDONLY);
		int out = open(one_in(2) ? "/dev/null" : "/dev/full", O_WRONLY);
		s = csync_engine_over_descriptors(one_in(8) ? (int)chance(300) - 3 : in, one_in(8) ? -1 : out, o, &p->engine);
		p->e = (struct ends){ { in, -1 }, { out, -1 } };
		p->has_ends = 1;
		break;
	}
	case 2:
	case 3: { /* sockets and pipes, with what the peer has sent, and a peer that does not read */
		p->e = ends_make(chance(3), 4096);
		p->has_ends = 1;
		if (one_in(2))
			ends_non_blocking(&p->e, 0);
		size_t n = p->script.n < 3000 ? p->script.n : 3000;
		feed(p->e.out[1], bytes_part(p->script, 0, n));
		if (p->ends)
			ends_close(&p->e, 1);
		s = csync_engine_over_descriptors(p->e.in[0], p->e.out[0], o, &p->engine);
		break;
	}
	case 4: /* csync2's connection */
		host_reset();
		host_feed(p->script.p, p->script.n);
		s = csync_engine_over_host(o, &p->engine);
		break;
	default: /* functions; an older program's structures, where the rest is the default */
		if (one_in(6))
			t.size = offsetof(struct csync_transport, flush) + chance(4) * sizeof(void *);
		if (t.size < sizeof(t) || one_in(20))
			t.size -= t.size == sizeof(t) ? sizeof(void *) : 0, p->trouble = 0, p->ends = 1; /* sleeps at each refusal */
		if (one_in(6) && p->ends) {
			o->size = offsetof(struct csync_options, silence_limit) + chance(8) * sizeof(void *);
			p->trouble = 0;
			p->patient = 1;
		}
		if (one_in(10) && p->ends && !p->trouble) {
			o = NULL;
			p->patient = 1;
		}
		s = csync_engine_over_transport(&t, o, &p->engine);
	}
	assert_true((s == CSYNC_OK) == (p->engine != NULL));
	assert_true(s == CSYNC_OK || s == CSYNC_E_ARGUMENT);
}

static void no_engine(struct place *p)
{
	csync_engine_free(p->engine);
	if (p->has_ends) {
		ends_close(&p->e, 0);
		ends_close(&p->e, 1);
	}
	memset(p, 0, sizeof(*p));
}

/* ---- Calls ---- */

/* A descriptor of any kind, but for patient engines none that takes nothing; `*other` is to be closed as well. */
static int any_descriptor(int *other, int patient)
{
	int p[2];
	unsigned kind = chance(9);

	*other = -1;
	switch (patient && (kind == 6 || kind == 7) ? 8 : kind) {
	case 0: return -1;
	case 1: return (int)chance(2000) + 250; /* not open */
	case 2: return open("d/f", O_RDONLY);
	case 3: return open("d", O_RDONLY);
	case 4: return open("/dev/full", O_RDWR);
	case 5: return open("d/f", O_PATH);
	case 6: /* a pipe, full or soon */
		if (pipe(p))
			return -1;
		fcntl(p[1], F_SETPIPE_SZ, 4096);
		*other = p[0];
		return p[1];
	case 7: /* a socket that nobody reads */
		if (socketpair(AF_UNIX, one_in(2) ? SOCK_STREAM : SOCK_SEQPACKET, 0, p))
			return -1;
		*other = p[0];
		return p[1];
	default: return open("d/out", O_RDWR | O_CREAT | O_TRUNC, 0600);
	}
}

static int is_ours(int fd)
{
	return fd >= 0 && fcntl(fd, F_GETFD) >= 0;
}

static void any_verb(struct place *p)
{
	struct call c = { .verb = 1 + chance(8), .path = paths[chance(sizeof(paths) / sizeof(paths[0]))], .differs = 77 };
	int other = -1, differs_null = one_in(30);
	csync_engine *engine = p->engine;

	if (c.verb == CSYNC_SEND || c.verb == CSYNC_RECEIVE)
		c.descriptor = any_descriptor(&other, p->patient);
	p->busy = 1;
	if (differs_null) {
		c.status = one_in(2) ? csync_engine_check(engine, c.path, NULL) : csync_engine_receive(engine, -1, NULL);
		c.err = csync_engine_errno(engine);
		snprintf(c.text, sizeof(c.text), "%s", csync_engine_error(engine));
	} else
		call_now(engine, &c);
	p->busy = 0;
	if (c.descriptor > 2 && is_ours(c.descriptor) && c.descriptor < 200)
		close(c.descriptor);
	if (other >= 0)
		close(other);
	assert_in_range(c.status, CSYNC_OK, CSYNC_E_INTERNAL);
	assert_int_not_equal(c.status, CSYNC_E_INTERNAL);
	if (!engine) {
		assert_int_equal(c.status, CSYNC_E_ARGUMENT);
		assert_int_equal(c.err, EINVAL);
		return;
	}
	if ((c.status == CSYNC_OK) != (c.err == 0) || (c.status == CSYNC_OK) != (c.text[0] == 0) || strstr(c.text, "os error"))
		fail_msg("status %d, errno %d, `%s`", c.status, c.err, c.text);
	if (c.status == CSYNC_E_CANCELLED)
		assert_int_equal(c.err, ECANCELED);
	if (c.status == CSYNC_E_TIMEOUT)
		assert_int_equal(c.err, ETIMEDOUT);
	int names_its_file = c.status != CSYNC_OK && c.status != CSYNC_E_ARGUMENT && c.status != CSYNC_E_STATE;
	if (names_its_file && c.verb > CSYNC_RECEIVE && c.path && !differs_null && !strstr(csync_engine_error(engine), c.path))
		fail_msg("verb %d, status %d, `%s` does not name %s", c.verb, c.status, c.text, c.path);
}

/* The functions of rsync.c, on csync2's connection. */
static void any_drop_in(void)
{
	const char *path = paths[chance(sizeof(paths) / sizeof(paths[0]))];
	FILE *f = NULL;
	char dir[64], base[64], name[] = "d/tmpXXXXXX", no_name[] = "d/x";

	host_reset();
	struct bytes script = mutated(scripts[chance(n_scripts)], scripts[chance(n_scripts)]);
	host_feed(script.p, script.n);
	if (one_in(3))
		host_on_read((struct host_step){ .from = 1 + chance(50), .every = chance(9), .what = HOST_SHORT, .value = 1 });
	if (one_in(5))
		host_on_write((struct host_step){ .from = 1 + chance(5), .what = one_in(2) ? HOST_CLOSE : HOST_SHORT, .value = 1 });
	switch (chance(9)) {
	case 0: csync_rs_check(path, chance(2)); break;
	case 1: csync_rs_sig(path); break;
	case 2: csync_rs_delta(path); break;
	case 3: csync_rs_patch(path); break;
	case 4:
		if (csync_rs_sigfile(path, one_in(5) ? NULL : &f) == 0 && f)
			fclose(f);
		break;
	case 5:
		f = one_in(5) ? NULL : file_of(bytes_part(content, 0, chance(5000)), "r+");
		csync_send_file(f);
		if (f)
			fclose(f);
		break;
	case 6:
		f = one_in(5) ? NULL : one_in(5) ? fopen("/dev/full", "r+") : file_of(bytes_text(""), "r+");
		csync_recv_file(f);
		if (f)
			fclose(f);
		break;
	case 7:
		if (!path || (strlen(path) < sizeof(dir) && !strstr(path, "none")))
			split_dirname_basename(one_in(5) ? NULL : dir, one_in(5) ? NULL : base, path);
		mkpath(path && strstr(path, "none") ? NULL : path, 0700);
		break;
	default: {
		int fd = do_mkstemp(one_in(3) ? NULL : one_in(2) ? no_name : name, 0600);
		if (fd >= 0) {
			close(fd);
			unlink(name);
		}
		csync_rs_fsync(0);
	}
	}
}

/* within: from a function of the program's; then the engine at hand may be at work. */
static void any_call(struct place *p, int within)
{
	static int depth;

	if (within && (p->busy || depth > 1))
		return;
	depth++;
	switch (chance(12)) {
	case 0:
		csync_engine_cancel(p->engine);
		break;
	case 1:
		no_engine(p);
		break;
	case 2:
		csync_engine_free(NULL);
		csync_engine_cancel(NULL);
		assert_non_null(csync_status_text((int)chance(40) - 20));
		break;
	case 3:
		if (!within) /* one host, one connection */
			any_drop_in();
		break;
	default:
		if (!p->engine && !one_in(10)) {
			no_engine(p);
			any_engine(p);
		}
		any_verb(p);
	}
	depth--;
}

static void files_as_before(void)
{
	static const char *const kept[] = { "f", "g", "link", "fifo", "large", "out", "none" };
	unsigned known = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		char path[32];
		struct stat st;
		snprintf(path, sizeof(path), "d/%s", kept[i]);
		known += lstat(path, &st) == 0;
	}
	assert_int_equal(names_with("d", ""), known + 2);
	assert_int_equal(names_with("t", ""), 2);
	unlink("d/none");
	write_file("d/f", content);
	write_file("d/g", scripts[0]);
	assert_int_equal(truncate("d/large", 17 << 20), 0);
}

/* A thread's entry goes a moment after it was joined. */
static void no_thread_is_left(void)
{
	for (double end = seconds_now() + 10; names_with("/proc/self/task", "") > 3;) /* this one, and the two dots */
		assert_true(seconds_now() < end);
}

static void a_round(void)
{
	unsigned open_before = open_descriptors();
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (unsigned steps = 1 + chance(12); steps; steps--)
		any_call(&places[chance(ENGINES)], 0);
	for (int i = 0; i < ENGINES; i++)
		no_engine(&places[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 64; s++)
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
	assert_int_equal(open_descriptors(), open_before);
	if (one_in(20))
		no_thread_is_left();
	files_as_before();
}

static void make_scripts(void)
{
	struct bytes newer = bytes_join(bytes_random(50, 2), bytes_part(content, 700, 3000));

	scripts[n_scripts++] = framed(bytes_random(2500, 3));
	scripts[n_scripts++] = framed(peer_signature(content));
	scripts[n_scripts++] = bytes_join(framed(peer_signature(newer)), bytes_text("octet-stream 0\n"));
	scripts[n_scripts++] = framed(peer_delta(peer_signature(content), newer));
	scripts[n_scripts++] = framed(peer_delta(peer_no_signature(), newer));
	scripts[n_scripts++] = framed(peer_no_signature());
	scripts[n_scripts++] = bytes_text("ERROR\n");
	scripts[n_scripts++] = bytes_text("");
	scripts[n_scripts++] = framed(bytes_random(40000, 4));
}

static void any_calls_in_any_order(void)
{
	content = bytes_random(5000, 1);
	make_scripts();
	write_file("d/f", content);
	write_file("d/g", scripts[0]);
	write_file("d/large", bytes_text("x"));
	assert_int_equal(truncate("d/large", 17 << 20), 0);
	assert_int_equal(symlink("f", "d/link"), 0);
	assert_int_equal(mkfifo("d/fifo", 0600), 0);
	host_reset(); /* its descriptors stay */
	rounds(a_round);
}

int main(void)
{
	const struct ct_case cases[] = {
		{ .name = "any_calls_in_any_order", .body = any_calls_in_any_order, .original = CT_CANNOT,
		  .why = "a function of this library alone", .seconds = rounds_seconds() },
	};
	return ct_run("fuzz_calls", cases, 1);
}
