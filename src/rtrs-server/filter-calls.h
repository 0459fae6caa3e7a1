/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls of a running server.  Main thread. */
#ifndef FILTER_CALLS_H
#define FILTER_CALLS_H

#include <seccomp.h>

/* Allow these calls in @ctx, which denies all others.  0, or -errno with the name of the call in
 * @failed. */
int filter_calls_add(scmp_filter_ctx ctx, const char **failed);

#endif
