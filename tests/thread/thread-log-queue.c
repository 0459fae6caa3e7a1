/* SPDX-License-Identifier: BSD-3-Clause */
/* A sink that blocks holds up nobody who logs: lines wait, further ones are counted, and the count
 * is logged. */
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "log.h"
#include "thread.h"

#define ROOM 4096u			/* lines that wait: LOG_QUEUE_MAX */
#define LOST 10u
#define CALLS 200u

static sem_t gate, seen;
static atomic_bool gated;
static atomic_uint lines, lost;
static unsigned next;			/* the number of the next line */
static struct timespec logged_until;
static char export[8] = "disk";

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static bool record(enum log_level level, const char *line, const struct log_fields *fields)
{
	unsigned n;

	if (gated) {
		sem_post(&seen);
		sem_wait(&gate);
	}
	if (sscanf(line, "%u lines of the log were lost", &n) == 1) {
		lost += n;
		sem_post(&seen);
		return true;
	}
	check(!fields->session && !strcmp(fields->export, "disk"));
	if (sscanf(line, "line %u", &n) == 1) {
		check(n == next++);
		check(!later(log_line_time(), logged_until));
	}
	lines++;
	return false;
}

static void sink(enum log_level level, const char *line)
{
}

static void log_line(unsigned n)
{
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(NONE, .export = export), NULL, "line %u", n);
}

/* The first line is in the hands of the thread, ROOM lines wait. */
static void test_blocked(void)
{
	gated = true;
	log_line(0);
	sem_wait(&seen);
	for (unsigned i = 1; i <= ROOM + LOST; i++)
		log_line(i);
	clock_gettime(CLOCK_REALTIME, &logged_until);
	strcpy(export, "gone");
	check(lines == 0);
	gated = false;
	sem_post(&gate);
	sem_wait(&seen);
	check(lines == ROOM + 1 && lost == LOST);
	strcpy(export, "disk");
}

static void *worker(void *arg)
{
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < CALLS; i++)
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(NONE, .export = export), NULL, "another");
	return NULL;
}

/* Nobody reads at the end, either. */
static void test_end(void)
{
	gated = true;
	log_line(next);
	sem_wait(&seen);
	log_end(NULL);
	log_line(next);
}

int main(void)
{
	sem_init(&gate, 0, 0);
	sem_init(&seen, 0, 0);
	log_init(sink, LOG_LEVEL_INFO);
	log_init_record(record);
	check(log_begin() == 0);
	test_blocked();
	lines = 0;
	run_threads(worker);
	log_end(NULL);
	check(lines == CALLS * NTHREADS && lost == LOST);
	check(log_begin() == 0);
	test_end();
	return 0;
}
