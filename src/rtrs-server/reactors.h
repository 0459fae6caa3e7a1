/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of the server, each with a reactor and the storage on its ring.  Number 0 is the
 * caller's, the main thread: it never waits for the storage, so that signals, heartbeats and new
 * connections are served whatever the storage does.  The others are for IO.
 *
 * Main thread.  What fails is told in the log. */
#ifndef REACTORS_H
#define REACTORS_H

#include "conf.h"
#include "reactor.h"

struct exports;
struct thread;

struct reactors {
	const struct srv_conf *conf;
	struct reactor **all;	/* [n]; NULL: not made */
	unsigned n;
	struct thread *threads;		/* [n] */
};

/* Make the reactors: none runs yet.  @r is all 0, @conf and @exports outlive it.  0 or -errno;
 * reactors_destroy() follows in any case. */
int reactors_create(struct reactors *r, const struct srv_conf *conf, struct exports *exports);
/* The storage is on the ring of each then, and all but the main thread run.  0 or -errno. */
int reactors_start(struct reactors *r);
/* Stop all but the main thread, and wait for them.  Idempotent. */
void reactors_join(struct reactors *r);
/* The main thread has left its reactor, and no request is in the storage: no ring has exports then.
 * Idempotent, and a part of reactors_destroy(). */
void reactors_detach(struct reactors *r);
void reactors_destroy(struct reactors *r);

#endif
