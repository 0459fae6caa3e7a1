/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an export beside the IO of other exports: a ladder from a description up to an
 * export that clients find, and down again.
 *
 * Each step can be undone.  A step that blocks runs on a worker, and a step on a ring runs on the
 * thread of the ring, so the control thread waits for neither.  A single export at a time climbs or
 * descends, and the others stand in line: stores and names do not change under a step.  A step up
 * that fails turns the export around.  An export in use waits on its rung until the last reference
 * is put (export_hold(), store_hold()).
 *
 * Control thread, which is the thread of the first reactor. */
#ifndef EXPORT_LIFE_H
#define EXPORT_LIFE_H

#include "export.h"
#include "exports.h"
#include "reactor.h"
#include "worker.h"

#define EXPORT_LIFE_ERR 512

/* The code that serves the exports, and keeps objects of its own for each. */
struct export_users {
	/* Make ready for @ex, which no ring has yet.  0 or -errno. */
	int (*export_comes)(void *arg, struct export *ex);
	/* Forget @ex, which no ring has any more. */
	void (*export_goes)(void *arg, struct export *ex);
	/* Make ready for @store on ring @ring, which has got the first name of @store.  0 or
	 * -errno.  Thread of the ring. */
	int (*store_comes)(void *arg, unsigned ring, const struct store *store);
	/* Forget @store on ring @ring, which loses the last name of @store.  No request is under
	 * way.  Thread of the ring. */
	void (*store_goes)(void *arg, unsigned ring, const struct store *store);
	/* Write to @buf who has @ex open, "gw1, gw2"; "": nobody.  Cut at @len. */
	void (*export_openers)(void *arg, const struct export *ex, char *buf, size_t len);
	/* Take @ex away from who has it open. */
	void (*export_kick)(void *arg, const struct export *ex);
	/* Another server has the lock of @store: end the paths of the clients that have a name of
	 * @store open.  Answer none of their requests. */
	void (*store_fenced)(void *arg, const struct store *store);
	/* An OPEN of @store that waits may go on. */
	void (*store_led)(void *arg, const struct store *store);
	/* The storage tells that the size of @ex may be another one now. */
	void (*export_resized)(void *arg, const struct export *ex);
};

struct life_ring;

struct export_life {
	struct exports *exports;
	struct loop *loop;		/* of the control thread */
	struct reactor *const *reactors;	/* [exports->nrings] */
	const struct export_users *users;	/* NULL: the users have ended */
	void *arg;			/* of @users */
	/* An export that had no storage has got it, and clients find @ex (export-retry.h).  The
	 * caller's, set behind export_life_init(). */
	void (*opened)(void *arg, struct export *ex);
	void *opened_arg;
	/* private */
	struct loop_timer retry_timer;	/* export-retry.c */
	struct worker worker;
	struct worker_job job;
	bool unseen;			/* an export that no look has seen may be listed */
	struct worker_job look;		/* export_life_look(); under_way, without @now */
	const struct export **looked_at;	/* of @look */
	unsigned nlooked_at;
	struct loop_task task;
	struct list line;		/* export.life.link: exports whose turn comes */
	struct list ready;		/* likewise: attached, and not shown yet */
	struct export *now;		/* the export on its way; NULL: none */
	bool under_way;			/* a step of @now runs, or @look */
	int rc;				/* of the step that turned @now around */
	char err[EXPORT_LIFE_ERR];
	struct life_ring *rings;	/* [exports->nrings] */
	unsigned pending;		/* rings that have not answered */
	/* of stores with a lead (store-lead.h): */
	unsigned nleads;		/* jobs on workers of their own */
	bool ended;			/* begin no such jobs */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* Let exports of @e come and go on the rings of @reactors, once the rings have the exports of the
 * start.  0 or -ENOMEM. */
int export_life_init(struct export_life *life, struct exports *e, struct reactor *const *reactors,
		     const struct export_users *users, void *arg);
/* Warn of programs that use the storage of the listed exports, on the worker, once for all exports
 * that no look has seen, and when no export is on its way; none comes or goes meanwhile.  At the
 * start of the server; export_life_show() calls it. */
void export_life_look(struct export_life *life);
/* The end of export_life_add(): @ex is ready if @rc is 0.  If @rc is -errno, @err has one line, and
 * @ex is freed after this call. */
typedef void export_life_done_fn(struct export *ex, int rc, const char *err, void *arg);
/* Make ready the export that @spec, which is checked, describes: all rings have the export, and
 * clients do not find @ex yet.  Calls @done, never inside this call; then call export_life_show()
 * or export_life_remove().  Returns the export; NULL: no memory, and @done is not called. */
struct export *export_life_add(struct export_life *life, const struct export_spec *spec,
			       export_life_done_fn *done, void *arg);
/* Let clients find @ex, which is ready.  Returns the export that they find: @ex, or a removed one
 * that is still in use, if that is the same name of the same store, described alike.  Then those
 * who have the removed one open are users of a listed export again, and @ex goes. */
struct export *export_life_show(struct export_life *life, struct export *ex);
/* Hide @ex from clients.  @ex goes down and is freed when the last reference is put; until then
 * exports.removed has it. */
void export_life_remove(struct export_life *life, struct export *ex);
/* A driver's word that the size of @ex may be another one now. */
void export_life_resized(const struct export *ex);
/* Begin no more steps, and call @done(@arg) when no step is under way, never inside this call.
 * Call once. */
void export_life_stop(struct export_life *life, void (*done)(void *arg), void *arg);
/* Close the exports that are on their way.  Call this after export_life_stop(), when no ring has
 * exports.  Listed exports stay. */
void export_life_fini(struct export_life *life);

#endif
