/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts of the lines. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "doctor-conf.h"
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
			conf->has_sections = true;
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

int doctor_conf_read(struct doctor_conf *conf, const char *path, char *why, size_t len)
{
	struct plain_file file = { 0 };
	int rc = plain_file_load(path, OPT_FILE_MAX, &file, why, len);

	if (rc)
		return rc;
	rc = read_lines(conf, file.text);
	if (rc)
		snprintf(why, len, "%s", strerror(-rc));
	plain_file_free(&file);
	return rc;
}

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 5, ".conf");
}

void doctor_conf_read_dir(struct doctor_conf *conf, const char *path)
{
	_cleanup_free_ char *dir = NULL;
	struct dirent **entries;
	char why[256];
	int n;

	if (asprintf(&dir, "%s.d", path) < 0) {
		dir = NULL;
		return;
	}
	n = plain_file_list(dir, is_conf, &entries, why, sizeof(why));
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *file = NULL;

		if (asprintf(&file, "%s/%s", dir, entries[i]->d_name) < 0)
			file = NULL;
		else
			doctor_conf_read(conf, file, why, sizeof(why));
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
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
