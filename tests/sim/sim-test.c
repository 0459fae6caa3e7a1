/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the tests of a program in order.  Owns their list, and the name of the running one. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim-fabric.h"
#include "sim-test.h"

static const char *running = "?";
static uint64_t njudged;
static struct sim_test *tests;		/* in the order of the file */
static void (*at_end)(void);		/* of each test, or NULL */

static void on_abort(int sig)
{
	static const char text[] = "aborted in ";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDERR_FILENO, running, strlen(running)) < 0 ||
	    write(STDERR_FILENO, "\n", 1) < 0)
		_exit(1);
	/* it may have come from outside: tests/run-test.sh, when it hangs */
	raise(sig);
}

void sim_test_named(const char *name)
{
	struct sigaction sa = { .sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND };

	running = name;
	sigaction(SIGABRT, &sa, NULL);
	printf("# %s\n", name);
	fflush(stdout);
}

_Noreturn void sim_test_failed(const char *file, int line, const char *what)
{
	fflush(stdout);
	fprintf(stderr, "%s:%d: %s: failed: %s\n", file, line, running, what);
	exit(1);
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s ? strtoull(s, NULL, 0) : otherwise;
}

struct seed_run {
	void (*fn)(uint64_t seed);
	uint64_t seed;
};

static void *seed_thread(void *arg)
{
	const struct seed_run *run = arg;

	run->fn(run->seed);
	return NULL;
}

void sim_test_judged(void)
{
	njudged++;
}

/* On a thread of its own: what the programs keep for a thread is new for each seed. */
static void seed_run(const struct seed_run *run)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, seed_thread, (void *)(uintptr_t)run))
		abort();
	pthread_join(thread, NULL);
}

void sim_test_seeds(const char *name, uint64_t n, void (*fn)(uint64_t seed))
{
	uint64_t first = from_env("SIM_SEED", 1), seed = first;
	uint64_t seconds = from_env("SIM_SECONDS", 0);
	time_t begin = time(NULL);
	char text[64];

	n = from_env("SIM_SEEDS", getenv("SIM_SEED") ? 1 : n);
	/* The real time decides only how many run. */
	while (seconds ? (uint64_t)(time(NULL) - begin) < seconds : seed < first + n) {
		snprintf(text, sizeof(text), "%sSIM_SEED=%llu", name, (unsigned long long)seed);
		sim_test_named(text);
		seed_run(&(struct seed_run){ .fn = fn, .seed = seed++ });
	}
	printf("%llu seeds passed, %llu operations\n", (unsigned long long)(seed - first),
	       (unsigned long long)njudged);
}

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return argc == 1;
}

void sim_test_add(struct sim_test *test)
{
	struct sim_test **p = &tests;

	while (*p && (*p)->line < test->line)
		p = &(*p)->next;
	test->next = *p;
	*p = test;
}

void sim_test_at_end(void (*fn)(void))
{
	at_end = fn;
}

int sim_test_main(int argc, char **argv)
{
	unsigned caps;
	size_t ran = 0;

	sim_offer_from_env();
	caps = sim_caps();
	for (const struct sim_test *t = tests; t; t = t->next) {
		if (!wanted(argc, argv, t->name))
			continue;
		sim_test_named(t->name);
		t->fn();
		if (at_end)
			at_end();
		sim_offer_again(caps);
		ran++;
	}
	if (!ran) {
		fprintf(stderr, "no such test\n");
		return 1;
	}
	printf("%zu tests passed\n", ran);
	return 0;
}
