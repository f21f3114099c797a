/*
 * A program that has none of csync2's symbols: it links, and what needs no connection works; what needs one fails
 * with an error and goes on. No cmocka, nothing of the suite's frame: only the library and libc.
 */
#include "csync_rs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures;

#define CHECK(e) \
	do { \
		if (!(e)) { \
			fprintf(stderr, "test_no_host.c:%d: %s (%s)\n", __LINE__, #e, strerror(errno)); \
			failures++; \
		} \
	} while (0)

int main(void)
{
	char where[] = "/tmp/ct-XXXXXX", dir[64], base[64], temp[] = "tXXXXXX";
	FILE *f, *sig = NULL;
	int fd;

	alarm(20);
	CHECK(mkdtemp(where) && chdir(where) == 0);

	split_dirname_basename(dir, base, "/some/path/foo");
	CHECK(!strcmp(dir, "/some/path") && !strcmp(base, "foo"));
	CHECK(mkpath("a/b/file", 0755) == 0);
	CHECK(access("a/b", X_OK) == 0);
	fd = do_mkstemp(temp, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, "hello", 5) == 5);
	close(fd);
	CHECK(csync_rs_fsync(1) == 0);
	CHECK(csync_rs_fsync(0) == 1);

	CHECK(csync_rs_sigfile(temp, &sig) == 0 && sig);
	if (sig) {
		CHECK(ftell(sig) == 32);
		fclose(sig);
	}
	CHECK(csync_rs_sigfile("%t%none", &sig) == 0 && !sig);

	/* no connection */
	errno = 0;
	CHECK(csync_rs_check(temp, 1) == -1 && errno);
	errno = 0;
	CHECK(csync_rs_delta(temp) == -1 && errno);
	errno = 0;
	CHECK(csync_rs_patch(temp) == -1 && errno);
	f = tmpfile();
	errno = 0;
	CHECK(csync_recv_file(f) == -1 && errno);
	fclose(f);
	csync_rs_sig(temp);
	csync_engine *engine = NULL;
	CHECK(csync_engine_over_host(NULL, &engine) == CSYNC_OK && engine);
	CHECK(csync_engine_signature(engine, temp) == CSYNC_E_CONNECTION);
	CHECK(csync_engine_errno(engine) == ENOTCONN && strstr(csync_engine_error(engine), temp));
	csync_engine_free(engine);

	unlink(temp);
	rmdir("a/b");
	rmdir("a");
	CHECK(chdir("/") == 0 && rmdir(where) == 0);
	if (!failures)
		puts("test_no_host: passed");
	return failures ? 1 : 0;
}
