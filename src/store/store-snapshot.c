/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the call of the driver, which nobody can end: a file system whose server is away, or a
 * cluster, may answer late or never. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aside.h"
#include "export.h"
#include "log.h"
#include "store.h"

struct snapshot {
	struct export *ex;
	char name[SNAPSHOT_NAME_MAX + 1];
	int rc;
	char text[512];
};

bool store_snapshot_is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > SNAPSHOT_NAME_MAX || *name == '.')
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	}
	return true;
}

static void snapshot_aside(void *arg)
{
	struct snapshot *s = arg;

	s->rc = s->ex->driver->snapshot(s->ex, s->name, s->text, sizeof(s->text));
}

/* The caller has given up; the export stays, because it is held. */
static void snapshot_left(void *arg)
{
	struct snapshot *s = arg;

	log_warn(s->ex->name, "snapshot %s, late: %s", s->name, s->rc ? s->text : "made");
	free(s);
}

static int patience(void *arg, uint64_t ms)
{
	(void)arg;
	return ms < SNAPSHOT_PATIENCE_S * 1000ull ? 0 : -ETIMEDOUT;
}

int store_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct aside *call;
	int rc = s ? 0 : -ENOMEM;

	snprintf(text, len, "%s", s ? "no thread for it" : "out of memory");
	if (s) {
		s->ex = ex;
		snprintf(s->name, sizeof(s->name), "%s", name);
		rc = aside_begin(&call, snapshot_aside, snapshot_left, s);
	}
	if (rc) {
		free(s);
		return rc;
	}
	rc = aside_wait(call, patience, NULL);
	if (rc) {
		snprintf(text, len, "the storage has not answered for %d s: the snapshot may come "
			 "later, and the log says so", SNAPSHOT_PATIENCE_S);
		return rc;
	}
	rc = s->rc;
	snprintf(text, len, "%s", s->text);
	free(s);
	return rc;
}
