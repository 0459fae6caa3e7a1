/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the simulation's test programs: SIM_TEST(name) { ... } is a test.  They run in their
 * order, in one process, each with a world of its own.  "PROGRAM NAME..." runs those only. */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct sim_test {
	const char *name;
	void (*fn)(void);
	int line;
	struct sim_test *next;
};

/* All tests of a program are in one file. */
#define SIM_TEST(test)                                                                             \
	static void test_##test(void);                                                             \
	__attribute__((constructor)) static void add_##test(void)                                  \
	{                                                                                          \
		static struct sim_test t = { .name = #test, .fn = test_##test, .line = __LINE__ }; \
                                                                                                   \
		sim_test_add(&t);                                                                  \
	}                                                                                          \
	static void test_##test(void)
void sim_test_add(struct sim_test *test);

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
/* Have @fn called at the end of each test. */
void sim_test_at_end(void (*fn)(void));
/* Run @fn with @n seeds from 1 on, and say how many passed.  In the environment SIM_SEED is the
 * first seed, and alone the only one; SIM_SEEDS a number of seeds; SIM_SECONDS the time to run as
 * many as fit.  @name stands in front of the seed when a run fails. */
void sim_test_seeds(const char *name, uint64_t n, void (*fn)(uint64_t seed));
/* What main() does; sim-main.c has one for programs without one of their own. */
int sim_test_main(int argc, char **argv);

#endif
