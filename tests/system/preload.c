/*
 * A preload for the real csync2 (LD_PRELOAD), to bring about in a second what takes hours:
 *
 *   LAB_SEQUENCE=N   after the TLS handshake both record counters stand at N. Near 2^24 GnuTLS
 *                    changes its keys; both ends have to count alike, so both preload this.
 *   LAB_KEY_UPDATE=N after every N records that it sends, GnuTLS changes its keys; with LAB_KEY_UPDATE_PEER it
 *                    asks the peer to do the same (eight times a second at most: GnuTLS takes no more).
 *   LAB_TICK=USEC    a signal every USEC microseconds whose handler does not restart system
 *                    calls, as a library in the same process might have installed one. From
 *                    the start, or with LAB_TICK_FROM=accept from the first connection on.
 *   LAB_BUFFER=BYTES the buffers of every socket, as small as the system lets them be below this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

typedef int handshake_function(gnutls_session_t);
typedef ssize_t send_function(gnutls_session_t, const void *, size_t);
typedef int accept_function(int, __SOCKADDR_ARG, socklen_t *restrict);
typedef int socket_function(int, int, int);

/* The function of this name that the program would have called without us. */
static void find_real(const char *name, void *function, size_t size)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	if (!symbol)
		abort();
	memcpy(function, &symbol, size);
}

static void set_counters(gnutls_session_t session, uint64_t value)
{
	unsigned char sequence[8];

	for (int i = 7; i >= 0; i--, value >>= 8)
		sequence[i] = value & 0xff;
	gnutls_record_set_state(session, 0, sequence);
	gnutls_record_set_state(session, 1, sequence);
}

int gnutls_handshake(gnutls_session_t session)
{
	static handshake_function *real;
	const char *start = getenv("LAB_SEQUENCE");
	int result;

	if (!real)
		find_real("gnutls_handshake", &real, sizeof(real));
	result = real(session);
	if (result == GNUTLS_E_SUCCESS && start)
		set_counters(session, strtoull(start, NULL, 10));
	return result;
}

ssize_t gnutls_record_send(gnutls_session_t session, const void *data, size_t size)
{
	static send_function *real;
	static unsigned long sent;
	const char *every = getenv("LAB_KEY_UPDATE");

	if (!real)
		find_real("gnutls_record_send", &real, sizeof(real));
	if (every && ++sent % strtoul(every, NULL, 10) == 0)
		gnutls_session_key_update(session, getenv("LAB_KEY_UPDATE_PEER") ? GNUTLS_KU_PEER : 0);
	return real(session, data, size);
}

static void on_tick(int number)
{
	(void)number;
}

/* SIGUSR1 and a timer of its own: alarm() belongs to csync2's database. */
static void start_ticking(void)
{
	const char *text = getenv("LAB_TICK");
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = on_tick };
	struct itimerspec times = { 0 };
	timer_t timer;

	if (!text)
		return;
	times.it_interval.tv_nsec = times.it_value.tv_nsec = 1000 * strtol(text, NULL, 10);
	if (sigaction(SIGUSR1, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &times, NULL))
		abort();
}

__attribute__((constructor)) static void start(void)
{
	if (!getenv("LAB_TICK_FROM"))
		start_ticking();
}

/* (a socket that accept() gives has the buffers of the one that listens) */
int socket(int domain, int type, int protocol)
{
	static socket_function *real;
	const char *text = getenv("LAB_BUFFER");
	int result, size;

	if (!real)
		find_real("socket", &real, sizeof(real));
	result = real(domain, type, protocol);
	if (result >= 0 && text) {
		size = atoi(text);
		if (setsockopt(result, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) ||
		    setsockopt(result, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
			abort();
	}
	return result;
}

int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	static accept_function *real;
	int result;

	if (!real)
		find_real("accept", &real, sizeof(real));
	result = real(fd, address, length);
	if (result >= 0 && getenv("LAB_TICK_FROM"))
		start_ticking();
	return result;
}
