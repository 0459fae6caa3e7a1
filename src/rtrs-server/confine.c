/* SPDX-License-Identifier: BSD-3-Clause */
/* Confines the running server, in this order: confine_begin() gives up capabilities before any
 * other thread runs; confine_calls() has filter.c filter the system calls of all threads, before
 * the first client is served.  From then on a denied call is counted by its thread, which may hold
 * any lock, and the main thread is woken by an eventfd and writes the lines.
 *
 * Possible failures: a host that allows no filter fails the start, and the log says what to do.
 *
 * The counts are atomic; each field stands for itself, so the line may name a thread of a later
 * call. */
#include <config.h>

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "loop.h"
#include "process.h"
#include "util.h"

/* ---- capabilities ---- */

/* What a running server of root may be asked for.  A server of another user has none of them. */
static const unsigned kept[] = {
	CAP_DAC_OVERRIDE,	/* exports that come later may belong to any user */
	CAP_DAC_READ_SEARCH,
	CAP_FOWNER,		/* a dead socket in a sticky directory is replaced */
	CAP_IPC_LOCK,		/* memory of new paths is registered */
	CAP_NET_BIND_SERVICE,	/* a reload may bring an address */
	CAP_SYS_NICE,		/* requests of real-time priority */
	CAP_SYS_PTRACE,		/* who has a locked file open */
};

/* @kept and what the exports of @conf need as long as they live.  An export that comes later finds
 * no more: a capability that was given up does not come back. */
static uint64_t needed_capabilities(const struct srv_conf *conf)
{
	uint64_t needed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		needed |= 1ULL << kept[i];
	for (unsigned i = 0; i < conf->nexports; i++)
		needed |= export_spec_capabilities(&conf->exports[i]->spec);
	return needed;
}

static int drop_capabilities(uint64_t needed)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &hdr, data) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].effective &= (uint32_t)(needed >> (32 * i));
		data[i].permitted &= (uint32_t)(needed >> (32 * i));
		data[i].inheritable = 0;	/* the ambient ones go with these */
	}
	return syscall(SYS_capset, &hdr, data) < 0 ? -errno : 0;
}

int confine_begin(const struct srv_conf *conf)
{
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		rc = -errno;
		log_err(NULL, "cannot set no_new_privs: %s", strerror(-rc));
		return rc;
	}
	rc = drop_capabilities(needed_capabilities(conf));
	if (rc)
		log_err(NULL, "cannot give up capabilities: %s", strerror(-rc));
	return rc;
}

/* ---- denied calls ---- */

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
static struct log_limit lines = LOG_LIMIT_INIT(20, 10000);

static int denied_open(bool let_through)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	lets_through = let_through;
	wake_fd = fd;
	return 0;
}

/* Note that thread @tid asked for system call @nr.  Any thread; safe in a signal handler. */
static void denied_note(int nr, pid_t tid)
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

uint64_t confine_denied(void)
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
	filter_call_name(d->nr, call, sizeof(call));
	log_event(LOG_LEVEL_WARN, LOG_FIELDS(CALL_DENIED), NULL,
		  "the system call %s of thread %d (%s) %s, %u times: %s", call, d->tid, thread,
		  lets_through ? "would be denied" : "is denied", n - d->told,
		  lets_through ? "--seccomp=log lets it through"
			       : "an attack, or a call that the filter does not know");
	d->told = n;
}

/* Write a line for each call that was denied since the last line about that call.  The rate of
 * lines is bounded; @last: this is the end, and all are told. */
static void denied_tell(bool last)
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
			 (unsigned long long)confine_denied());
}

static void denied_close(void)
{
	int fd = atomic_exchange(&wake_fd, -1);

	if (fd >= 0)
		close(fd);
}

/* ---- the filter of system calls ---- */

static struct loop_watch watch;

static bool denied_ready(struct loop_watch *w)
{
	denied_tell(false);
	return false;
}

/* Answer --seccomp=on and log. */
static int filter_calls(enum srv_seccomp how, struct loop *loop)
{
	int rc;

#ifndef HAVE_SECCOMP
	log_err(NULL, "--seccomp=%s: " FILTER_MISSING "; expected off", srv_seccomp_names[how]);
	return -EOPNOTSUPP;
#endif
	rc = denied_open(how == SRV_SECCOMP_LOG);
	if (rc) {
		log_err(NULL, "cannot open an eventfd: %s", fds_strerror(rc));
		return rc;
	}
	watch = (struct loop_watch){ .fd = wake_fd, .events = POLLIN, .ready = denied_ready };
	rc = loop_watch(loop, &watch);
	if (rc) {
		log_err(NULL, "cannot watch denied system calls: %s", strerror(-rc));
		return rc;
	}
	return filter_load(how == SRV_SECCOMP_LOG, denied_note);
}

int confine_calls(const struct srv_conf *conf, struct loop *loop)
{
	int rc;

	if (conf->seccomp == SRV_SECCOMP_OFF) {
#ifdef HAVE_SECCOMP
		log_info(NULL, "system calls are not filtered: --seccomp=off");
#else
		log_warn(NULL, "system calls are not filtered: " FILTER_MISSING);
#endif
		return 0;
	}
	rc = filter_calls(conf->seccomp, loop);
	if (!rc)
		log_info(NULL, "system calls are filtered: --seccomp=%s",
			 srv_seccomp_names[conf->seccomp]);
	return rc;
}

void confine_unwatch(void)
{
	if (watch.loop)
		loop_unwatch(&watch);
}

void confine_end(void)
{
	denied_tell(true);
	denied_close();
}
