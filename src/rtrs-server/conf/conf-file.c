/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a configuration: [server] has the options of the command line, and each
 * [export "NAME"] an export.  Owns the export whose section is read. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "conf-priv.h"
#include "opt-dir.h"
#include "opt-file.h"
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

static int read_one(void *conf, const char *path, FILE *errors)
{
	return conf_file_read(conf, path, errors);
}

int conf_file_read_all(struct srv_conf *conf, FILE *errors)
{
	return opt_dir_read(conf->config, read_one, conf, errors);
}
