/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan is the list of steps by which a server comes from one configuration to another.
 *
 * The start is a plan, too, with no configuration before.  Pure: a plan opens nothing and calls no
 * other part.  Texts and rows belong to the two configurations, which outlive the plan. */
#ifndef PLAN_H
#define PLAN_H

#include "conf.h"

enum plan_what {
	PLAN_REMOVE,			/* the export @name */
	PLAN_UNLISTEN,			/* at @listener */
	PLAN_ADD,			/* the export @name, which @spec describes */
	PLAN_SET,			/* the export @name: as @ex says, in place of @was */
	PLAN_LISTEN,			/* at @listener, too */
	PLAN_CHANGE,			/* @option, while the server runs */
	PLAN_RESTART,			/* @option differs, and holds from the next start on */
};

#define PLAN_TEXT_MAX 2048		/* bytes for plan_step_text(), which cuts a longer text */

struct plan_step {
	enum plan_what what;
	const char *name;
	const struct export_spec *spec;
	const struct conf_export *was, *ex;	/* limits, rules and priority count */
	const struct conf_listener *listener;
	const struct opt *option;
};

struct plan {
	struct plan_step *steps;	/* in the order of enum plan_what */
	unsigned n;
};

/* Make the steps from @now to @wanted.  @now is NULL at the start: then each export is added, and
 * options and listeners hold without a step.  An export that is described otherwise is removed and
 * added; limits, rules and the priority change without that.
 * Options that only a command line can have are not compared.  0 or -ENOMEM; plan_fini() follows
 * in both cases. */
int plan_make(struct plan *plan, const struct srv_conf *now, const struct srv_conf *wanted);
/* Write @step to @buf as users see it: "+disk0=/srv/disk0.img", "-disk0", "--log-level: changed",
 * "disk0: iops 1000 -> 2000, allow all -> 192.0.2.0/24", "+listen tcp://192.0.2.1:1234",
 * "--threads changed: takes effect after a restart".  A long list of rules ends in ", ...".
 * Returns @buf. */
const char *plan_step_text(const struct plan_step *step, char *buf, size_t len);
/* Free the steps of @plan. */
void plan_fini(struct plan *plan);

#endif
