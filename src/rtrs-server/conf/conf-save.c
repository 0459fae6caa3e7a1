/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the file while it is written: under another name first, so that a reader finds the old file
 * or the new one. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf-priv.h"
#include "conf-save.h"
#include "util.h"

struct save {
	const struct srv_conf *now, *files;
	char *dir, *path, *new_path;
	FILE *report;
	char *err;
	size_t len;
};

static int save_fail(const struct save *s, int rc, const char *what)
{
	snprintf(s->err, s->len, "%s: %s", what, strerror(-rc));
	return rc;
}

/* True if @ex, of the files, comes from our own. */
static bool is_ours(const struct save *s, const struct conf_export *ex)
{
	size_t n = strlen(s->path);

	return ex->where && !strncmp(ex->where, s->path, n) && ex->where[n] == ':';
}

/* ---- what is saved ---- */

static bool same_export(const struct conf_export *a, const struct conf_export *b)
{
	return !strcmp(a->spec, b->spec) && conf_limits_same(&a->limits, &b->limits) &&
	       conf_allow_list_same(&a->allow, &b->allow) && a->priority == b->priority;
}

/* The export of the administrator with the name of @ex; NULL: none. */
static const struct conf_export *given(const struct save *s, const struct conf_export *ex)
{
	const struct conf_export *in_files = conf_export_find(s->files, ex->name);

	return in_files && !is_ours(s, in_files) ? in_files : NULL;
}

static int check_given(const struct save *s)
{
	for (unsigned i = 0; i < s->now->nexports; i++) {
		const struct conf_export *ex = &s->now->exports[i], *other = given(s, ex);

		if (!other || same_export(other, ex))
			continue;
		snprintf(s->err, s->len, "export '%s' is another one %s%s: change it there",
			 ex->name, other->where ? "in " : "on the command line",
			 other->where ? other->where : "");
		return -EEXIST;
	}
	return 0;
}

static void report_gone(const struct save *s)
{
	for (unsigned i = 0; i < s->files->nexports; i++) {
		const struct conf_export *ex = &s->files->exports[i];

		if (!is_ours(s, ex) && !conf_export_find(s->now, ex->name))
			fprintf(s->report, "%s comes back: it is still %s%s\n", ex->name,
				ex->where ? "in " : "on the command line",
				ex->where ? ex->where : "");
	}
}

/* ---- writing ---- */

static void write_limits(FILE *out, const struct limits *limits)
{
	for (unsigned i = 0; i < LIMITS; i++) {
		if (limits->rate[i])
			fprintf(out, "%s = %" PRIu64 "\n", limit_names[i], limits->rate[i]);
	}
	if (limits->burst_s)
		fprintf(out, "burst = %us\n", limits->burst_s);
}

/* Write "@key = " and the value at @at, without its escapes.  Returns the comma behind it, or the
 * end. */
static const char *write_value(FILE *out, const char *key, size_t len, const char *at)
{
	fprintf(out, "%.*s = ", (int)len, key);
