/* SPDX-License-Identifier: BSD-3-Clause */
/* The change that makes a snapshot of an export, on the worker of the changes.  Owns the reference
 * to the export meanwhile. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "change-priv.h"
#include "exports.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "srv-rnbd-state.h"
#include "store.h"

static void make_snapshot(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	struct change_snapshot *s = &change->snapshot;

	change->saved = store_snapshot(s->ex, s->name, s->text, sizeof(s->text));
}

static void snapshot_ended(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	struct change_snapshot *s = &change->snapshot;
	char line[sizeof(s->text) + RNBD_NAME_MAX + 32];

	snprintf(line, sizeof(line), change->saved ? "export '%s': no snapshot: %s" :
						     "%s: snapshot %s\n", s->ex->name, s->text);
	if (!change->saved)
		log_info(s->ex->name, "snapshot %s", s->text);
	/* The storage may work on it still: the export stays. */
	if (change->saved != -ETIMEDOUT)
		export_put(s->ex);
	change_ended(change, change->saved, line);
}

/* "20261129T003500Z" */
static void name_of_now(char *name, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(name, len, "%Y%m%dT%H%M%SZ", &tm);
}

/* Fill @s by @text, "EXPORT\nNAME", or "EXPORT\n".  0, or -errno with the reason in @err. */
static int find_snapshot(struct change *change, const char *text, struct change_snapshot *s,
			 char *err, size_t len)
{
	const char *name = strrchr(text, '\n') + 1;
	int n = (int)(name - 1 - text);
	char found[RNBD_NAME_MAX + 1];	/* a name that is cut has one byte more than any export's */

	snprintf(found, sizeof(found), "%.*s", n, text);
	s->ex = exports_find(srv_rnbd(change->srv)->exports, found);
	if (!s->ex)
		return fmt_error(-ENOENT, err, len, "there is no export '%s' whose storage is open",
				 found);
	if (!s->ex->driver->snapshot)
		return fmt_error(-EOPNOTSUPP, err, len, "export '%s': no snapshot: its storage is "
				 "memory", found);
	if (*name && !store_snapshot_is_name(name))
		return fmt_error(-EINVAL, err, len, "a snapshot '%s': expected a name of at most "
				 "%d letters, digits, '.', '_' and '-', and no '.' in front", name,
				 SNAPSHOT_NAME_MAX);
	if (*name)
		snprintf(s->name, sizeof(s->name), "%s", name);
	else
		name_of_now(s->name, sizeof(s->name));
	return 0;
}

static void run_snapshot(struct changes_call *queued)
{
	struct change_call *call = change_take_turn(queued, CHANGE_SAVING);
	struct change *change = call->change;
	char err[512];
	int rc = find_snapshot(change, call->text, &change->snapshot, err, sizeof(err));

	if (!rc) {
		change->job = (struct worker_job){ .work = make_snapshot, .done = snapshot_ended };
		rc = changes_work(&change->queue, &change->job);
		snprintf(err, sizeof(err), "%s", threads_strerror(rc));
	}
	if (rc)
		change_ended(change, rc, err);
	else
		export_hold(change->snapshot.ex);
}

const struct change_ops change_snapshot_ops = {
	.queued = { .run = run_snapshot, .end = change_call_end },
	.what = "export snapshot",
};
