/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls.  filter.c makes the filter with libseccomp; filter-none.c stands in
 * its place in a build without a filter.  Main thread unless a function says otherwise. */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>
#include <stddef.h>

/* True if this build has a filter.  Else filter_missing() says why not. */
bool filter_built(void);
const char *filter_missing(void);
/* Have each call that filter-calls.c does not allow fail with EPERM and be counted (denied.h), in
 * all threads, for ever; @let_through: count the call, and make it.  0, or -errno, which is
 * logged. */
int filter_load(bool let_through);
/* Write the name of system call @nr into @name, or its number. */
void filter_call_name(int nr, char *name, size_t len);

#endif
