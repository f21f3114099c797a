/* csync_engine_over_tls: files over a session, with what was written before it, and what is written after. */
#include "sessions.h"

#include <pthread.h>
#include <stdlib.h>

#define SOME ((csync_engine *)0x10)

static csync_engine *over(csync_tls *tls, const csync_options *o)
{
	csync_engine *engine = NULL;

	assert_int_equal(csync_engine_over_tls(tls, o, &engine), CSYNC_OK);
	assert_non_null(engine);
	return engine;
}

static void what_is_refused(void)
{
	struct talk t = talk_without_handshake(UNIX_SOCKETS, "p256", NULL);
	csync_options small = options_none();
	csync_engine *engine = SOME;

	small.size = 1;
	assert_int_equal(csync_engine_over_tls(NULL, NULL, &engine), CSYNC_E_ARGUMENT);
	assert_null(engine);
	engine = SOME;
	assert_int_equal(csync_engine_over_tls(t.tls[CLIENT], NULL, &engine), CSYNC_E_ARGUMENT);
	assert_null(engine);
	talk_handshake(&t);
	engine = SOME;
	assert_int_equal(csync_engine_over_tls(t.tls[CLIENT], &small, &engine), CSYNC_E_ARGUMENT);
	assert_null(engine);
	assert_int_equal(csync_engine_over_tls(t.tls[CLIENT], NULL, NULL), CSYNC_E_ARGUMENT);
	csync_tls_close(t.tls[CLIENT]);
	engine = SOME;
	assert_int_equal(csync_engine_over_tls(t.tls[CLIENT], NULL, &engine), CSYNC_E_ARGUMENT);
	assert_null(engine);
	talk_free(&t);
}

/* New, then changed, over each kind of connection, with a line of the program's own around it. */
static void files(void)
{
	for (enum ends_kind kind = UNIX_SOCKETS; kind <= TCP_SOCKETS; kind++) {
		struct talk t = talk_of(kind, "p256", NULL);
		struct bytes content = bytes_random(ct_valgrind() ? 300000 : 3000000, kind);

		for (int round = 0; round < 2; round++) {
			content.p[content.n / 2] ^= round;
			write_file("d/from", content);
			assert_int_equal(csync_tls_write(t.tls[CLIENT], "PUSH\n", 5), 5);
			struct calls push = { .engine = over(t.tls[CLIENT], NULL), .count = 1,
					      .calls = (struct call[]){ { .verb = CSYNC_PUSH, .path = "d/from" } } };
			calls_start(&push);
			assert_bytes(tls_bytes(t.tls[SERVER], 5), bytes_text("PUSH\n"));
			csync_engine *pull = over(t.tls[SERVER], NULL);
			assert_ok(pull, csync_engine_pull(pull, "d/to"));
			calls_join(&push);
			assert_ok(push.engine, push.calls[0].status);
			assert_file("d/to", content);
			csync_engine_free(push.engine);
			csync_engine_free(pull);
			/* the session serves its own functions again */
			assert_int_equal(csync_tls_write(t.tls[SERVER], "OK\n", 3), 3);
			assert_int_equal(csync_tls_flush(t.tls[SERVER]), 0);
			assert_bytes(tls_bytes(t.tls[CLIENT], 3), bytes_text("OK\n"));
		}
		talk_free(&t);
	}
}

/* Inside a payload an end without a word, and one with it, are errors; the old file stays. */
static void cut_off_inside_a_file(void)
{
	static const struct {
		int says_so, err;
		const char *text;
	} rows[] = { { 0, ECONNABORTED, "has not said" }, { 1, ECONNRESET, "closed by the peer" } };

	for (int i = 0; i < 2; i++) {
		struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
		csync_engine *engine = over(t.tls[SERVER], NULL);

		write_file("d/f", bytes_text("old"));
		assert_int_equal(csync_tls_write(t.tls[CLIENT], "octet-stream 100\n0123456789", 27), 27);
		assert_int_equal(csync_tls_flush(t.tls[CLIENT]), 0);
		if (rows[i].says_so)
			csync_tls_close(t.tls[CLIENT]);
		ends_close(&t.e, CLIENT);
		assert_failed(engine, csync_engine_patch(engine, "d/f"), CSYNC_E_CONNECTION, rows[i].err, rows[i].text, "d/f");
		assert_file("d/f", bytes_text("old"));
		csync_engine_free(engine);
		talk_free(&t);
	}
}

static void a_silent_peer(void)
{
	struct talk t = talk_of(UNIX_SOCKETS, "p256", NULL);
	csync_options o = options_none();
	o.silence_limit = 100;
	csync_engine *engine = over(t.tls[CLIENT], &o);

	write_file("d/f", bytes_text("content"));
	assert_failed(engine, csync_engine_push(engine, "d/f"), CSYNC_E_TIMEOUT, ETIMEDOUT, "d/f");
	csync_engine_free(engine);
	talk_free(&t);
}

static const struct ct_case cases[] = {
	OURS(what_is_refused),
	OURS(files),
	OURS(cut_off_inside_a_file),
	OURS(a_silent_peer),
};
CT_MAIN("test_engine_over_tls", cases)
