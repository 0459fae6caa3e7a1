/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the oldest request has waited that has arrived and is not answered.
 *
 * The control thread looks at the requests of the other threads in place, as srv-stat.h does with
 * counters: a thread that the storage holds would not answer a message, and just then the age
 * matters.  The other threads write nothing for this that other requests share.  Control thread. */
#ifndef SRV_AGE_H
#define SRV_AGE_H

#include <stdint.h>

struct export;
struct srv;

/* Look at all requests of @srv.  srv_sess.oldest_ns and srv_age_of() have the result, too.  Returns
 * the age of the oldest request, in nanoseconds; 0: there is none. */
uint64_t srv_age_look(const struct srv *srv);
/* What the last srv_age_look() has found for @ex, whose requests are IO that is not answered by the
 * storage, or waits for the limits of @ex. */
uint64_t srv_age_of(const struct export *ex);

#endif
