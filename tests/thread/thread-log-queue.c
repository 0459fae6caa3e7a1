/* SPDX-License-Identifier: BSD-3-Clause */
/* A sink that blocks holds up nobody who logs: lines wait, further ones are counted, and the count
 * is logged.  A thread of the log that is late, as on a machine that stood still, writes the last
 * lines. */
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "log.h"
#include "thread.h"

#define ROOM 4096u			/* lines that wait: LOG_QUEUE_MAX */
#define LOST 10u
#define CALLS 200u

static sem_t gate, seen;
static atomic_bool gated, slow;
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
	if (slow)
		nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
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

static void log_another(void)
{
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(NONE, .export = export), NULL, "another");
}

static void *worker(void *arg)
{
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < CALLS; i++)
		log_another();
	return NULL;
}

/* The linker's --wrap: as long as @late is true, the thread does not run on from its sleep. */
static atomic_bool late;
static sem_t asleep, awake;
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (!late)
		return __real_pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
	sem_post(&asleep);
	sem_wait(&awake);
	pthread_mutex_lock(lock);
	return 0;
}

static void *machine_goes_on(void *arg)
{
	/* Longer than log_end() waits for a reader, and its second look falls into the write. */
	nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 800000000 }, NULL);
	slow = true;
	late = false;
	sem_post(&awake);
	return NULL;
}

static void test_late(void)
{
	pthread_t machine;

	lines = 0;
	late = true;
	log_another();
	sem_wait(&asleep);
	log_another();
	check(lines == 1);
	check(pthread_create(&machine, NULL, machine_goes_on, NULL) == 0);
	log_end(NULL);
	check(lines == 2);
	slow = false;
	pthread_join(machine, NULL);
}

static bool let_go;

static void left(pthread_t thread)
{
	let_go = !pthread_equal(thread, pthread_self());
}

/* Nobody reads at the end, either. */
static void test_end(void)
{
	gated = true;
	log_line(next);
	sem_wait(&seen);
	log_end(left);
	check(let_go);
	log_line(next);
}

int main(void)
{
	sem_init(&gate, 0, 0);
	sem_init(&seen, 0, 0);
	sem_init(&asleep, 0, 0);
	sem_init(&awake, 0, 0);
	log_init(sink, LOG_LEVEL_INFO);
	log_init_record(record);
	check(log_begin() == 0);
	test_blocked();
	lines = 0;
	run_threads(worker);
	log_end(left);
	check(!let_go);
	check(lines == CALLS * NTHREADS && lost == LOST);
	check(log_begin() == 0);
	test_late();
	check(log_begin() == 0);
	test_end();
	return 0;
}
