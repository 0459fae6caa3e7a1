/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports of a configuration, which the configuration owns. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf-priv.h"
#include "exports.h"
#include "util.h"

void *conf_grow_array(void *array, unsigned n, size_t size, char *why, size_t len)
{
	void *all = realloc(array, (n + 1) * size);

	if (!all)
		snprintf(why, len, "out of memory");
	return all;
}

const struct conf_export *conf_export_find(const struct srv_conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->nexports; i++) {
		if (!strcmp(conf->exports[i].name, name))
			return &conf->exports[i];
	}
	return NULL;
}

static void conf_export_free(struct conf_export *ex)
{
	free(ex->name);
	free(ex->spec);
	free(ex->where);
}

/* ---- one form of each line ---- */

static int by_flag(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The comma at @text or behind that no '\' stands before; the end: none. */
static char *next_comma(char *text)
{
	while (*text && *text != ',')
		text += text[0] == '\\' && text[1] ? 2 : 1;
	return text;
}

static size_t count_commas(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

/* Write the flags behind the comma at @at to @out, "readonly" first, the others by their names,
 * each once.  @at is changed.  False: no memory. */
static bool write_flags(char *at, char *out)
{
	char **flags = calloc(count_commas(at), sizeof(*flags)), *flag;
	unsigned n = 0;

	if (!flags)
		return false;
	for (bool more = true; more;) {
		flag = at + 1;
		at = next_comma(flag);
		more = *at;
		*at = '\0';
		if (!strcmp(flag, "readonly"))
			out = stpcpy(stpcpy(out, ","), flag);
		else if (*flag)
			flags[n++] = flag;
	}
	qsort(flags, n, sizeof(*flags), by_flag);
	for (unsigned i = 0; i < n; i++) {
		if (!i || strcmp(flags[i], flags[i - 1]))
			out = stpcpy(stpcpy(out, ","), flags[i]);
	}
	free(flags);
	return true;
}

/* A copy of @spec, whose flags stand in one order: two lines that mean one export are one text.
 * NULL: no memory. */
static char *spec_copy(const char *spec)
{
	char *copy = strdup(spec), *flags = strdup(spec), *comma = copy ? next_comma(copy) : NULL;
	bool ok = copy && flags;

	if (ok && *comma) {
		*comma = '\0';
		ok = write_flags(flags + (comma - copy), comma);
	}
	free(flags);
	if (ok)
		return copy;
	free(copy);
	return NULL;
}

/* ---- the list ---- */

/* @ex has copies of @spec, a line that has a name, and of @where.  0 or -ENOMEM. */
static int conf_export_copy(struct conf_export *ex, const char *spec, const char *where)
{
	*ex = (struct conf_export){
		.name = strndup(spec, strcspn(spec, "=")), .spec = spec_copy(spec),
		.where = where ? strdup(where) : NULL,
	};
	if (ex->name && ex->spec && (ex->where || !where))
		return 0;
	conf_export_free(ex);
	return -ENOMEM;
}

/* Refuse a second export of the name of @old. */
static int conf_given_twice(const struct conf_export *old, char *err, size_t len)
{
	snprintf(err, len, "export name '%s' is given twice%s%s", old->name,
		 old->where ? ": first in " : "", old->where ? old->where : "");
	return -EEXIST;
}

int conf_add_export_of(struct srv_conf *conf, const char *spec, const char *where, char *err,
		       size_t len)
{
	const struct conf_export *old;
	struct conf_export *ex, *all;
	struct exports none;
	int rc;

	all = conf_grow_array(conf->exports, conf->nexports, sizeof(*all), err, len);
	if (!all)
		return -ENOMEM;
	conf->exports = all;
	exports_init(&none, 0);
	rc = exports_check(&none, spec, err, len);
	if (rc)
		return rc;
	ex = &all[conf->nexports];
	if (conf_export_copy(ex, spec, where)) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	old = conf_export_find(conf, ex->name);
	if (old) {
		rc = conf_given_twice(old, err, len);
		conf_export_free(ex);
		return rc;
	}
	conf->nexports++;
	return 0;
}

int conf_del_export(struct srv_conf *conf, const char *name)
{
	unsigned i = 0;

	while (i < conf->nexports && strcmp(conf->exports[i].name, name))
		i++;
	if (i == conf->nexports)
		return -ENOENT;
	conf_export_free(&conf->exports[i]);
	conf->nexports--;
	memmove(&conf->exports[i], &conf->exports[i + 1],
		(conf->nexports - i) * sizeof(*conf->exports));
	return 0;
}

int conf_copy_exports(struct srv_conf *copy, const struct srv_conf *conf)
{
	copy->exports = calloc(conf->nexports + 1, sizeof(*copy->exports));
	if (!copy->exports)
		return -ENOMEM;
	for (unsigned i = 0; i < conf->nexports; i++) {
		const struct conf_export *ex = &conf->exports[i];

		if (conf_export_copy(&copy->exports[i], ex->spec, ex->where))
			return -ENOMEM;
		copy->exports[i].limits = ex->limits;
		copy->exports[i].allow = ex->allow;
		copy->exports[i].read_only = ex->read_only;
		copy->exports[i].priority = ex->priority;
		copy->nexports++;
	}
	return 0;
}

void conf_free_exports(struct srv_conf *conf)
{
	for (unsigned i = 0; i < conf->nexports; i++)
		conf_export_free(&conf->exports[i]);
	free(conf->exports);
	conf->exports = NULL;
	conf->nexports = 0;
}
