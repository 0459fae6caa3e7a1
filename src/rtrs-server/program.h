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
#include "reactors.h"
#include "srv-ctl.h"
#include "srv-metrics.h"
#include "srv.h"

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
	struct srv_ctl commands;
	struct srv *srv;
	struct ctl *ctl;		/* NULL: no control socket */
	struct srv_metrics metrics;
	struct loop_watch signals;	/* all but those that stop */
	pthread_t stop_thread;		/* waits for those */
	struct loop_msg stop_msg;
	int stop_sig;
	sem_t stop_taken;		/* reactor 0 has begun to stop */
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

#endif
