/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out plans.  The start is the first plan that is applied.
 *
 * A plan is applied in two halves.  The first half does all that can fail and that clients do not
 * see yet: each export that comes is opened, locked, and attached to the rings.  The second half
 * makes all of the plan hold at once, and does not fail.  A plan with one step that fails in the
 * first half changes nothing: its caller ends, at the start, or goes on as before.  With
 * apply.lenient the storage of an export is no part of this: an export that cannot be opened is
 * tried again (export-retry.h), and a predecessor of the same name serves until then.
 *
 * Main thread. */
#ifndef APPLY_H
#define APPLY_H

#include <stddef.h>
#include <stdio.h>

#include "export-life.h"
#include "exports.h"
#include "index.h"
#include "plan.h"

struct export_life;
struct srv;

/* What becomes of the clients that have an export open which is removed. */
enum apply_openers {
	APPLY_SPARE_OPENERS,		/* they keep it until they close it */
	APPLY_KICK_OPENERS,		/* it is taken from them */
	APPLY_KICK_ALL,			/* likewise; so is what earlier plans have removed */
};

/* The export of a PLAN_ADD. */
struct apply_add {
	struct apply *apply;
	const struct plan_step *step;
	struct export *ready;		/* NULL: not made, or without its storage */
	char *failed;			/* why it has no storage; NULL: it has */
	struct index_node lacks;	/* @failed: apply.lacking, by its name */
};

/* The plan has been carried out, and @text has a line for each step; or @rc is -errno, and @text
 * says in one line why nothing has changed. */
typedef void apply_done_fn(void *arg, int rc, const char *text);

struct apply {
	struct exports *exports;	/* the caller's */
	bool runs;			/* the first plan was committed */
	bool lenient;			/* the caller's, for the next plan */
	struct export_life *life;	/* the caller's; NULL: no later plan yet */
	struct srv *srv;		/* the caller's, likewise */

	/* the plan that is being carried out; NULL: none */
	const struct plan *plan;
	struct srv_conf *wanted;
	enum apply_openers openers;
	struct apply_add *adds;		/* [plan->n]: of each PLAN_ADD */
	struct index lacking;		/* adds without their storage: apply_add.lacks */
	unsigned pending;		/* exports that are being made ready */
	int rc;
	char err[EXPORT_LIFE_ERR];
	char *report;			/* the lines, which @out writes */
	size_t report_len;
	FILE *out;
	apply_done_fn *done;
	void *arg;
};

void apply_init(struct apply *a, struct exports *exports);

/* ---- the start ---- */

/* Open what @plan adds.  0, or -errno with one line in @err that names the step; the exports that
 * were opened stay with @exports, and exports_fini() closes them.  With @a->lenient an export that
 * cannot be opened is no failure. */
int apply_prepare(struct apply *a, const struct plan *plan, char *err, size_t len);
/* Use the state directory, lock and claim what was opened.  May wait for another server, and may
 * fail: -errno with one line in @err. */
int apply_commit(struct apply *a, const struct srv_conf *wanted, char *err, size_t len);

/* ---- a server that runs ---- */

/* Plans may come, for @srv and its exports on @life. */
void apply_begin(struct apply *a, struct export_life *life, struct srv *srv);
/* Set limits, rules and priorities of the first @plan.  After apply_begin(); no client is served
 * yet. */
void apply_first_settings(struct apply *a, const struct plan *plan);
/* Carry out @plan, which makes @wanted of the configuration that holds; both outlive @done.  Unless
 * @openers is APPLY_SPARE_OPENERS, an export is also taken from clients that its lists do not let
 * have it open so any more.  @done may run inside this call.  0; -EBUSY: another plan is being
 * carried out, or -ENOMEM: then @done is not called. */
int apply_run(struct apply *a, const struct plan *plan, struct srv_conf *wanted,
	      enum apply_openers openers, apply_done_fn *done, void *arg);

/* Plans come no more: the one that is being carried out is given up, and @done is told -ECANCELED.
 * export_life_stop() follows before the loop goes on. */
void apply_end(struct apply *a);

/* The exports are served no more.  After the rings were detached, and if nothing was committed. */
void apply_fini(struct apply *a);

/* ---- apply-removed.c: exports that are removed, and that clients still have open ---- */

/* Forget the export of a PLAN_REMOVE, which may have no storage. */
void apply_removed_forget(struct apply *a, const char *name);
/* Write to @buf who has a removed export called @name open, "gw1, gw2"; "": nobody.  Cut at
 * @len. */
void apply_removed_openers(struct export_life *life, const char *name, char *buf, size_t len);
/* Take the removed exports called @name, all if @name is NULL, away from who has them open, and
 * write a line about each to @out. */
void apply_removed_kick(struct export_life *life, const char *name, FILE *out);

#endif
