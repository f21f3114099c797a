/*
 * A program that sets up TLS itself, with rustls-ffi and certificates of an authority, and moves files over it with this
 * library's engine: client and server in one program. over_rustls DIRECTORY-OF-IDENTITIES
 */
#include "csync_rs_rustls.h"
#include "rustls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "over_rustls.c:%d: %s (errno %d)\n", __LINE__, #holds, errno); \
			exit(1); \
		} \
	} while (0)
#define OK(call) MUST((call) == RUSTLS_RESULT_OK)

static const char *directory;

static const char *path_of(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static size_t load(const char *path, uint8_t *buffer, size_t room)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	MUST(f);
	n = fread(buffer, 1, room, f);
	MUST(n > 0 && n < room);
	fclose(f);
	return n;
}

static const struct rustls_certified_key *identity(const char *name)
{
	static uint8_t certificate[10000], key[10000];
	const struct rustls_certified_key *made = NULL;
	char file[100];

	snprintf(file, sizeof(file), "signed-%s-cert.pem", name);
	size_t certificate_n = load(path_of(file), certificate, sizeof(certificate));
	snprintf(file, sizeof(file), "signed-%s-key.pem", name);
	size_t key_n = load(path_of(file), key, sizeof(key));
	OK(rustls_certified_key_build(certificate, certificate_n, key, key_n, &made));
	return made;
}

static const struct rustls_root_cert_store *authority(void)
{
	struct rustls_root_cert_store_builder *builder = rustls_root_cert_store_builder_new();
	const struct rustls_root_cert_store *store = NULL;

	OK(rustls_root_cert_store_builder_load_roots_from_file(builder, path_of("ca-cert.pem"), true));
	OK(rustls_root_cert_store_builder_build(builder, &store));
	rustls_root_cert_store_builder_free(builder);
	return store;
}

static struct rustls_connection *client(void)
{
	const struct rustls_root_cert_store *store = authority();
	struct rustls_web_pki_server_cert_verifier_builder *trust = rustls_web_pki_server_cert_verifier_builder_new(store);
	struct rustls_server_cert_verifier *verifier = NULL;
	struct rustls_client_config_builder *builder = rustls_client_config_builder_new();
	const struct rustls_certified_key *key = identity("client");
	const struct rustls_client_config *config = NULL;
	struct rustls_connection *connection = NULL;

	OK(rustls_web_pki_server_cert_verifier_builder_build(trust, &verifier));
	rustls_client_config_builder_set_server_verifier(builder, verifier);
	OK(rustls_client_config_builder_set_certified_key(builder, &key, 1));
	OK(rustls_client_config_builder_build(builder, &config));
	OK(rustls_client_connection_new(config, "server.test", &connection));
	rustls_client_config_free(config);
	rustls_certified_key_free(key);
	rustls_server_cert_verifier_free(verifier);
	rustls_web_pki_server_cert_verifier_builder_free(trust);
	rustls_root_cert_store_free(store);
	return connection;
}

static struct rustls_connection *server(void)
{
	const struct rustls_root_cert_store *store = authority();
	struct rustls_web_pki_client_cert_verifier_builder *trust = rustls_web_pki_client_cert_verifier_builder_new(store);
	struct rustls_client_cert_verifier *verifier = NULL;
	struct rustls_server_config_builder *builder = rustls_server_config_builder_new();
	const struct rustls_certified_key *key = identity("server");
	const struct rustls_server_config *config = NULL;
	struct rustls_connection *connection = NULL;

	OK(rustls_web_pki_client_cert_verifier_builder_build(trust, &verifier));
	rustls_server_config_builder_set_client_verifier(builder, verifier);
	OK(rustls_server_config_builder_set_certified_keys(builder, &key, 1));
	OK(rustls_server_config_builder_build(builder, &config));
	OK(rustls_server_connection_new(config, &connection));
	rustls_server_config_free(config);
	rustls_certified_key_free(key);
	rustls_client_cert_verifier_free(verifier);
	rustls_web_pki_client_cert_verifier_builder_free(trust);
	rustls_root_cert_store_free(store);
	return connection;
}

static rustls_io_result get(void *fd, uint8_t *buffer, size_t n, size_t *out)
{
	ssize_t got = read(*(int *)fd, buffer, n);

	*out = got < 0 ? 0 : got;
	return got < 0 ? errno : 0;
}

static rustls_io_result put(void *fd, const uint8_t *buffer, size_t n, size_t *out)
{
	ssize_t done = write(*(int *)fd, buffer, n);

	*out = done < 0 ? 0 : done;
	return done < 0 ? errno : 0;
}

static void handshake(struct rustls_connection *connection, int fd)
{
	size_t n;

	while (rustls_connection_is_handshaking(connection) || rustls_connection_wants_write(connection)) {
		while (rustls_connection_wants_write(connection))
			MUST(rustls_connection_write_tls(connection, put, &fd, &n) == 0);
		if (rustls_connection_is_handshaking(connection)) {
			MUST(rustls_connection_read_tls(connection, get, &fd, &n) == 0 && n > 0);
			OK(rustls_connection_process_new_packets(connection));
		}
	}
}

struct end {
	struct rustls_connection *connection;
	int fd;
	csync_status (*verb)(csync_engine *engine, const char *path);
	const char *path;
	csync_status status;
	int err;
	pthread_t thread;
};

static void *run(void *arg)
{
	struct end *e = arg;
	csync_transport transport;
	csync_engine *engine = NULL;

	MUST(csync_transport_from_rustls(e->connection, e->fd, e->fd, &transport) == CSYNC_OK);
	MUST(csync_engine_over_transport(&transport, NULL, &engine) == CSYNC_OK);
	e->status = e->verb(engine, e->path);
	e->err = csync_engine_errno(engine);
	csync_engine_free(engine);
	csync_transport_free_rustls(&transport);
	csync_transport_free_rustls(&transport);
	return NULL;
}

static void *run_handshake(void *arg)
{
	struct end *e = arg;

	handshake(e->connection, e->fd);
	return NULL;
}

static void connect_both(struct end *here, struct end *there)
{
	int s[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	*here = (struct end){ .connection = client(), .fd = s[0] };
	*there = (struct end){ .connection = server(), .fd = s[1] };
	MUST(pthread_create(&there->thread, NULL, run_handshake, there) == 0);
	handshake(here->connection, here->fd);
	pthread_join(there->thread, NULL);
}

static void disconnect(struct end *e)
{
	rustls_connection_free(e->connection);
	if (e->fd >= 0)
		close(e->fd);
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	MUST(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static int passed;

/* A new file, then the same with changes. */
static void files(void)
{
	enum { SIZE = 5000000 };
	unsigned char *from = malloc(SIZE), *to = malloc(SIZE + 1);
	struct end here, there;

	connect_both(&here, &there);
	for (size_t i = 0; i < SIZE; i++)
		from[i] = i * i >> 7;
	for (int round = 0; round < 3; round++) {
		from[SIZE / 3 * round + 5] ^= 0xff;
		write_file("from", from, SIZE);
		here.verb = round == 1 ? csync_engine_pull : csync_engine_push;
		there.verb = round == 1 ? csync_engine_push : csync_engine_pull;
		here.path = round == 1 ? "to" : "from";
		there.path = round == 1 ? "from" : "to";
		MUST(pthread_create(&there.thread, NULL, run, &there) == 0);
		run(&here);
		pthread_join(there.thread, NULL);
		MUST(here.status == CSYNC_OK && there.status == CSYNC_OK);
		MUST(load("to", to, SIZE + 1) == SIZE && memcmp(from, to, SIZE) == 0);
		passed++;
	}
	disconnect(&here);
	disconnect(&there);
	free(from);
	free(to);
}

/* The peer is gone: without a word, and with bytes that are none of TLS's. */
static void errors(void)
{
	for (int garbage = 0; garbage < 2; garbage++) {
		struct end here, there;

		connect_both(&here, &there);
		if (garbage)
			MUST(write(there.fd, "\x17\x03\x03\xff\xff", 5) == 5);
		else
			shutdown(there.fd, SHUT_WR);
		here.verb = csync_engine_pull;
		here.path = "to";
		run(&here);
		MUST(here.status == CSYNC_E_CONNECTION);
		MUST(here.err == (garbage ? EPROTO : ECONNABORTED));
		disconnect(&here);
		disconnect(&there);
		passed++;
	}
}

static void arguments(void)
{
	csync_transport transport;
	struct end here, there;

	connect_both(&here, &there);
	MUST(csync_transport_from_rustls(NULL, here.fd, here.fd, &transport) == CSYNC_E_ARGUMENT);
	MUST(csync_transport_from_rustls(here.connection, -1, here.fd, &transport) == CSYNC_E_ARGUMENT);
	MUST(csync_transport_from_rustls(here.connection, here.fd, 150, &transport) == CSYNC_E_ARGUMENT);
	MUST(csync_transport_from_rustls(here.connection, here.fd, here.fd, NULL) == CSYNC_E_ARGUMENT);
	csync_transport_free_rustls(NULL);
	disconnect(&here);
	disconnect(&there);
	passed++;
}

int main(int argc, char **argv)
{
	char scratch[] = "/tmp/over-rustls-XXXXXX";

	MUST(argc == 2);
	directory = realpath(argv[1], NULL);
	MUST(directory && mkdtemp(scratch) && chdir(scratch) == 0);
	files();
	errors();
	arguments();
	unlink("from");
	unlink("to");
	MUST(chdir("/") == 0 && rmdir(scratch) == 0);
	free((void *)directory);
	printf("over-rustls: %d passed, 0 failed\n", passed);
	return 0;
}
