/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the IO of a path: each connection has its own, and the path adds them up.
 *
 * A request is counted by the thread that answers it, in memory that no other thread writes; its
 * time is that from arrival to answer, and the clock is read once for all requests of a poll and
 * once for all answers of a pass.  The control thread reads the counters where they are, without a
 * message to anybody: a thread that the storage holds would not answer one, and then it is that one
 * asks.  So what is read may miss requests that are being counted.  A reset remembers what was
 * there and takes it away from what is read later.  Control thread. */
#ifndef SRV_STAT_H
#define SRV_STAT_H

#include "io-stat.h"

struct srv_path;

/* What was counted since the last reset, into @sum. */
void srv_stat_path(const struct srv_path *path, struct io_stat *sum);
/* 0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);

#endif
