/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an export beside the IO of other exports: a ladder from a line of text up to an
 * export that clients find, and down again.
 *
 * Each rung is a step that can be undone.  What blocks runs on a worker, and what belongs to a ring
 * on the thread of that ring, so the control thread waits for neither.  One export at a time climbs
 * or descends, and the others stand in line: what a step sees of stores and names stays as it is.
 * A step up that fails turns the export around.  An export that is in use waits on its rung until
 * nobody refers to it (export_hold(), store_hold()).
 *
 * Control thread, which is the thread of the first reactor. */
#ifndef EXPORT_LIFE_H
#define EXPORT_LIFE_H

#include "export.h"
#include "exports.h"
#include "reactor.h"
#include "worker.h"

#define EXPORT_LIFE_ERR 512

/* What serves the exports, and keeps things of its own for each. */
struct export_users {
	/* @ex comes, before any ring has it; 0 or -errno.  And goes, when no ring has it. */
	int (*export_comes)(void *arg, struct export *ex);
	void (*export_goes)(void *arg, struct export *ex);
	/* The first name of @store comes to ring @ring; 0 or -errno.  And the last one goes, with
	 * no request under way.  Thread of the ring. */
	int (*store_comes)(void *arg, unsigned ring, const struct store *store);
	void (*store_goes)(void *arg, unsigned ring, const struct store *store);
};

struct life_ring;

struct export_life {
	struct exports *exports;
	struct reactor *const *reactors;	/* [exports->nrings] */
	bool lock;			/* false: --no-lock */
	const struct export_users *users;	/* NULL: none any more */
	void *arg;			/* of @users */
	/* private */
	struct worker worker;
	struct worker_job job;
	struct loop_task task;
	struct list line;		/* export.life.link: whose turn comes */
	struct list parked;		/* likewise: to go down, and in use */
	struct list ready;		/* likewise: up, and not shown yet */
	struct export *now;		/* whose turn it is */
	bool under_way;			/* a step of it is */
	int rc;				/* of the step that turned it around */
	char err[EXPORT_LIFE_ERR];
	struct life_ring *rings;	/* [exports->nrings] */
	unsigned pending;		/* rings that have not answered */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* Exports of @e, which has the start behind it, come and go on the rings of @reactors.  0 or
 * -ENOMEM. */
int export_life_init(struct export_life *life, struct exports *e, struct reactor *const *reactors,
		     const struct export_users *users, void *arg);
/* Make ready what @spec says: an export that all rings have, and that clients do not find yet.
 * @done(@ex, 0) follows, never from inside this call: call export_life_show() or
 * export_life_remove() then.  Or @done(@ex, -errno) with one line in @err; @ex is freed after that.
 * Returns @ex; NULL with -errno in *@rc and one line in @err: @done is not called. */
typedef void export_life_done_fn(struct export *ex, int rc, const char *err, void *arg);
struct export *export_life_add(struct export_life *life, const char *spec,
			       export_life_done_fn *done, void *arg, int *rc, char *err,
			       size_t errlen);
/* Clients find @ex, which is ready, from now on. */
void export_life_show(struct export_life *life, struct export *ex);
/* Clients do not find @ex from now on, and it goes when nobody refers to it. */
void export_life_remove(struct export_life *life, struct export *ex);
/* Begin nothing more, and call @done(@arg) when no step is under way, never from inside this
 * call.  Once. */
void export_life_stop(struct export_life *life, void (*done)(void *arg), void *arg);
/* After export_life_stop(), and no ring has exports: close what is still on its way.  The exports
 * that are listed stay. */
void export_life_fini(struct export_life *life);

#endif
