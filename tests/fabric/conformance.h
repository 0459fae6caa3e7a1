/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that the files of the suite share.  A test is for a promise of fabric.h or a corner of
 * setting up: cf-setup.c; cf-queue.c: order, completion, failure; cf-data.c: what arrives where;
 * cf-mw.c: windows, and where a device has none they say so; cf-thread.c. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "harness.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* False, with a word of it, if the device of @p has no windows of @type. */
bool has_windows(const struct pair *p, enum ibv_mw_type type);
/* @n bytes were placed after the key of a window was taken away. */
void check_late(unsigned n);
/* The connection failed on both ends: nothing succeeded at b. */
void check_refused(struct world *w, struct pair *p);

#endif
