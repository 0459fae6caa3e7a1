/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counts of denied system calls, and an eventfd that wakes the main thread.  The counts
 * are atomic; each field stands for itself, so the line may name a thread of a later call. */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "denied.h"
#include "log.h"

/* Calls with larger numbers share the last place. */
#define PLACES 512u

static struct denied {
	atomic_uint n;
	atomic_int nr;			/* of the last one */
	atomic_int tid;			/* likewise */
	unsigned told;			/* main thread */
} denied[PLACES];
static atomic_ullong count;
static atomic_int wake_fd = -1;
static bool lets_through;
static void (*name_of)(int nr, char *name, size_t len);
static struct log_limit lines = LOG_LIMIT_INIT(20, 10000);

int denied_open(bool let_through, void (*call_name)(int nr, char *name, size_t len))
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	lets_through = let_through;
	name_of = call_name;
	wake_fd = fd;
	return 0;
}

int denied_fd(void)
{
	return wake_fd;
}

void denied_note(int nr, pid_t tid)
{
	struct denied *d = &denied[nr < 0 || (unsigned)nr >= PLACES ? PLACES - 1 : (unsigned)nr];
	uint64_t one = 1;
	int err = errno;

	d->nr = nr;
	d->tid = tid;
	/* ORDER: who sees the count sees a number and a thread. */
	d->n++;
	count++;
	/* A full or closed eventfd: the main thread looks, or has looked for the last time. */
	if (write(wake_fd, &one, sizeof(one)) < 0)
		errno = 0;
	errno = err;
}

uint64_t denied_count(void)
{
	return count;
}

/* The name of thread @tid; "?" if it has ended. */
static void thread_name(pid_t tid, char *name, size_t len)
{
	char path[48];
	FILE *f;

	snprintf(name, len, "?");
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(name, (int)len, f))
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
}

static void tell_one(struct denied *d, unsigned n, bool last)
{
	char thread[32], call[64];

	if (!last && !log_limit_pass(&lines, NULL))
		return;
	thread_name(d->tid, thread, sizeof(thread));
	name_of(d->nr, call, sizeof(call));
	log_event(LOG_LEVEL_WARN, LOG_FIELDS(CALL_DENIED), NULL,
		  "the system call %s of thread %d (%s) %s, %u times: %s", call, d->tid, thread,
		  lets_through ? "would be denied" : "is denied", n - d->told,
		  lets_through ? "--seccomp=log lets it through"
			       : "an attack, or a call that the filter does not know");
	d->told = n;
}

void denied_tell(bool last)
{
	uint64_t calls;

	if (wake_fd < 0)
		return;
	/* Nothing to read: somebody has told meanwhile. */
	if (read(wake_fd, &calls, sizeof(calls)) < 0 && !last)
		return;
	for (unsigned i = 0; i < PLACES; i++) {
		unsigned n = denied[i].n;

		if (n != denied[i].told)
			tell_one(&denied[i], n, last);
	}
	if (last && lets_through)
		log_info(NULL, "--seccomp=log: %llu system calls would have been denied",
			 (unsigned long long)denied_count());
}

void denied_close(void)
{
	int fd = atomic_exchange(&wake_fd, -1);

	if (fd >= 0)
		close(fd);
}
