/* What a program needs of an installed library: a file goes from one process to another. program FROM TO */
#include <csync_rs.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int transfer(int socket, const char *path, csync_status (*verb)(csync_engine *, const char *))
{
	csync_engine *engine;
	csync_status status = csync_engine_over_descriptors(socket, socket, NULL, &engine);

	if (status == CSYNC_OK) {
		status = verb(engine, path);
		if (status != CSYNC_OK)
			fprintf(stderr, "%s: %s\n", csync_status_text(status), csync_engine_error(engine));
		csync_engine_free(engine);
	}
	return status != CSYNC_OK;
}

int main(int argc, char **argv)
{
	int sockets[2], pushed, pulled;

	if (argc != 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 2;
	if (fork() == 0) {
		close(sockets[0]);
		return transfer(sockets[1], argv[2], csync_engine_pull);
	}
	close(sockets[1]);
	pushed = transfer(sockets[0], argv[1], csync_engine_push);
	if (wait(&pulled) < 0)
		return 2;
	return pushed || pulled;
}
