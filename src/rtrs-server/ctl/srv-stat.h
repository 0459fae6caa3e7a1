/* SPDX-License-Identifier: BSD-3-Clause */
/* The IO of a path as its administrator sees it: counters, and the age of the oldest request.  Each
 * connection has counters, and the path adds these up.
 *
 * A request is counted by the thread of the answer, in memory that no other thread writes.  The
 * time of a request is from arrival to answer; the clock is read once for all requests of a poll
 * and once for all answers of a pass.
 *
 * The control thread reads the counters in place, without a message to any thread: a thread held
 * by the storage would not answer, and just then the counters matter.  So a reader may miss
 * requests that are being counted.  A reset remembers the counts, and later reads subtract the
 * remembered counts.  Control thread. */
#ifndef SRV_STAT_H
#define SRV_STAT_H

#include <stdint.h>

#include "counter.h"

struct export;
struct srv;
struct srv_path;

/* Add up in @sum the counts since the last reset. */
void srv_stat_path(const struct srv_path *path, struct io_stat *sum);
/* The requests on @path that are not answered. */
uint64_t srv_stat_inflight(const struct srv_path *path);
/* Count @path from now on from zero.  0 or -ENOMEM. */
int srv_stat_reset_path(struct srv_path *path);

/* How long has the oldest request waited that has arrived and is not answered?  Look at all
 * requests of @srv, in place, as at counters; the other threads write nothing for this that other
 * requests share.  srv_sess.oldest_ns and srv_stat_age_of() have the result, too.  Returns the age
 * of the oldest request, in nanoseconds; 0: there is none. */
uint64_t srv_stat_age_look(const struct srv *srv);
/* What the last srv_stat_age_look() has found for @ex, whose requests are IO that is not answered
 * by the storage, or waits for the limits of @ex. */
uint64_t srv_stat_age_of(const struct export *ex);

#endif
