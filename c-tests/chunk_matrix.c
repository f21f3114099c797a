/*
 * Every limit of a transport, with files around it, with every verb, over every kind of connection: the result is equal
 * byte for byte, no call is above the limit, nothing hangs, and the bytes on the wire are the same whatever the limit.
 *
 * CHUNK_MATRIX=full: larger files, both directions of each, and files of more than 4 GiB.
 */
#include "ends.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const size_t changing[] = { 1, 65537, 7, 16384, 512, 1443, 131072, 3, 64000, 0 };
#define CHANGES ((size_t)0) /* among the limits */
#define NONE SIZE_MAX

static const size_t limits[] = { 1, 7, 511, 512, 1024, 1443, 1444, 1445, 1446, 1447, 4096, 8192, 16383, 16384, 16385, 64000,
	65535, 65536, 65537, NONE, CHANGES };
/* What GnuTLS can negotiate. */
static const size_t record_limits[] = { 64, 511, 512, 1024, 1443, 1444, 1445, 1446, 1447, 4096, 8192, 16383, 16384 };

enum kind { SOCKETS_DIRECT, PIPES_DIRECT, TCP_DIRECT, FUNCTIONS, PACKETS, TLS12, TLS13 };

static int full(void)
{
	const char *wanted = getenv("CHUNK_MATRIX");
	return wanted && !strcmp(wanted, "full");
}

/* A connection with an engine at each end. Side 1 always is one of functions, which counts and sums. */
struct line {
	struct ends e;
	struct wire w[2];
	csync_engine *engine[2];
};

static gnutls_certificate_credentials_t credentials[2];

static void make_certificate(void)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;

	assert_int_equal(gnutls_x509_privkey_init(&key), 0);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), 0);
	gnutls_x509_crt_set_version(crt, 3);
	gnutls_x509_crt_set_serial(crt, "\1", 1);
	gnutls_x509_crt_set_dn(crt, "CN=test", NULL);
	gnutls_x509_crt_set_activation_time(crt, time(NULL) - 100);
	gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 10000);
	gnutls_x509_crt_set_key(crt, key);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
	gnutls_certificate_allocate_credentials(&credentials[0]);
	gnutls_certificate_allocate_credentials(&credentials[1]);
	assert_int_equal(gnutls_certificate_set_x509_key(credentials[0], &crt, 1, key), 0);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static ssize_t tls_result(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = n == GNUTLS_E_AGAIN ? EAGAIN : n == GNUTLS_E_INTERRUPTED ? EINTR : EPROTO;
	return -1;
}

static ssize_t tls_get(struct wire *w, void *buffer, size_t count)
{
	return tls_result(gnutls_record_recv(w->session, buffer, count));
}

static ssize_t tls_put(struct wire *w, const void *buffer, size_t count)
{
	return tls_result(gnutls_record_send(w->session, buffer, count));
}

static size_t tls_largest(struct wire *w)
{
	return gnutls_record_get_max_size(w->session);
}

static void *shake(void *session)
{
	int r;

	do
		r = gnutls_handshake(session);
	while (r < 0 && !gnutls_error_is_fatal(r));
	if (r < 0)
		fprintf(stderr, "[   LINE   ] handshake: %s\n", gnutls_strerror(r));
	return NULL;
}

/* Both ends announce what they take; what that leaves to send is asked of GnuTLS. */
static void wrap_in_tls(struct line *l, enum kind kind, size_t limit)
{
	const char *priority = kind == TLS13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3:%ALLOW_SMALL_RECORDS"
					     : "NORMAL:-VERS-ALL:+VERS-TLS1.2:%ALLOW_SMALL_RECORDS";
	pthread_t t;

	for (int i = 0; i < 2; i++) {
		gnutls_session_t s;
		gnutls_init(&s, (i ? GNUTLS_CLIENT : GNUTLS_SERVER) | GNUTLS_NO_TICKETS | GNUTLS_NO_SIGNAL);
		assert_int_equal(gnutls_priority_set_direct(s, priority, NULL), 0);
		gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, credentials[i]);
		gnutls_transport_set_int(s, l->e.in[i]);
		assert_int_equal(gnutls_record_set_max_recv_size(s, limit), 0);
		l->w[i].session = s;
		l->w[i].get = tls_get;
		l->w[i].put = tls_put;
		l->w[i].largest_put = tls_largest;
	}
	thread_start(&t, shake, l->w[1].session);
	shake(l->w[0].session);
	pthread_join(t, NULL);
	for (int i = 0; i < 2; i++) {
		ends_non_blocking(&l->e, i);
		size_t largest = gnutls_record_get_max_size(l->w[i].session);
		if (largest > limit || largest + 1 < limit) /* TLS 1.3 may count its byte for the content's type */
			fail_msg("a limit of %zu was negotiated, GnuTLS says %zu", limit, largest);
	}
}

static void line_make(struct line *l, enum kind kind, size_t limit, int buffer)
{
	static const enum ends_kind ends[] = { UNIX_SOCKETS, PIPES, TCP_SOCKETS, UNIX_SOCKETS, PACKET_SOCKETS, UNIX_SOCKETS,
		UNIX_SOCKETS };
	struct csync_options o = options_none();

	o.silence_limit = 15000;
	/* A packet must fit its socket's buffer. */
	if (kind == PACKETS && limit == NONE)
		limit = 100000;
	if (kind == PACKETS && buffer)
		buffer = limit == CHANGES ? 140000 : limit < 4096 ? 4096 : (int)limit;
	*l = (struct line){ .e = ends_make(ends[kind], buffer) };
	for (int i = 0; i < 2; i++) {
		l->w[i] = wire_on(&l->e, i);
		l->w[i].limit = limit;
		l->w[i].packets = kind == PACKETS;
		if (limit == CHANGES)
			l->w[i].changing = changing;
	}
	if (kind == TLS12 || kind == TLS13)
		wrap_in_tls(l, kind, limit);
	if (kind <= TCP_DIRECT) {
		o.chunk = limit == NONE ? 0 : limit == CHANGES ? 4097 : limit;
		l->engine[0] = engine_on(&l->e, 0, &o);
		o.chunk = 0;
	} else
		l->engine[0] = engine_over(&l->w[0], &o);
	l->engine[1] = engine_over(&l->w[1], &o);
}

static void line_end(struct line *l)
{
	for (int i = 0; i < 2; i++) {
		csync_engine_free(l->engine[i]);
		if (l->w[i].session)
			gnutls_deinit(l->w[i].session);
		wire_free(&l->w[i]);
		ends_close(&l->e, i);
	}
}

enum step { PLAIN, COMPARED, NEW_FILE, CHANGED_FILE, PUSHED_NEW, PUSHED_CHANGED, STEPS };
static const char *const step_names[] = { "send", "check", "delta of a new file", "delta", "push of a new file", "push" };

static struct bytes pool;

static void put(const char *path, size_t n, int as_basis)
{
	struct bytes b = { pool.p, as_basis ? n - n / 3 : n };

	if (as_basis && n)
		pool.p[n / 2]++;
	write_file(path, b);
	if (as_basis && n)
		pool.p[n / 2]--;
}

/* The verbs of a step, run by both ends; ends the case where they fail or the file is not the same. */
static void run_step(struct line *l, enum step step, size_t size, int sender, const char *what)
{
	struct call send[2] = { { .path = "d/s" } }, take[2] = { { .path = "d/t" }, { .path = "d/t" } };
	struct calls theirs = { .engine = l->engine[!sender], .calls = take, .count = 1 };

	unlink("d/t");
	switch (step) {
	case PLAIN:
		send[0].verb = CSYNC_SEND;
		send[0].descriptor = open("d/s", O_RDONLY | O_CLOEXEC);
		take[0].verb = CSYNC_RECEIVE;
		take[0].descriptor = open("d/t", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		break;
	case COMPARED:
		put("d/t", size, 0);
		send[0].verb = CSYNC_SIGNATURE;
		take[0].verb = CSYNC_CHECK;
		take[0].differs = 77;
		break;
	case NEW_FILE:
	case CHANGED_FILE:
		send[0].verb = CSYNC_DELTA;
		take[0].verb = CSYNC_SIGNATURE;
		take[1].verb = CSYNC_PATCH;
		theirs.count = 2;
		break;
	default:
		send[0].verb = CSYNC_PUSH;
		take[0].verb = CSYNC_PULL;
	}
	if (step == CHANGED_FILE || step == PUSHED_CHANGED)
		put("d/t", size, 1);
	for (int i = 0; i < 2; i++) {
		l->w[i].read_bytes = l->w[i].written_bytes = l->w[i].read_sum = l->w[i].written_sum = 0;
		l->w[i].above = 0;
	}

	calls_start(&theirs);
	call_now(l->engine[sender], &send[0]);
	calls_join(&theirs);

	for (unsigned i = 0; i < theirs.count; i++)
		if (send[0].status || take[i].status)
			fail_msg("%s: %s of %zu bytes: %s / %s", what, step_names[step], size, send[0].text, take[i].text);
	if (l->w[0].above || l->w[1].above)
		fail_msg("%s: %s of %zu bytes: %u calls above the limit", what, step_names[step], size,
			 l->w[0].above + l->w[1].above);
	if (step == COMPARED)
		assert_int_equal(take[0].differs, 0);
	if (step == PLAIN) {
		assert_int_equal(take[0].length, size);
		close(send[0].descriptor);
		close(take[0].descriptor);
	}
	if (size <= pool.n) {
		struct bytes made = read_file("d/t");
		if (made.n != size || memcmp(made.p, pool.p, size))
			fail_msg("%s: %s of %zu bytes: another file", what, step_names[step], size);
		bytes_free(made);
	}
}

/* What side 1 has seen of a step: to and from the sender, whichever side that was. */
struct seen {
	size_t size;
	uint64_t sums[STEPS][4];
};

static void look(const struct line *l, int sender, uint64_t sums[4])
{
	const struct wire *w = &l->w[1];
	uint64_t in[2] = { w->read_bytes, w->read_sum }, out[2] = { w->written_bytes, w->written_sum };

	memcpy(sums, sender ? out : in, sizeof(in));
	memcpy(sums + 2, sender ? in : out, sizeof(in));
}

/* The same over functions without a limit, once for each size. */
static const struct seen *reference(size_t size)
{
	static struct seen *all;
	static size_t n;
	struct line l;

	for (size_t i = 0; i < n; i++)
		if (all[i].size == size)
			return &all[i];
	all = realloc(all, (n + 1) * sizeof(*all));
	assert_non_null(all);
	all[n] = (struct seen){ .size = size };
	line_make(&l, FUNCTIONS, NONE, 0);
	for (int step = 0; step < STEPS; step++) {
		run_step(&l, step, size, 0, "no limit");
		look(&l, 0, all[n].sums[step]);
	}
	line_end(&l);
	return &all[n++];
}

static size_t a_large_size(size_t chunk)
{
	size_t least = full() ? 300000 : 10000, per = full() ? 3000 : 100, most = full() ? 3 << 20 : 600000;
	size_t size = chunk > most / per ? most : chunk * per;

	return size < least ? least : size;
}

static unsigned combinations;

static void with_limit(enum kind kind, size_t limit)
{
	size_t chunk = limit == NONE ? 131072 : limit == CHANGES ? 4097 : limit;
	size_t sizes[] = { 0, 1, chunk - 1, chunk, chunk + 1, a_large_size(chunk) };
	struct line l;
	char what[64];

	snprintf(what, sizeof(what), limit == NONE ? "no limit" : limit == CHANGES ? "a limit that changes" : "a limit of %zu", limit);
	/* Less than a segment of loopback makes TCP wait for its timers at each. */
	line_make(&l, kind, limit, kind == TCP_DIRECT ? 131072 : 4096);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		put("d/s", sizes[i], 0);
		const struct seen *expected = reference(sizes[i]);
		for (int turn = 0; turn < STEPS * (full() ? 2 : 1); turn++) {
			int step = turn % STEPS, sender = full() ? turn / STEPS : (step + (int)i) % 2;
			uint64_t sums[4];
			run_step(&l, step, sizes[i], sender, what);
			look(&l, sender, sums);
			if (memcmp(sums, expected->sums[step], sizeof(sums)))
				fail_msg("%s: %s of %zu bytes: other bytes on the wire", what, step_names[step], sizes[i]);
			combinations++;
		}
	}
	line_end(&l);
}

static void matrix(enum kind kind, const char *name, const size_t *of, size_t n)
{
	pool = bytes_random(4 << 20, 1);
	for (size_t i = 0; i < n; i++)
		/* under valgrind a few of them */
		if (!ct_valgrind() || i % 7 == 3)
			with_limit(kind, of[i]);
	printf("count: %u combinations over %s\n", combinations, name);
}

#define MATRIX(kind, name, of) matrix(kind, name, of, sizeof(of) / sizeof(of[0]))

static void a_socket_pair(void) { MATRIX(SOCKETS_DIRECT, "a socket pair", limits); }
static void pipes(void) { MATRIX(PIPES_DIRECT, "pipes", limits); }
static void tcp(void) { MATRIX(TCP_DIRECT, "TCP", limits); }
static void functions(void) { MATRIX(FUNCTIONS, "functions that refuse", limits); }
static void packets(void) { MATRIX(PACKETS, "packets", limits); }

static void tls_1_2(void)
{
	make_certificate();
	MATRIX(TLS12, "GnuTLS, TLS 1.2", record_limits);
	gnutls_certificate_free_credentials(credentials[0]);
	gnutls_certificate_free_credentials(credentials[1]);
}

static void tls_1_3(void)
{
	make_certificate();
	MATRIX(TLS13, "GnuTLS, TLS 1.3", record_limits);
	gnutls_certificate_free_credentials(credentials[0]);
	gnutls_certificate_free_credentials(credentials[1]);
}

static void same_content(const char *one, const char *other)
{
	static unsigned char a[1 << 20], b[1 << 20];
	int f = open(one, O_RDONLY | O_CLOEXEC), g = open(other, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(f >= 0 && g >= 0);
	do {
		n = read(f, a, sizeof(a));
		for (ssize_t got = 0; got < n;) {
			ssize_t m = read(g, b + got, n - got);
			assert_true(m > 0);
			got += m;
		}
		assert_true(n >= 0 && !memcmp(a, b, n));
	} while (n > 0);
	assert_int_equal(read(g, b, 1), 0);
	close(f);
	close(g);
}

/* Beyond 2^32, with content at the beginning, around it, and at the end. */
static void make_sparse(const char *path, unsigned seed)
{
	static const off_t places[] = { 0, (1LL << 31) - 1000, (1LL << 32) - 1000, (1LL << 32) + 2000000 };
	int f = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(f >= 0);
	for (size_t i = 0; i < 4; i++) {
		struct bytes b = bytes_random(5000, 10 * i + seed * (i == 2));
		assert_int_equal(pwrite(f, b.p, b.n, places[i]), b.n);
		bytes_free(b);
	}
	close(f);
}

static void more_than_4_GiB(void)
{
	static const size_t few[] = { NONE, 16384, 65537 };
	struct statvfs v;

	if (!full())
		ct_skip("CHUNK_MATRIX=full");
	if (statvfs(".", &v) || (double)v.f_bavail * v.f_frsize < 12e9)
		ct_skip("less than 12 GB free");
	make_sparse("d/s", 0);
	for (size_t i = 0; i < 3; i++) {
		struct line l;
		uint64_t size = (1ULL << 32) + 2005000;
		line_make(&l, i ? FUNCTIONS : SOCKETS_DIRECT, few[i], 0);
		run_step(&l, PLAIN, size, 0, "sparse");
		same_content("d/s", "d/t");
		run_step(&l, PUSHED_NEW, size, 0, "sparse");
		same_content("d/s", "d/t");
		line_end(&l);

		/* with a basis that differs in one place */
		struct call push = { .verb = CSYNC_PUSH, .path = "d/s" }, pull = { .verb = CSYNC_PULL, .path = "d/t" };
		line_make(&l, i ? FUNCTIONS : SOCKETS_DIRECT, few[i], 0);
		make_sparse("d/t", 1);
		struct calls theirs = { .engine = l.engine[1], .calls = &pull, .count = 1 };
		calls_start(&theirs);
		assert_ok(l.engine[0], call_now(l.engine[0], &push));
		calls_join(&theirs);
		assert_int_equal(pull.status, CSYNC_OK);
		same_content("d/s", "d/t");
		assert_true(l.w[1].read_bytes < 1000000);
		line_end(&l);
		unlink("d/t");
		combinations += 3;
	}
	printf("count: %u combinations of more than 4 GiB\n", combinations);
}

#define LIMIT(f, fl) { .name = #f, .body = f, .original = CT_CANNOT, .why = "a function of this library alone", .flags = (fl), \
		       .seconds = 1800 }
static const struct ct_case cases[] = {
	LIMIT(a_socket_pair, 0),
	LIMIT(pipes, 0),
	LIMIT(tcp, 0),
	LIMIT(functions, 0),
	LIMIT(packets, 0),
	LIMIT(tls_1_2, CT_LARGE),
	LIMIT(tls_1_3, CT_LARGE),
	LIMIT(more_than_4_GiB, CT_LARGE),
};
CT_MAIN("chunk_matrix", cases)
