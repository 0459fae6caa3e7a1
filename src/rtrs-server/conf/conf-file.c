/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a configuration: [server] has the options of the command line, and each
 * [export "NAME"] an export.  Owns the export whose section is read. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf-priv.h"
#include "exit-status.h"
#include "opt-file.h"
#include "plain-file.h"
#include "util.h"

struct conf_section {
	struct srv_conf *conf;
	/* [export "NAME"] */
	char *name;
	struct conf_export ex;
};

static void *begin_server(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct conf_section *s = arg;

	return s->conf;
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

static const struct opt_section sections[] = {
	{ .name = "server", .table = &conf_options, .begin = begin_server },
	{ .name = "export", .titled = true, .table = &conf_export_options, .begin = begin_export,
	  .end = end_export },
};

int conf_file_read(struct srv_conf *conf, const char *path, FILE *errors)
{
	struct conf_section s = { .conf = conf };
	int rc = opt_file_read(path, sections, ARRAY_SIZE(sections), &s, &conf->texts, errors);

	free(s.name);
	return rc;
}

int conf_file_parse(struct srv_conf *conf, const char *path, char *text, size_t len, FILE *errors)
{
	struct conf_section s = { .conf = conf };
	int rc = opt_file_parse(path, text, len, sections, ARRAY_SIZE(sections), &s, &conf->texts,
				errors);

	free(s.name);
	return rc;
}

/* ---- the directory beside the file ---- */

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 5, ".conf");
}

static int read_entry(struct srv_conf *conf, const char *dir, const char *name, FILE *errors)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		fprintf(errors, "out of memory\n");
		return -ENOMEM;
	}
	rc = conf_file_read(conf, path, errors);
	free(path);
	return rc;
}

/* Read the rest of @dir behind a mistake, too, but return the first error. */
static int read_dir(struct srv_conf *conf, const char *dir, FILE *errors)
{
	struct dirent **entries;
	char why[256];
	int n = plain_file_list(dir, is_conf, &entries, why, sizeof(why)), rc = 0;

	if (n == -ENOENT)
		return 0;
	if (n < 0) {
		fprintf(errors, "%s: %s\n", dir, why);
		return exit_file_error(n);
	}
	for (int i = 0; i < n; i++) {
		int one = read_entry(conf, dir, entries[i]->d_name, errors);

		rc = rc ? rc : one;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int conf_file_read_all(struct srv_conf *conf, FILE *errors)
{
	int rc = conf_file_read(conf, conf->config, errors), more;
	char *dir;

	if (asprintf(&dir, "%s.d", conf->config) < 0) {
		fprintf(errors, "out of memory\n");
		return -ENOMEM;
	}
	more = read_dir(conf, dir, errors);
	free(dir);
	return rc ? rc : more;
}
