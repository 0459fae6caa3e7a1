/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters as JSON (man/rtrsctl.pod, "stats").  Any thread.  NULL: no memory. */
#ifndef CTL_STAT_H
#define CTL_STAT_H

#include <jansson.h>

#include "counter.h"

/* The histogram @h: {"p50_ns": ..., "log2_ns": [...]}. */
json_t *ctl_stat_hist(const struct hist *h);
/* The counters of @stat: {"stats": a member for each operation}. */
json_t *ctl_stat_io(const struct io_stat *stat);

#endif
