/* SPDX-License-Identifier: BSD-3-Clause */
/* The removal of exports: one that clients have open stays with them (exports.removed), unless it
 * is taken from them.  Main thread. */
#include <stdio.h>
#include <string.h>

#include "apply.h"
#include "export-life.h"
#include "export-retry.h"
#include "exports.h"
#include "log.h"

/* The first removed export that somebody has open, of those called @name unless @name is NULL, with
 * who that is in @buf; NULL: none. */
static struct export *first_open(struct export_life *life, const char *name, char *buf, size_t len)
{
	struct export *ex;

	buf[0] = '\0';
	if (!life || !life->users || !life->users->export_openers)
		return NULL;
	list_for_each(ex, &life->exports->removed, life.link) {
		if (name && strcmp(ex->name, name))
			continue;
		life->users->export_openers(life->arg, ex, buf, len);
		if (*buf)
			return ex;
	}
	return NULL;
}

void apply_removed_openers(struct export_life *life, const char *name, char *buf, size_t len)
{
	first_open(life, name, buf, len);
}

void apply_removed_kick(struct export_life *life, const char *name, FILE *out)
{
	char openers[256];
	struct export *ex;

	/* ORDER: from the first one again, because those that nobody has open any more go. */
	while ((ex = first_open(life, name, openers, sizeof(openers)))) {
		fprintf(out, "-%s (taken from %s)\n", ex->name, openers);
		life->users->export_kick(life->arg, ex);
	}
}

/* Returns " (in use by gw1: ...)"; "" if nobody has @ex open. */
static const char *openers_text(struct apply *a, const struct export *ex, char *buf, size_t len)
{
	char names[256] = "";

	buf[0] = '\0';
	if (a->life->users->export_openers)
		a->life->users->export_openers(a->life->arg, ex, names, sizeof(names));
	if (*names)
		snprintf(buf, len, a->openers ? " (taken from %s)" :
			 " (in use by %s: removed when closed; --force kicks)", names);
	return buf;
}

static void remove_export(struct apply *a, struct export *ex)
{
	char openers[384];

	openers_text(a, ex, openers, sizeof(openers));
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(EXPORT_REMOVED, .export = ex->name), ex->name,
		  "'%s' is not exported any more%s", ex->path, openers);
	fprintf(a->out, "-%s%s\n", ex->name, openers);
	/* ORDER: @ex is freed with the last reference. */
	export_hold(ex);
	export_life_remove(a->life, ex);
	if (a->openers && a->life->users->export_kick)
		a->life->users->export_kick(a->life->arg, ex);
	export_put(ex);
}

void apply_removed_forget(struct apply *a, const char *name)
{
	struct export *ex = exports_find(a->exports, name);

	export_retry_drop(a->exports, name);
	if (ex)
		remove_export(a, ex);
	else
		fprintf(a->out, "-%s\n", name);
}
