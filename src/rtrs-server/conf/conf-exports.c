/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of exports of a configuration, and the list's index of names; the configuration owns
 * both.  And copies of a configuration, which need lists of their own. */
#include <config.h>

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "number.h"
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
	const char **const *found = tfind(&name, &conf->by_name, by_text);

	return found ? container_of(*found, struct conf_export, spec.name) : NULL;
}

static void conf_export_free(struct conf_export *ex)
{
	export_spec_free(&ex->spec);
	free(ex->where);
	free(ex);
}

/* ---- the list ---- */

/* A copy of @ex, which is checked, that the user wrote at @where.  NULL: no memory. */
static struct conf_export *conf_export_new(const struct conf_export *ex, const char *where)
{
	struct conf_export *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *ex;
	copy->where = where ? strdup(where) : NULL;
	if (!export_spec_copy(&copy->spec, &ex->spec) && (copy->where || !where))
		return copy;
	conf_export_free(copy);
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
	const char **const *found =
		grow(conf) ? tsearch(&ex->spec.name, &conf->by_name, by_text) : NULL;

	if (found && *found == &ex->spec.name)
		conf->exports[conf->nexports++] = ex;
	return found ? container_of(*found, struct conf_export, spec.name) : NULL;
}

/* Refuse a second export of the name of @old. */
static int conf_given_twice(const struct conf_export *old, char *err, size_t len)
{
	return fmt_error(-EEXIST, err, len, "export name '%s' is given twice%s%s", old->spec.name,
			 old->where ? ": first in " : "", old->where ? old->where : "");
}

int conf_put_export(struct srv_conf *conf, struct conf_export *ex, const char *where, char *err,
		    size_t len)
{
	struct conf_export *copy, *has;
	int rc = export_spec_check(&ex->spec, err, len);

	if (rc)
		return rc;
	copy = conf_export_new(ex, where);
	has = copy ? put(conf, copy) : NULL;
	if (copy && has == copy)
		return 0;
	if (has) {
		rc = conf_given_twice(has, err, len);
	} else {
		snprintf(err, len, "out of memory");
		rc = -ENOMEM;
	}
	if (copy)
		conf_export_free(copy);
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
	tdelete(&ex->spec.name, &conf->by_name, by_text);
	conf_export_free(ex);
	conf->nexports--;
	memmove(&conf->exports[i], &conf->exports[i + 1], (conf->nexports - i) * sizeof(ex));
	return 0;
}

/* Copy the exports of @conf to @copy, which has none.  0 or -ENOMEM. */
static int copy_exports(struct srv_conf *copy, const struct srv_conf *conf)
{
	for (unsigned i = 0; i < conf->nexports; i++) {
		const struct conf_export *ex = conf->exports[i];
		struct conf_export *own = conf_export_new(ex, ex->where);

		if (!own)
			return -ENOMEM;
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

/* ---- copies ---- */

/* A copy of the @n bytes at @array in *@copy.  False: no memory. */
static bool copy_array(void *copy, const void *array, size_t n)
{
	void *all = n ? malloc(n) : NULL;

	if (n && all)
		memcpy(all, array, n);
	memcpy(copy, &all, sizeof(all));
	return !n || all;
}

int conf_copy(struct srv_conf *copy, const struct srv_conf *conf)
{
	*copy = *conf;
	copy->exports = NULL;
	copy->nexports = 0;
	copy->by_name = NULL;
	/* ORDER: both before a copy fails, because conf_fini() frees what @copy has. */
	copy->listeners = NULL;
	copy->allow = NULL;
	copy->texts = (struct opt_texts){ 0 };
	if (copy_array(&copy->listeners, conf->listeners,
		       conf->nlisteners * sizeof(*conf->listeners)) &&
	    copy_array(&copy->allow, conf->allow, conf->nallow * sizeof(*conf->allow)))
		return copy_exports(copy, conf);
	return -ENOMEM;
}

#define SWAP(a, b) do { __typeof__(a) swap_ = (a); (a) = (b); (b) = swap_; } while (0)

void conf_adopt(struct srv_conf *conf, struct srv_conf *wanted)
{
	SWAP(conf->exports, wanted->exports);
	SWAP(conf->nexports, wanted->nexports);
	SWAP(conf->by_name, wanted->by_name);
	SWAP(conf->listeners, wanted->listeners);
	SWAP(conf->nlisteners, wanted->nlisteners);
	/* They are texts of @wanted, which goes. */
	for (unsigned i = 0; i < conf->nlisteners; i++)
		conf->listeners[i].where = NULL;
	SWAP(conf->allow, wanted->allow);
	SWAP(conf->nallow, wanted->nallow);
	conf->log_level = wanted->log_level;
}

void conf_fini(struct srv_conf *conf)
{
	conf_free_exports(conf);
	free(conf->allow);
	free(conf->listeners);
	opt_texts_free(&conf->texts);
}
