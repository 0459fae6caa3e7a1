/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the hold of the export whose lock is taken. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "exports.h"
#include "srv-break.h"
#include "srv-rnbd-state.h"
#include "util.h"

static void break_ended(struct srv_break *b, int rc, const char *text)
{
	struct export *ex = b->ex;

	b->ex = NULL;
	b->done(b->arg, rc, text);
	export_put(ex);
}

static void wish_done(struct store_lead_break *wish, int rc, const char *why)
{
	struct srv_break *b = container_of(wish, struct srv_break, wish);
	char text[RNBD_NAME_MAX + 512];

	if (!rc)
		snprintf(text, sizeof(text), "%s: clients of this server may write now%s%s\n",
			 b->ex->name, *why ? ": " : "", why);
	else
		snprintf(text, sizeof(text), "export '%s': %s%s", b->ex->name,
			 *why ? why : strerror(-rc), rc == -EBUSY && !wish->force ?
			 "; --force takes its lock, and fences it" : "");
	break_ended(b, rc, text);
}

void srv_break(struct srv *srv, struct srv_break *b, const char *name, bool force,
	       srv_break_done_fn *done, void *arg)
{
	struct export *ex = exports_find(srv_rnbd(srv)->exports, name);
	char text[RNBD_NAME_MAX + 128];

	*b = (struct srv_break){ .wish = { .force = force, .done = wish_done }, .done = done,
				 .arg = arg };
	if (!ex || !ex->store->lead) {
		snprintf(text, sizeof(text), ex ? "export '%s' is not exported with shared=yes: no "
			 "other server can have its lock" : "there is no export '%s'", name);
		done(arg, ex ? -EINVAL : -ENOENT, text);
		return;
	}
	b->ex = ex;
	export_hold(ex);
	store_lead_break(ex->store, &b->wish);
}

void srv_break_stop(struct srv_break *b)
{
	store_lead_break_drop(b->ex->store);
	break_ended(b, -ECANCELED, "the server stops");
}
