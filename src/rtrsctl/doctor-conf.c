/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts of the lines. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor-conf.h"
#include "opt-dir.h"
#include "opt-file.h"
#include "opt-line.h"
#include "plain-file.h"

/* False: no memory. */
static bool add_line(struct doctor_conf *conf, const char *section, const char *name,
		     const char *value)
{
	struct doctor_line *all = realloc(conf->lines, (conf->n + 1) * sizeof(*all));
	struct doctor_line *line;

	if (!all)
		return false;
	conf->lines = all;
	line = &all[conf->n++];
	*line = (struct doctor_line){ strdup(section), strdup(name), strdup(value) };
	return line->section && line->name && line->value;
}

/* The title of the header @line, '[export "disk0"]', in its place; "": it has none. */
static const char *section_title(char *line)
{
	char *quote = strchr(line, '"'), *end = quote ? strrchr(quote + 1, '"') : NULL;

	if (!end)
		return "";
	*end = '\0';
	return quote + 1;
}

static int read_lines(struct doctor_conf *conf, char *text)
{
	const char *section = "";
	char *line, *name, *value;
	bool quoted;

	while ((line = strsep(&text, "\n"))) {
		line = opt_line_trim(line);
		if (*line == '[') {
			conf->is_server |= !strncmp(line, "[server", 7) ||
					   !strncmp(line, "[export", 7);
			section = section_title(line);
			continue;
		}
		if (!*line || strchr("#;", *line))
			continue;
		opt_line_split(line, &name, &value, &quoted);
		if (value && !add_line(conf, section, name, value))
			return -ENOMEM;
	}
	return 0;
}

static int read_one(void *arg, const char *path, FILE *errors)
{
	struct plain_file file = { 0 };
	char why[256];
	int rc = plain_file_load(path, OPT_FILE_MAX, &file, why, sizeof(why));

	if (!rc) {
		rc = read_lines(arg, file.text);
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	}
	if (rc)
		fprintf(errors, "%s: %s\n", path, why);
	plain_file_free(&file);
	return rc;
}

char *doctor_conf_read(struct doctor_conf *conf, const char *path)
{
	char *text = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&text, &len);

	if (!errors)
		return NULL;
	opt_dir_read(path, read_one, conf, errors);
	fclose(errors);
	return text;
}

const char *doctor_conf_next(const struct doctor_conf *conf, const char *name, size_t *at,
			     const char **section)
{
	while (*at < conf->n) {
		const struct doctor_line *line = &conf->lines[(*at)++];

		if (strcmp(line->name, name))
			continue;
		if (section)
			*section = line->section;
		return line->value;
	}
	return NULL;
}

const char *doctor_conf_of(const struct doctor_conf *conf, const char *section, const char *name)
{
	const char *of, *value;
	size_t at = 0;

	while ((value = doctor_conf_next(conf, name, &at, &of))) {
		if (!strcmp(of, section))
			return value;
	}
	return NULL;
}

void doctor_conf_free(struct doctor_conf *conf)
{
	for (size_t i = 0; i < conf->n; i++) {
		free(conf->lines[i].section);
		free(conf->lines[i].name);
		free(conf->lines[i].value);
	}
	free(conf->lines);
	*conf = (struct doctor_conf){ 0 };
}
