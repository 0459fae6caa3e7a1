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
	       conf_allow_list_same(&a->allow, &b->allow) &&
	       conf_allow_list_same(&a->read_only, &b->read_only) && a->priority == b->priority;
}

/* The export of the administrator with the name of @ex; NULL: none. */
static const struct conf_export *given(const struct save *s, const struct conf_export *ex)
{
	const struct conf_export *in_files = conf_export_find(s->files, ex->name);

	return in_files && !is_ours(s, in_files) ? in_files : NULL;
}

static void report_given(const struct save *s)
{
	for (unsigned i = 0; i < s->now->nexports; i++) {
		const struct conf_export *ex = s->now->exports[i], *other = given(s, ex);

		if (!other || same_export(other, ex))
			continue;
		fprintf(s->report, "%s is not saved: it is another one %s%s: change it there\n",
			ex->name, other->where ? "in " : "on the command line",
			other->where ? other->where : "");
	}
}

static void report_gone(const struct save *s)
{
	for (unsigned i = 0; i < s->files->nexports; i++) {
		const struct conf_export *ex = s->files->exports[i];

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

/* One rule a line: a line of a file has a limit. */
static void write_rules(FILE *out, const char *key, const struct allow_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		struct allow_list one = { .n = 1, .rules[0] = list->rules[i] };
		char text[2 * FAB_IDENTITY_LEN];

		fprintf(out, "%s = %s\n", key, conf_allow_list_text(&one, text, sizeof(text)));
	}
}

/* Write "@key = " and the value at @at, without its escapes.  Returns the comma behind it, or the
 * end. */
static const char *write_value(FILE *out, const char *key, size_t len, const char *at)
{
	fprintf(out, "%.*s = ", (int)len, key);
	for (; *at && *at != ','; at++) {
		if (*at == '\\' && (at[1] == ',' || at[1] == '\\'))
			at++;
		fputc(*at, out);
	}
	fputc('\n', out);
	return at;
}

/* Write the flag at @at.  Returns as write_value() does. */
static const char *write_flag(FILE *out, const char *at)
{
	size_t n = strcspn(at, ",=");

	if (at[n] == '=')
		return write_value(out, at, n, at + n + 1);
	if (n == strlen("readonly") && !strncmp(at, "readonly", n))
		fprintf(out, "mode = ro\n");
	else
		fprintf(out, "%.*s = yes\n", (int)n, at);
	return at + n;
}

/* Write the section of @ex (export-spec.h has the form of a spec). */
static void write_export(FILE *out, const struct conf_export *ex)
{
	const char *at = ex->spec + strlen(ex->name) + 1;
	char priority[PRIORITY_TEXT_MAX];

	fprintf(out, "\n[export \"%s\"]\n", ex->name);
	at = write_value(out, "path", strlen("path"), at);
	while (*at == ',')
		at = write_flag(out, at + 1);
	write_limits(out, &ex->limits);
	write_rules(out, "allow", &ex->allow);
	write_rules(out, "read-only", &ex->read_only);
	if (ex->priority)
		fprintf(out, "priority = %s\n", conf_priority_text(ex->priority, priority));
}

/* Returns how many exports were written, and reported. */
static unsigned write_exports(const struct save *s, FILE *out)
{
	unsigned n = 0;

	fprintf(out, "# Written by \"rtrsctl save\", which replaces this file as a whole.\n");
	for (unsigned i = 0; i < s->now->nexports; i++) {
		const struct conf_export *ex = s->now->exports[i];

		if (given(s, ex))
			continue;
		write_export(out, ex);
		fprintf(s->report, "saved %s\n", ex->spec);
		n++;
	}
	return n;
}

/* Read the new file as a server does: each export must come back as it was. */
static int check_new(const struct save *s)
{
	struct srv_conf back = { 0 };
	char *mistakes = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&mistakes, &len);
	int rc = 0;

	if (!errors)
		return save_fail(s, -ENOMEM, s->path);
	if (conf_file_read(&back, s->new_path, errors))
		rc = -EINVAL;
	for (unsigned i = 0; i < s->now->nexports && !rc; i++) {
		const struct conf_export *ex = s->now->exports[i];
		const struct conf_export *is = conf_export_find(&back, ex->name);

		if (given(s, ex) || (is && same_export(is, ex)))
			continue;
		fprintf(errors, "export '%s' would come back as another one\n", ex->name);
		rc = -EINVAL;
	}
	fclose(errors);
	if (rc)
		snprintf(s->err, s->len, "%s: a name or a path cannot be written in a file: %.*s",
			 s->path, (int)strcspn(mistakes, "\n"), mistakes);
	free(mistakes);
	conf_fini(&back);
	return rc;
}

static int sync_dir(const struct save *s)
{
	int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* Write the new file.  Returns how many exports it has, or -errno. */
static int write_new(const struct save *s)
{
	FILE *out;
	int n, rc = 0;

	if (mkdir(s->dir, 0755) < 0 && errno != EEXIST)
		return save_fail(s, -errno, s->dir);
	out = fopen(s->new_path, "we");
	if (!out)
		return save_fail(s, -errno, s->new_path);
	n = (int)write_exports(s, out);
	if (fflush(out) || fsync(fileno(out)) < 0)
		rc = -errno;
	if (fclose(out) && !rc)
		rc = -errno;
	return rc ? save_fail(s, rc, s->new_path) : n;
}

static int save_file(const struct save *s)
{
	int n = write_new(s), rc = n < 0 ? n : check_new(s);

	if (rc) {
		unlink(s->new_path);
		return rc;
	}
	if (n ? rename(s->new_path, s->path) < 0 : unlink(s->new_path) < 0)
		return save_fail(s, -errno, s->path);
	if (!n && unlink(s->path) < 0 && errno != ENOENT)
		return save_fail(s, -errno, s->path);
	rc = sync_dir(s);
	return rc ? save_fail(s, rc, s->dir) : 0;
}

int conf_save(const struct srv_conf *now, const struct srv_conf *files, FILE *report, char *err,
	      size_t len)
{
	struct save s = { .now = now, .files = files, .report = report, .err = err, .len = len };
	int rc = -ENOMEM;

	snprintf(err, len, "out of memory");
	if (asprintf(&s.dir, "%s.d", files->config) < 0)
		return rc;
	if (asprintf(&s.path, "%s/%s", s.dir, CONF_SAVE_NAME) < 0) {
		free(s.dir);
		return rc;
	}
	if (asprintf(&s.new_path, "%s.new", s.path) >= 0) {
		rc = save_file(&s);
		if (!rc) {
			report_given(&s);
			report_gone(&s);
		}
		free(s.new_path);
	}
	free(s.path);
	free(s.dir);
	return rc;
}
