/* SPDX-License-Identifier: BSD-3-Clause */
/* Between reactor.c and reactor-watch.c, which implements the loop's watches.  Thread of the
 * reactor. */
#ifndef REACTOR_WATCH_H
#define REACTOR_WATCH_H

struct reactor;

/* Run ready() of each watch on reactor.ready. */
void reactor_watch_run_ready(struct reactor *r);
/* Run closed() of each watch on reactor.closed. */
void reactor_watch_run_closed(struct reactor *r);

#endif
