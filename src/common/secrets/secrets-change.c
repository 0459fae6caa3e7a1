/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what the files of a change say, and what they have taken away, until its end. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "secrets-change.h"
#include "util.h"

/* Take from all other changes that read the same files the keys that @change does not have: what
 * they have read is older.  0, or -ENOMEM. */
static int narrow_others(struct secrets_change *change)
{
	struct changes_call *call;
	int rc = 0;

	list_for_each(call, &change->queued.queue->all, link) {
		struct secrets_change *other = container_of(call, struct secrets_change, queued);

		if (other != change && call->ops->read == change->queued.ops->read &&
		    other->set.n == change->set.n && !rc)
			rc = secrets_set_narrow(&other->set, &change->set);
	}
	return rc;
}

static void keep_lines(struct secrets_change *change, const char *lines)
{
	char *before = change->withdrawn;

	if (!lines || !*lines)
		return;
	if (asprintf(&change->withdrawn, "%s%s", before ? before : "", lines) < 0)
		change->withdrawn = NULL;
	free(before);
}

int secrets_change_withdraw(struct secrets_change *change, secrets_end_fn *end, void *arg,
			    char **lines)
{
	size_t len = 0;
	FILE *out;
	int rc;

	*lines = NULL;
	out = open_memstream(lines, &len);
	if (!out)
		return -ENOMEM;
	rc = narrow_others(change);
	if (!rc)
		rc = secrets_set_withdraw(&change->set, end, arg, out);
	fclose(out);
	keep_lines(change, *lines);
	return rc;
}

void secrets_change_free(struct secrets_change *change)
{
	secrets_set_free(&change->set);
	free(change->withdrawn);
	change->withdrawn = NULL;
}
