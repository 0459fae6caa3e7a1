/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes rights away from the running process: a mistake in the server gives an attacker little more
 * than the exports.  doc/promises.md, "What the server's process may do", has the promises.
 *
 * Main thread, which is the control thread.  What fails is told in the log. */
#ifndef CONFINE_H
#define CONFINE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf.h"

struct loop;

/* Give up what only a start needs: rights that an executed program could bring, and capabilities,
 * but those that each server may need and those that the exports of @conf need.  After the rings,
 * which a host may give to privileged processes only; before any other thread runs, also of the
 * storage: threads inherit this.  0 or -errno. */
int confine_begin(const struct srv_conf *conf);
/* Deny each system call that a running server does not make, to all threads and to threads to come,
 * as @conf says.  @loop is that of the main thread, and tells the log about denied calls.  Before
 * the first client is served.  0 or -errno. */
int confine_calls(const struct srv_conf *conf, struct loop *loop);
/* Take the watch of confine_calls() off its loop.  Idempotent; nothing without confine_calls(). */
void confine_unwatch(void);
/* Tell the log about denied calls that it has not been told yet.  The loop has ended. */
void confine_end(void);
/* How often calls were denied, or let through, since the start.  Any thread. */
uint64_t confine_denied(void);

/* ---- filter.c, which has libseccomp; FILTER_MISSING says why a build has none ---- */

#ifdef HAVE_SECCOMP

/* Have each call that the list of filter.c does not allow fail with EPERM, in all threads, for
 * ever, and call @note, any thread, maybe in a signal handler.  @let_through: make the call, and
 * call @note.  0, or -errno, which is logged. */
int filter_load(bool let_through, void (*note)(int nr, pid_t tid));
/* Write the name of system call @nr into @name, or its number. */
void filter_call_name(int nr, char *name, size_t len);

#else /* nobody calls these in a build without a filter */

static inline int filter_load(bool let_through, void (*note)(int nr, pid_t tid))
{
	return -EOPNOTSUPP;
}

static inline void filter_call_name(int nr, char *name, size_t len)
{
	*name = '\0';
}

#endif

#endif
