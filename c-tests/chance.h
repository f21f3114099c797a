/*
 * Cases that go on for as long as one likes with what nobody chose: a moment in each run of the suite, FUZZ_SECONDS
 * seconds where that is said, from the number FUZZ_SEED (1) on. Every round begins anew from its own number, which is
 * printed where something is found: FUZZ_SEED=that number begins with it.
 */
#ifndef CHANCE_H
#define CHANCE_H

#include "files.h"

#include <stdint.h>

/* Numbers without a pattern, the same for the same seed. */
unsigned chance(unsigned below);
int one_in(unsigned n);
/* As the last part of a case: runs rounds, each with all of chance() drawn from its number, until the time is over. */
void rounds(void (*round)(void));
/* The time limit of a case that does this. */
int rounds_seconds(void);
/* Something near `b`, of which a part may come from `other`. */
struct bytes mutated(struct bytes b, struct bytes other);

#endif
