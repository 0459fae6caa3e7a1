/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports of a configuration, and the list's index of names; the configuration owns
 * both. */
#include <config.h>

#include <errno.h>
#include <search.h>
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

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct conf_export *conf_export_find(const struct srv_conf *conf, const char *name)
{
	char **const *found = tfind(&name, &conf->by_name, by_text);

	return found ? container_of(*found, struct conf_export, name) : NULL;
}

static void conf_export_free(struct conf_export *ex)
{
	free(ex->name);
	free(ex->spec);
	free(ex->where);
	free(ex);
}

/* ---- one form of each line ---- */

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
	qsort(flags, n, sizeof(*flags), by_text);
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

/* An export with copies of @spec, a line that has a name, and of @where.  NULL: no memory. */
static struct conf_export *conf_export_new(const char *spec, const char *where)
{
	struct conf_export *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return NULL;
	ex->name = strndup(spec, strcspn(spec, "="));
	ex->spec = spec_copy(spec);
	ex->where = where ? strdup(where) : NULL;
	if (ex->name && ex->spec && (ex->where || !where))
		return ex;
	conf_export_free(ex);
	return NULL;
}

/* Make room for another export: twice as much, so that the array is seldom copied. */
static bool grow(struct srv_conf *conf)
{
	struct conf_export **all;

	if (conf->nexports & (conf->nexports - 1))
		return true;
	all = reallocarray(conf->exports, MAX(2 * conf->nexports, 1u), sizeof(*all));
	if (all)
		conf->exports = all;
	return all;
}

/* Add @ex to @conf if no other one has its name.  The export of that name, which is @ex or the
 * other one; NULL: no memory. */
static struct conf_export *put(struct srv_conf *conf, struct conf_export *ex)
{
	char **const *found = grow(conf) ? tsearch(&ex->name, &conf->by_name, by_text) : NULL;

	if (found && *found == &ex->name)
		conf->exports[conf->nexports++] = ex;
	return found ? container_of(*found, struct conf_export, name) : NULL;
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
	struct conf_export *ex, *has;
	struct exports none;
	int rc;

	exports_init(&none, 0);
	rc = exports_check(&none, spec, err, len);
	if (rc)
		return rc;
	ex = conf_export_new(spec, where);
	has = ex ? put(conf, ex) : NULL;
	if (ex && has == ex)
		return 0;
	if (has) {
		rc = conf_given_twice(has, err, len);
	} else {
		snprintf(err, len, "out of memory");
		rc = -ENOMEM;
	}
	if (ex)
		conf_export_free(ex);
	return rc;
}

int conf_del_export(struct srv_conf *conf, const char *name)
{
	struct conf_export *ex = conf_export_find(conf, name);
	unsigned i = 0;

	if (!ex)
		return -ENOENT;
	while (conf->exports[i] != ex)
		i++;
	tdelete(&ex->name, &conf->by_name, by_text);
	conf_export_free(ex);
	conf->nexports--;
	memmove(&conf->exports[i], &conf->exports[i + 1], (conf->nexports - i) * sizeof(ex));
	return 0;
}

int conf_copy_exports(struct srv_conf *copy, const struct srv_conf *conf)
{
	for (unsigned i = 0; i < conf->nexports; i++) {
		const struct conf_export *ex = conf->exports[i];
		struct conf_export *own = conf_export_new(ex->spec, ex->where);

		if (!own)
			return -ENOMEM;
		own->limits = ex->limits;
		own->allow = ex->allow;
		own->read_only = ex->read_only;
		own->priority = ex->priority;
		if (!put(copy, own)) {
			conf_export_free(own);
			return -ENOMEM;
		}
	}
	return 0;
}

static void nothing(void *name)
{
	(void)name;
}

void conf_free_exports(struct srv_conf *conf)
{
	tdestroy(conf->by_name, nothing);
	conf->by_name = NULL;
	for (unsigned i = 0; i < conf->nexports; i++)
		conf_export_free(conf->exports[i]);
	free(conf->exports);
	conf->exports = NULL;
	conf->nexports = 0;
}
