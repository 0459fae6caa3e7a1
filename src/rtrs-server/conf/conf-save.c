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

#include "cleanup.h"
#include "conf-priv.h"
#include "conf-save.h"
#include "export-line.h"
#include "opt-line.h"
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
	return export_spec_same(&a->spec, &b->spec) && conf_export_same_settings(a, b);
}

/* The export of the administrator with the name of @ex; NULL: none. */
static const struct conf_export *given(const struct save *s, const struct conf_export *ex)
{
	const struct conf_export *in_files = conf_export_find(s->files, ex->spec.name);

	return in_files && !is_ours(s, in_files) ? in_files : NULL;
}

static void report_given(const struct save *s)
{
	for (unsigned i = 0; i < s->now->nexports; i++) {
		const struct conf_export *ex = s->now->exports[i], *other = given(s, ex);

		if (!other || same_export(other, ex))
			continue;
		fprintf(s->report,
			"%s is not saved: it differs from the one %s%s: change it there\n",
			ex->spec.name, other->where ? "in " : "on the command line",
			other->where ? other->where : "");
	}
}

static void report_gone(const struct save *s)
{
	for (unsigned i = 0; i < s->files->nexports; i++) {
		const struct conf_export *ex = s->files->exports[i];

		if (!is_ours(s, ex) && !conf_export_find(s->now, ex->spec.name))
			fprintf(s->report, "%s will be back after a restart: it is still %s%s\n",
				ex->spec.name,
				ex->where ? "in " : "on the command line",
				ex->where ? ex->where : "");
	}
}

/* ---- writing ---- */

/* Write the value of @row that @ex has, if it is not the default. */
static void write_row(FILE *out, const struct conf_export *ex, const struct opt *row)
{
	static const struct conf_export none;
	char buf[OPT_TEXT_MAX];

	if (row->size && row->holds & OPT_IN_FILE && !opt_same(row, ex, &none))
		opt_line_put(out, row->name, opt_text(row, ex, buf));
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

/* Write the section of @ex. */
static void write_export(FILE *out, const struct conf_export *ex)
{
	char priority[PRIORITY_TEXT_MAX];
	const struct opt *row;

	fprintf(out, "\n[export \"%s\"]\n", ex->spec.name);
	for (unsigned i = 0; (row = export_spec_row(ex->spec.driver, i)); i++)
		write_row(out, ex, row);
	for (unsigned i = 0; i < conf_export_options.n; i++)
		write_row(out, ex, &conf_export_options.rows[i]);
	if (ex->limits.burst_s)
		fprintf(out, "burst = %us\n", ex->limits.burst_s);
	write_rules(out, "allow", &ex->allow);
	write_rules(out, "read-only", &ex->read_only);
	if (ex->priority)
		fprintf(out, "priority = %s\n", conf_priority_text(ex->priority, priority));
}

/* The section of @ex as text; NULL: no memory. */
static char *section_of(const struct conf_export *ex, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (!out)
		return NULL;
	write_export(out, ex);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Write to @err why @ex did not come back: the first of @mistakes, ":LINE: WHY", if there is
 * one. */
static int not_held(const struct conf_export *ex, const char *mistakes, char *err, size_t len)
{
	const char *why = strchr(mistakes, ' ');

	snprintf(err, len, "export '%s': its name or path cannot be written in a file: %.*s",
		 ex->spec.name, why ? (int)strcspn(why + 1, "\n") : 1024,
		 why ? why + 1 : "it would be read as another one");
	return -EINVAL;
}

int conf_save_holds(const struct conf_export *ex, char *err, size_t len)
{
	size_t n = 0, nmistakes = 0;
	_cleanup_free_ char *text = section_of(ex, &n), *mistakes = NULL;
	FILE *errors = open_memstream(&mistakes, &nmistakes);
	struct srv_conf back = { 0 };
	const struct conf_export *is;
	int rc = 0;

	if (!text || !errors) {
		if (errors)
			fclose(errors);
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	conf_file_parse(&back, "", text, n, errors);
	fclose(errors);
	is = conf_export_find(&back, ex->spec.name);
	if (*mistakes || !is || !same_export(is, ex))
		rc = not_held(ex, mistakes, err, len);
	conf_fini(&back);
	return rc;
}

/* Returns how many exports were written, and reported; -errno: a file cannot hold one. */
static int write_exports(const struct save *s, FILE *out)
{
	int n = 0;

	fprintf(out, "# Written by \"rtrsctl save\", which replaces this file as a whole.\n");
	for (unsigned i = 0; i < s->now->nexports; i++) {
		const struct conf_export *ex = s->now->exports[i];
		_cleanup_free_ char *line = NULL;
		int rc;

		if (given(s, ex))
			continue;
		rc = conf_save_holds(ex, s->err, s->len);
		if (rc)
			return rc;
		line = export_line_text(&ex->spec);
		if (!line)
			return save_fail(s, -ENOMEM, ex->spec.name);
		write_export(out, ex);
		fprintf(s->report, "saved %s\n", line);
		n++;
	}
	return n;
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
	int n, rc = 0;
	FILE *out;

	if (mkdir(s->dir, 0755) < 0 && errno != EEXIST)
		return save_fail(s, -errno, s->dir);
	out = fopen(s->new_path, "we");
	if (!out)
		return save_fail(s, -errno, s->new_path);
	n = write_exports(s, out);
	if (n >= 0 && (fflush(out) || fsync(fileno(out)) < 0))
		rc = -errno;
	if (fclose(out) && !rc)
		rc = -errno;
	return rc && n >= 0 ? save_fail(s, rc, s->new_path) : n;
}

static int save_file(const struct save *s)
{
	int n = write_new(s), rc;

	if (n < 0) {
		unlink(s->new_path);
		return n;
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
