/* csync_tls_config_load: every kind of key and format; every fault names its file and says what to do. */
#include "sessions.h"

#include <sys/stat.h>

static char told[1000];
static int told_level = -1;

static void tell(void *userdata, int level, const char *message)
{
	assert_ptr_equal(userdata, told);
	told_level = level;
	snprintf(told, sizeof(told), "%s", message);
}

static csync_tls_config *empty(void)
{
	csync_tls_options o = tls_options_none();
	csync_tls_config *config = NULL;

	o.log = tell;
	o.userdata = told;
	told[0] = 0;
	assert_int_equal(csync_tls_config_new(&o, &config), CSYNC_OK);
	return config;
}

static void formats_and_kinds(void)
{
	static const char *const rows[][2] = {
		{ "rsa2048-cert.pem", "rsa2048-key.pem" }, { "rsa2048-cert.der", "rsa2048-pkcs1-key.pem" },
		{ "rsa2048-cert.pem", "rsa2048-pkcs1-key.der" }, { "rsa3072-cert.pem", "rsa3072-key.pem" },
		{ "rsa4096-cert.pem", "rsa4096-key.pem" }, { "p256-cert.pem", "p256-key.pem" },
		{ "p256-cert.der", "p256-sec1-key.pem" }, { "p256-cert.pem", "p256-sec1-key.der" },
		{ "p256-all-in-one.pem", "p256-all-in-one.pem" }, { "p384-cert.pem", "p384-key.pem" },
		{ "ed25519-cert.pem", "ed25519-key.pem" }, { "ed25519-cert.der", "ed25519-key.der" },
		{ "signed-server-cert.pem", "signed-server-key.pem" },
	};
	csync_tls_config *config = empty();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char c[300], k[300];
		snprintf(c, sizeof(c), "%s/%s", CT_IDENTITIES, rows[i][0]);
		snprintf(k, sizeof(k), "%s/%s", CT_IDENTITIES, rows[i][1]);
		if (csync_tls_config_load(config, c, k) != CSYNC_OK)
			fail_msg("%s %s: %s", c, k, csync_tls_config_error(config));
		assert_string_equal(csync_tls_config_error(config), "");
		assert_string_equal(told, "");
	}
	csync_tls_config_free(config);
}

static void small_rsa_is_taken_with_a_warning(void)
{
	static const char *const endings[] = { "rsa1024-key.pem", "rsa1024-pkcs1-key.pem" };

	for (int i = 0; i < 2; i++) {
		csync_tls_config *config = empty();
		char k[300];
		snprintf(k, sizeof(k), "%s/%s", CT_IDENTITIES, endings[i]);
		assert_int_equal(csync_tls_config_load(config, identity_file("rsa1024", "cert.pem"), k), CSYNC_OK);
		assert_int_equal(told_level, 0);
		assert_non_null(strstr(told, k));
		assert_non_null(strstr(told, "RSA of 1024 bits"));
		csync_tls_config_free(config);
	}
}

/* The last argument is the file that must be named, as 0 or 1 of the two. */
#define refused(config, c, k, text, which) check_refused((config), (c), (k), (text), (which), __LINE__)
static void check_refused(csync_tls_config *config, const char *c, const char *k, const char *text, int which, int line)
{
	csync_status s = csync_tls_config_load(config, c, k);
	const char *error = csync_tls_config_error(config);
	size_t n = strlen(which ? k : c);

	if (s != CSYNC_E_FILE || !strstr(error, text) || strncmp(error, which ? k : c, n) || error[n] != ':')
		fail_msg("line %d: %d, `%s`, expected `%s`", line, s, error, text);
}

static void every_fault_has_its_words(void)
{
	csync_tls_config *config = empty();
	char c[512], k[512];
	struct bytes pem;

	snprintf(c, sizeof(c), "%s", identity_file("p256", "cert.pem"));
	snprintf(k, sizeof(k), "%s", identity_file("p256", "key.pem"));
	refused(config, "d/none", k, "No such file", 0);
	refused(config, c, "d/none", "No such file", 1);
	refused(config, "d", k, "Is a directory", 0);
	refused(config, "", k, "No such file", 0);
	write_file("d/empty", bytes_text(""));
	refused(config, "d/empty", k, "no certificate in it", 0);
	refused(config, c, "d/empty", "no key in it", 1);
	refused(config, k, k, "no certificate in it", 0);
	refused(config, c, c, "no key in it", 1);
	refused(config, c, identity_file("p256-other", "key.pem"), "not the key of the certificate", 1);
	refused(config, c, identity_file("rsa1024", "key.pem"), "not the key of the certificate", 1);
	refused(config, identity_file("rsa1024", "cert.pem"), identity_file("rsa1024-other", "key.pem"),
		"not the key of the certificate", 1);
	refused(config, identity_file("rsa2048", "cert.pem"), identity_file("rsa2048", "encrypted-key.pem"), "encrypted", 1);
	refused(config, c, identity_file("p256", "encrypted-key.pem"), "encrypted", 1);
	refused(config, identity_file("rsa768", "cert.pem"), identity_file("rsa768", "key.pem"), "RSA of 768 bits is too small", 1);
	refused(config, identity_file("p521", "cert.pem"), identity_file("p521", "key.pem"), "not supported", 1);
	/* damaged */
	pem = read_file(c);
	pem.p[pem.n / 2] ^= 1;
	write_file("d/damaged", pem);
	assert_int_equal(csync_tls_config_load(config, "d/damaged", k), CSYNC_E_FILE);
	write_file("d/cut", bytes_part(pem, 0, pem.n / 2));
	refused(config, "d/cut", k, "PEM", 0);
	write_file("d/der", bytes_text("0\x82 and so on"));
	refused(config, "d/der", k, "not the DER of a certificate", 0);
	refused(config, c, "d/der", "no key in it", 1);
	csync_tls_config_free(config);
}

static void null_arguments(void)
{
	csync_tls_config *config = empty();

	assert_int_equal(csync_tls_config_load(NULL, "a", "b"), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_tls_config_load(config, NULL, "b"), CSYNC_E_ARGUMENT);
	assert_int_equal(csync_tls_config_load(config, "a", NULL), CSYNC_E_ARGUMENT);
	csync_tls_config_free(config);
}

static void after_a_failure_it_is_as_it_was(void)
{
	struct ends e = ends_make(UNIX_SOCKETS, 0);
	csync_tls_config *config = config_of("p256", NULL);
	csync_tls *tls;

	refused(config, "d/none", "d/none", "No such file", 0);
	assert_int_equal(csync_tls_client(config, e.in[0], e.out[0], &tls), CSYNC_OK);
	csync_tls_free(tls);
	csync_tls_config_free(config);
}

static const struct ct_case cases[] = {
	OURS(formats_and_kinds),
	OURS(small_rsa_is_taken_with_a_warning),
	OURS(every_fault_has_its_words),
	OURS(null_arguments),
	OURS(after_a_failure_it_is_as_it_was),
};
CT_MAIN("test_tls_config_load", cases)
