/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls, which filter.c makes with libseccomp.  FILTER_MISSING says why a
 * build has none.  Main thread. */
#ifndef FILTER_H
#define FILTER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef HAVE_SECCOMP

/* Have each call that filter-calls.c does not allow fail with EPERM and be counted (denied.h), in
 * all threads, for ever; @let_through: count the call, and make it.  0, or -errno, which is
 * logged. */
int filter_load(bool let_through);
/* Write the name of system call @nr into @name, or its number. */
void filter_call_name(int nr, char *name, size_t len);

#else /* nobody calls these in a build without a filter */

static inline int filter_load(bool let_through)
{
	return -EOPNOTSUPP;
}

static inline void filter_call_name(int nr, char *name, size_t len)
{
	*name = '\0';
}

#endif

#endif
