/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the program, which main.c starts and stop.c stops.  Main thread, which is the
 * control thread. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <pthread.h>
#include <semaphore.h>

#include "apply.h"
#include "change.h"
#include "conf.h"
#include "ctl.h"
#include "exports.h"
#include "reactor.h"
#include "srv-ctl.h"
#include "srv.h"

/* ---- reactors.c: the threads, each with a reactor and the storage on its ring ---- */

/* Number 0 is the main thread: it never waits for the storage, so that signals, heartbeats and new
 * connections are served whatever the storage does.  The others are for IO.  What fails is told in
 * the log. */

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

/* ---- the program ---- */

struct program {
	int argc;
	char **argv;
	struct srv_conf conf;
	struct plan plan;
	struct apply apply;
	struct exports exports;
	struct reactors reactors;
	struct export_life life;
	struct change change;
	struct srv *srv;
	struct ctl *ctl;		/* NULL: no control socket */
	struct srv_metrics metrics;
	struct loop_watch signals;	/* all but those that stop */
	pthread_t stop_thread;		/* waits for those */
	struct loop_msg stop_msg;
	int stop_sig;
	sem_t stop_taken;		/* reactor 0 has begun to stop, or the start has failed */
	_Atomic(bool) start_failed;
	bool stopping;
};

/* Block the signals that the program reads from a descriptor while it runs, and that would end a
 * start.  Before exports are opened, which may take a while. */
void stop_begin(void);
/* Have the signals come to @p->signals, and to a thread that stops reactor 0.  After the creation
 * of the reactors, before any other thread starts: threads inherit the mask.  0 or -errno. */
int stop_open(struct program *p);
/* Nothing is left to stop. */
void stop_close(struct program *p);
/* The start has failed behind stop_open(), and reactor 0 does not run.  A signal that came is
 * forgotten, because the program ends; one that comes from now on ends it at once. */
void stop_abort(struct program *p);

#endif
