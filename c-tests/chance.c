#include "chance.h"
#include "ct.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;
static char found[80];
static size_t found_len;

unsigned chance(unsigned below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return below ? z % below : 0;
}

int one_in(unsigned n)
{
	return chance(n) == 0;
}

static long long number(const char *name, long long otherwise)
{
	const char *text = getenv(name);
	return text && *text ? atoll(text) : otherwise;
}

int rounds_seconds(void)
{
	return (int)number("FUZZ_SECONDS", 1) + 60;
}

/* Ahead of the end that the signal brings; whatever ends the process otherwise says so itself. */
static void say_which(int signal_number)
{
	ssize_t n = write(1, found, found_len);
	(void)n;
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

#ifdef __SANITIZE_ADDRESS__
void __asan_on_error(void);
void __asan_on_error(void)
{
	ssize_t n = write(1, found, found_len);
	(void)n;
}
#endif

void rounds(void (*round)(void))
{
	const long long first = number("FUZZ_SEED", 1);
#ifdef __SANITIZE_ADDRESS__ /* which says more of a wild pointer */
	const int stops[] = { SIGABRT, SIGALRM, SIGPIPE };
#else
	const int stops[] = { SIGABRT, SIGALRM, SIGPIPE, SIGSEGV, SIGBUS };
#endif
	const double end = seconds_now() + (double)number("FUZZ_SECONDS", 1);
	long long seed = first;

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		signal(stops[i], say_which);
	for (; seed == first || seconds_now() < end; seed++) {
		state = (uint64_t)seed << 20;
		found_len = (size_t)snprintf(found, sizeof(found), "found with FUZZ_SEED=%lld\n", seed);
		alarm(30); /* a round that hangs is one that is found */
		size_t made = bytes_made();
		round();
		bytes_free_since(made);
	}
	alarm(60);
	printf("count: %lld rounds from seed %lld on\n", seed - first, first);
}

static unsigned char odd_byte(void)
{
	static const unsigned char edges[] = { 0, 1, '\n', '\r', ' ', '-', '0', '9', 0x36, 0x41, 0x45, 0x54, 0x55, 0x7f, 0x80, 0xff };
	return one_in(2) ? edges[chance(sizeof(edges))] : chance(256);
}

struct bytes mutated(struct bytes b, struct bytes other)
{
	b = bytes_part(b, 0, b.n);
	for (unsigned i = chance(5); i; i--) {
		/* what stands at the front decides on the rest */
		size_t at = chance((one_in(2) && b.n > 40 ? 40 : b.n) + 1), len = chance(16);
		struct bytes middle;

		if (len > b.n - at)
			len = b.n - at;
		switch (chance(6)) {
		case 0: /* the end is gone */
			b.n = at;
			continue;
		case 1: /* a byte more */
			middle = bytes_fill(1, odd_byte());
			middle = bytes_join(middle, bytes_part(b, at, b.n - at));
			break;
		case 2: /* some are gone */
			middle = bytes_part(b, at + len, b.n - at - len);
			break;
		case 3: /* others in their place */
			for (size_t j = 0; j < len; j++)
				b.p[at + j] = odd_byte();
			continue;
		case 4: /* twice */
			middle = bytes_join(bytes_part(b, at, len), bytes_part(b, at, b.n - at));
			break;
		default: /* the end of the other */
			len = chance(other.n + 1);
			middle = bytes_part(other, len, other.n - len);
		}
		struct bytes all = bytes_join(bytes_part(b, 0, at), middle);
		bytes_free(b);
		b = all;
	}
	return b;
}
