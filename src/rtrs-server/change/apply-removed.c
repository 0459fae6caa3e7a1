/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the users of exports know who has them open. */
#include <string.h>

#include "apply-removed.h"
#include "export-life.h"

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
