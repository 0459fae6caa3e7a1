/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the configuration that a change leads to, until it holds. */
#include <errno.h>
#include <stdio.h>

#include "change.h"

#define CHANGE_ERR 512

void change_init(struct change *change, struct srv_conf *conf, struct apply *apply)
{
	*change = (struct change){ .conf = conf, .apply = apply };
}

static void change_ended(void *arg, int rc, const char *err)
{
	struct change *change = arg;
	change_done_fn *done = change->done;

	plan_fini(&change->plan);
	if (!rc)
		conf_adopt(change->conf, &change->wanted);
	conf_fini(&change->wanted);
	change->done = NULL;
	done(change->arg, rc, err);
}

/* change->wanted is complete. */
static void change_run(struct change *change)
{
	int rc = plan_make(&change->plan, change->conf, &change->wanted);

	if (!rc)
		rc = apply_run(change->apply, &change->plan, &change->wanted, change_ended,
			       change);
	if (rc)
		change_ended(change, rc, "out of memory");
}

/* Begin a change, with a copy of the configuration of now.  False: @done was called. */
static bool change_begin(struct change *change, change_done_fn *done, void *arg)
{
	if (change->done) {
		done(arg, -EBUSY, "another change is being carried out: try again");
		return false;
	}
	change->done = done;
	change->arg = arg;
	change->plan = (struct plan){ 0 };
	if (!conf_copy(&change->wanted, change->conf))
		return true;
	change_ended(change, -ENOMEM, "out of memory");
	return false;
}

void change_export_add(struct change *change, const char *spec, change_done_fn *done, void *arg)
{
	char err[CHANGE_ERR];
	int rc;

	if (!change_begin(change, done, arg))
		return;
	rc = conf_add_export(&change->wanted, spec, err, sizeof(err));
	if (rc)
		change_ended(change, rc, err);
	else
		change_run(change);
}

void change_export_remove(struct change *change, const char *name, change_done_fn *done, void *arg)
{
	char err[CHANGE_ERR];

	if (!change_begin(change, done, arg))
		return;
	if (!conf_del_export(&change->wanted, name)) {
		change_run(change);
		return;
	}
	snprintf(err, sizeof(err), "there is no export '%s'", name);
	change_ended(change, -ENOENT, err);
}
