/*
 * A link with a delay: what is sent in one network namespace arrives in the other half a round trip later.
 *
 * usage: link NAMESPACE NAMESPACE ROUND_TRIP_IN_MICROSECONDS
 *
 * In each namespace a device "link" appears; its addresses are the caller's affair. Prints "ready" and works until it
 * is ended. Needs root and /dev/net/tun.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_PACKET = 65536, PACKETS_AT_ONCE = 64 };

struct packet {
	struct packet *next;
	long long due; /* ns */
	size_t length;
	unsigned char bytes[];
};

/* One direction of the link. */
struct direction {
	int from, to;
	long long delay; /* ns */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

/* A device in a namespace; what is read from it was sent there. */
static int device_in(const char *name)
{
	char path[300];
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "link" };
	int home = open_or_die("/proc/self/ns/net", O_RDONLY), there, fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	there = open_or_die(path, O_RDONLY);
	if (setns(there, CLONE_NEWNET))
		die(path);
	fd = open_or_die("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (ioctl(fd, TUNSETIFF, &request))
		die("TUNSETIFF");
	if (setns(home, CLONE_NEWNET))
		die("the way back");
	close(there);
	close(home);
	return fd;
}

/* Takes what has been sent, to be handed on when it is due. Returns the new last packet's place. */
static struct packet **take(const struct direction *d, struct packet **end)
{
	static _Thread_local unsigned char buffer[LARGEST_PACKET];

	for (int i = 0; i < PACKETS_AT_ONCE; i++) {
		ssize_t length = read(d->from, buffer, sizeof(buffer));
		struct packet *p;

		if (length <= 0)
			break;
		p = malloc(sizeof(*p) + length);
		if (!p)
			die("malloc");
		*p = (struct packet){ .due = now() + d->delay, .length = length };
		memcpy(p->bytes, buffer, length);
		*end = p;
		end = &p->next;
	}
	return end;
}

static void *carry(void *argument)
{
	const struct direction *d = argument;
	struct packet *first = NULL, **end = &first;

	prctl(PR_SET_TIMERSLACK, 1); /* ns: the waits below are meant */
	for (;;) {
		struct pollfd p = { .fd = d->from, .events = POLLIN };
		long long wait = first ? first->due - now() : 0;
		struct timespec t = { .tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000 };

		if (first && wait <= 0) {
			struct packet *due = first;

			/* (a full device loses the packet, as a router would) */
			if (write(d->to, due->bytes, due->length) < 0 && errno != EAGAIN && errno != EIO)
				die("write");
			first = due->next;
			if (!first)
				end = &first;
			free(due);
		} else if (ppoll(&p, 1, first ? &t : NULL, NULL) > 0) {
			end = take(d, end);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: link NAMESPACE NAMESPACE ROUND_TRIP_IN_MICROSECONDS\n");
		return 2;
	}
	int a = device_in(argv[1]), b = device_in(argv[2]);
	long long delay = atoll(argv[3]) * 500;
	struct direction there = { a, b, delay }, back = { b, a, delay };
	pthread_t thread;

	if (pthread_create(&thread, NULL, carry, &there))
		die("pthread_create");
	puts("ready");
	fflush(stdout);
	carry(&back);
}
