/*
 * csync_rs and a second Rust library in one program: each catches its own panics.
 *
 * No argument of csync_rs's functions makes it panic, but a broken clock does: the standard library refuses a time of
 * two billion nanoseconds.
 */
#include <csync_rs.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int neighbour_catches_its_panic(void);

static int clock_is_broken;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (syscall(SYS_clock_gettime, clock, time))
		return -1;
	if (clock_is_broken)
		time->tv_nsec = 2000000000;
	return 0;
}

static int engine_catches_its_panic(void)
{
	csync_engine *engine;
	csync_status status;
	int sockets[2], caught;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
	    csync_engine_over_descriptors(sockets[0], sockets[0], NULL, &engine) != CSYNC_OK)
		return 0;
	clock_is_broken = 1;
	status = csync_engine_signature(engine, "/dev/null/none");
	clock_is_broken = 0;
	printf("csync_rs: %s: %s\n", csync_status_text(status), csync_engine_error(engine));
	caught = status == CSYNC_E_INTERNAL && strstr(csync_engine_error(engine), "internal error") != NULL;
	csync_engine_free(engine);
	return caught;
}

int main(void)
{
	int ours = engine_catches_its_panic(), neighbour = neighbour_catches_its_panic(), again = engine_catches_its_panic();

	printf("panics caught: csync_rs %d, the neighbour %d, csync_rs again %d\n", ours, neighbour, again);
	return !(ours && neighbour && again);
}
