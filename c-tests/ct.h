/*
 * The frame of the suite.
 *
 * Every case runs in a forked child, in a directory of its own, with a time limit: a crash, a hang or an exit()
 * is a result like any other. Inside the child cmocka's assertions are used; outside, cmocka counts.
 *
 * The same cases run against the library and against csync2's original rsync.c. Each says what the original does:
 *
 *   SAME(f)            the original passes too
 *   FAULT(f, how)      the original must fail, in one of the ways named (WRONG | FATAL | CRASH | HANG)
 *   NOT_SHOWN(f, why)  there is a fault, but this case cannot make it visible: it passes on the original
 *   CANNOT(f, why)     the case is not run on the original
 *
 * Lines of a case's output that begin with "count: " are shown even where it passes.
 *
 * A case's name begins with the identifier of the fault it covers (s4_..., w1_..., t3_..., h2_...), where it covers one.
 */
#ifndef CT_H
#define CT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* cmocka 2 has the compiler check the types, cmocka 1 casts: what was received is unsigned char. */
#undef assert_string_equal
#define assert_string_equal(a, b) \
	_assert_string_equal((const char *)(a), (const char *)(b), __FILE__, __LINE__)

enum ct_original { CT_SAME, CT_FAULT, CT_NOT_SHOWN, CT_CANNOT };

/* The ways in which a case fails. */
enum {
	WRONG = 1, /* an assertion did not hold */
	FATAL = 2, /* csync_fatal was called: the whole process would have ended */
	CRASH = 4, /* killed by a signal */
	HANG = 8,  /* not finished in time */
};

/* What a case needs. */
enum {
	CT_LARGE = 1,      /* too slow under valgrind */
	CT_NO_CHECKER = 2, /* does something that valgrind or a sanitizer forbids */
	CT_SOME_VERSIONS = 4, /* a fault of the original with some versions of librsync, and not with others */
};

struct ct_case {
	const char *name;
	void (*body)(void);
	const void *arg; /* for bodies shared by the rows of a table; see ct_arg */
	enum ct_original original;
	int shows;
	const char *why;
	int flags;
	int seconds; /* the time limit, where it is not the usual one */
};

#define SAME(f) { .name = #f, .body = f, .original = CT_SAME }
#define FAULT(f, how) { .name = #f, .body = f, .original = CT_FAULT, .shows = (how) }
#define NOT_SHOWN(f, reason) { .name = #f, .body = f, .original = CT_NOT_SHOWN, .why = (reason) }
#define CANNOT(f, reason) { .name = #f, .body = f, .original = CT_CANNOT, .why = (reason) }
/* The same with flags, and with a name and an argument of their own. */
#define SAME_F(f, fl) { .name = #f, .body = f, .original = CT_SAME, .flags = (fl) }
#define FAULT_F(f, how, fl) { .name = #f, .body = f, .original = CT_FAULT, .shows = (how), .flags = (fl) }
#define CANNOT_F(f, reason, fl) { .name = #f, .body = f, .original = CT_CANNOT, .why = (reason), .flags = (fl) }
#define SAME_ROW(n, f, a) { .name = (n), .body = f, .arg = (a), .original = CT_SAME }
#define FAULT_ROW(n, f, a, how) { .name = (n), .body = f, .arg = (a), .original = CT_FAULT, .shows = (how) }
#define FAULT_ROW_F(n, f, a, how, fl) \
	{ .name = (n), .body = f, .arg = (a), .original = CT_FAULT, .shows = (how), .flags = (fl) }
#define CANNOT_ROW(n, f, a, reason) { .name = (n), .body = f, .arg = (a), .original = CT_CANNOT, .why = (reason) }

extern const void *ct_arg;

int ct_run(const char *program, const struct ct_case *cases, size_t count);
#define CT_MAIN(program, cases) \
	int main(void) { return ct_run(program, cases, sizeof(cases) / sizeof(cases[0])); }

/* In a case: not possible here (not root, no such file system, ...). */
void ct_skip(const char *why) __attribute__((noreturn));
/* rm -rf, also of paths that are too long for the kernel. */
void ct_remove_tree(const char *path);
/* True when the suite runs under valgrind. */
int ct_valgrind(void);

/* The exit status by which csync_fatal ends a case. */
#define CT_EXIT_FATAL 97
#define CT_EXIT_SKIP 98

#endif
