/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a configuration: [server] has the options of the command line, and each
 * [export "NAME"] an export.  Read at a start and a reload; "rtrsctl save" writes the exports that
 * were added at run time to a file of their own (opt-file.h), and reads each section before it
 * counts.
 *
 * Possible failures: a mistake is a line with file and number; a text that a file cannot have is
 * not saved; a file that cannot be written is as before. */
#include <config.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "conf.h"
#include "export-spec.h"
#include "number.h"
#include "opt-file.h"
#include "util.h"

struct conf_section {
	struct srv_conf *conf;
	unsigned nlisteners;		/* those before the line that is read */
	/* [export "NAME"] */
	char *name;
	struct conf_export ex;
};

static void *begin_server(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct conf_section *s = arg;

	return s->conf;
}

static void took_server(void *arg, const char *where, const struct opt *row, const char *value)
{
	struct conf_section *s = arg;
	_cleanup_free_ char *text = fmt_new("%s: ", where);

	for (; s->nlisteners < s->conf->nlisteners; s->nlisteners++)
		s->conf->listeners[s->nlisteners].where =
			text ? opt_texts_keep(&s->conf->texts, text) : NULL;
}

static void *begin_export(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct conf_section *s = arg;

	if (!*title || strpbrk(title, "=\"")) {
		snprintf(why, len, "export \"%s\": expected a name without '=' and '\"'", title);
		return NULL;
	}
	free(s->name);
	s->name = strdup(title);
	if (!s->name) {
		snprintf(why, len, "out of memory");
		return NULL;
	}
	s->ex = (struct conf_export){ .spec.name = s->name };
	return &s->ex;
}

static bool end_export(void *arg, const char *where, char *why, size_t len)
{
	struct conf_section *s = arg;

	if (s->ex.spec.path)
		return !conf_put_export(s->conf, &s->ex, where, why, len);
	snprintf(why, len, "export '%s' has no path", s->name);
	return false;
}

/* A file may be that of the other end. */
static const char *const of_gateways[] = {
	"server", "export", "io-timeout", "connect-timeout", "transport", "policy", "connections",
	"poll", "sessname", "registration", "tls-hostname", "max-reconnect-attempts", NULL
};
#define GATEWAYS_ARE "an option of gateways: expected it in the file of the gateway"

static const struct opt_section sections[] = {
	{ .name = "server", .table = &conf_options, .begin = begin_server,
	  .took = took_server,
	  .others = of_gateways, .others_are = GATEWAYS_ARE },
	{ .name = "export", .titled = true, .table = &conf_export_options, .begin = begin_export,
	  .end = end_export, .others = of_gateways, .others_are = GATEWAYS_ARE },
};

int conf_file_read(void *arg, const char *path, FILE *errors)
{
	struct srv_conf *conf = arg;
	struct conf_section s = { .conf = conf, .nlisteners = conf->nlisteners };
	int rc = opt_file_read(path, sections, ARRAY_SIZE(sections), &s, &conf->texts, errors);

	free(s.name);
	return rc;
}

int conf_file_parse(struct srv_conf *conf, const char *path, char *text, size_t len, FILE *errors)
{
	struct conf_section s = { .conf = conf, .nlisteners = conf->nlisteners };
	int rc = opt_file_parse(path, text, len, sections, ARRAY_SIZE(sections), &s, &conf->texts,
				errors);

	free(s.name);
	return rc;
}

int conf_file_read_all(struct srv_conf *conf, FILE *errors)
{
	return opt_dir_read(conf->config, conf_file_read, conf, errors);
}

/* ---- saving ---- */

struct save {
	const struct srv_conf *now, *files;
	char *path;
	FILE *report;
	char *err;
	size_t len;
};

static int save_fail(const struct save *s, int rc, const char *what)
{
	snprintf(s->err, s->len, "%s: %s", what, strerror(-rc));
	return rc;
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

	return in_files && !opt_dir_is_saved(s->path, in_files->where) ? in_files : NULL;
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

		if (!opt_dir_is_saved(s->path, ex->where) &&
		    !conf_export_find(s->now, ex->spec.name))
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
		fprintf(out, "priority = %s\n", conf_limits_priority_text(ex->priority, priority));
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

	return fmt_error(-EINVAL, err, len, "export '%s': its name or path cannot be written in a "
			 "file: %.*s", ex->spec.name, why ? (int)strcspn(why + 1, "\n") : 1024,
			 why ? why + 1 : "it would be read as another one");
}

int conf_file_holds(const struct conf_export *ex, char *err, size_t len)
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
		return fmt_error(-ENOMEM, err, len, "out of memory");
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
		rc = conf_file_holds(ex, s->err, s->len);
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

/* Write the exports to a text, and the text to the file.  0 or -errno. */
static int save_file(const struct save *s)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int n;

	if (!out)
		return save_fail(s, -ENOMEM, s->path);
	n = write_exports(s, out);
	if (fclose(out) && n >= 0)
		n = save_fail(s, -ENOMEM, s->path);
	return n < 0 ? n : opt_dir_save(s->path, n ? text : NULL, len, s->err, s->len);
}

int conf_file_save(const struct srv_conf *now, const struct srv_conf *files, FILE *report,
		   char *err, size_t len)
{
	struct save s = { .now = now, .files = files, .report = report, .err = err, .len = len,
			  .path = opt_dir_saved(files->config) };
	int rc;

	if (!s.path)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	rc = save_file(&s);
	if (!rc) {
		report_given(&s);
		report_gone(&s);
	}
	free(s.path);
	return rc;
}
