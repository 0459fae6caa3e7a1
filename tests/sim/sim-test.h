/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the simulation's test programs: named tests, one after another in one process, each
 * with a world of its own.  "PROGRAM NAME..." runs those only. */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct sim_test {
	const char *name;
	void (*fn)(void);
};

/* A failed check ends the program: what follows would only be noise. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			sim_test_failed(__FILE__, __LINE__, #cond);                                \
		}                                                                                  \
	} while (0)

_Noreturn void sim_test_failed(const char *file, int line, const char *what);
/* What runs from now on, to be told when it fails, by an abort, too. */
void sim_test_named(const char *name);
/* An operation whose outcome was compared with what is legal has ended: sim_test_seeds() says how
 * many did. */
void sim_test_judged(void);
/* Run @fn with @n seeds from 1 on, and say how many passed.  In the environment SIM_SEED is the
 * first seed, and alone the only one; SIM_SEEDS a number of seeds; SIM_SECONDS the time to run as
 * many as fit.  @name stands in front of the seed when a run fails. */
void sim_test_seeds(const char *name, uint64_t n, void (*fn)(uint64_t seed));
int sim_test_main(int argc, char **argv, const struct sim_test *tests, size_t n);

#endif
