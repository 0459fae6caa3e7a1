/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the exports: parsed, opened and measured on the main thread at start (file/store-file.c),
 * constant afterwards but for the user counts (control thread) and the error latch (any thread).
 * Ends with exports_fini() when no IO is in flight.  A spec that cannot be served is refused with
 * one line that names it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "exports.h"
#include "suggest.h"
#include "util.h"

void exports_init(struct exports *e)
{
	list_init(&e->list);
	e->n = e->nslots = 0;
	e->one_fs = true;
	e->locked = false;
	e->lock_timeout_ms = EXPORTS_LOCK_TIMEOUT_MS;
	e->state_dir = -1;
	e->state_id = 0;
}

static void export_free(struct export *ex)
{
	pthread_mutex_destroy(&ex->failures.lock);
	range_lock_fini(&ex->ranges);
	free(ex->name);
	free(ex->path);
	ex->ops->close(ex);
}

void exports_fini(struct exports *e)
{
	struct export *ex;

	while ((ex = list_pop_entry(&e->list, struct export, link)))
		export_free(ex);
	e->n = 0;
	if (e->state_dir >= 0)
		close(e->state_dir);
	e->state_dir = -1;
}

struct export *exports_find(const struct exports *e, const char *name)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (!strcmp(ex->name, name))
			return ex;
	}
	return NULL;
}

/* ---- "NAME=PATH[,readonly][,direct][,force]" ---- */

/* Copy @text up to the next unescaped comma into a new string, without the escapes; @rest is set to
 * the comma or the end. */
static char *unescape(const char *text, const char **rest)
{
	char *out = malloc(strlen(text) + 1), *o = out;

	if (!out)
		return NULL;
	while (*text && *text != ',') {
		if (text[0] == '\\' && (text[1] == ',' || text[1] == '\\'))
			text++;
		*o++ = *text++;
	}
	*o = '\0';
	*rest = text;
	return out;
}

static const char *const flag_names[] = { "readonly", "direct", "force" };

static int unknown_flag(const struct export *ex, const char *flag, size_t len, char *err,
			size_t errlen)
{
	const char *meant = suggest(flag, len, flag_names, ARRAY_SIZE(flag_names));

	snprintf(err, errlen, "export '%s': unknown flag '%.*s'%s%s%s: expected readonly, direct or "
		 "force (a comma in PATH is written '\\,')", ex->name, (int)len, flag,
		 meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
	return -EINVAL;
}

static int parse_flags(struct export *ex, const char *text, char *err, size_t errlen)
{
	while (*text == ',') {
		size_t len = strcspn(++text, ",");

		if (len == strlen("readonly") && !strncmp(text, "readonly", len)) {
			ex->readonly = true;
		} else if (len == strlen("direct") && !strncmp(text, "direct", len)) {
			ex->direct = true;
		} else if (len == strlen("force") && !strncmp(text, "force", len)) {
			ex->force = true;
		} else {
			return unknown_flag(ex, text, len, err, errlen);
		}
		text += len;
	}
	if (ex->force && ex->readonly) {
		snprintf(err, errlen, "export '%s': readonly and force together: what is exported for "
			 "reading may be in use by others: leave force out", ex->name);
		return -EINVAL;
	}
	return 0;
}

static int check_name(const struct exports *e, const char *name, char *err, size_t errlen)
{
	if (!*name) {
		snprintf(err, errlen, "export without a name: expected NAME=PATH");
		return -EINVAL;
	}
	if (strlen(name) >= RNBD_NAME_MAX) {
		snprintf(err, errlen, "export name '%.32s...' has %zu bytes: at most %d fit the "
			 "protocol", name, strlen(name), RNBD_NAME_MAX - 1);
		return -ENAMETOOLONG;
	}
	if (strstr(name, "..")) {
		snprintf(err, errlen, "export name '%s': '..' is not allowed in a name", name);
		return -EINVAL;
	}
	if (exports_find(e, name)) {
		snprintf(err, errlen, "export name '%s' is given twice", name);
		return -EEXIST;
	}
	return 0;
}

static int parse_spec(struct export *ex, const struct exports *e, const char *spec, char *err,
		      size_t errlen)
{
	const char *eq = strchr(spec, '='), *rest;
	int rc;

	if (!eq) {
		snprintf(err, errlen, "'%s': expected NAME=PATH[,readonly][,direct][,force]", spec);
		return -EINVAL;
	}
	ex->name = strndup(spec, (size_t)(eq - spec));
	ex->path = unescape(eq + 1, &rest);
	if (!ex->name || !ex->path) {
		snprintf(err, errlen, "export '%s': out of memory", spec);
		return -ENOMEM;
	}
	rc = check_name(e, ex->name, err, errlen);
	if (rc)
		return rc;
	if (!*ex->path) {
		snprintf(err, errlen, "export '%s': no path: expected NAME=PATH", ex->name);
		return -EINVAL;
	}
	return parse_flags(ex, rest, err, errlen);
}

int exports_check(const struct exports *e, const char *spec, char *err, size_t errlen)
{
	struct export ex = { 0 };
	int rc = parse_spec(&ex, e, spec, err, errlen);

	free(ex.name);
	free(ex.path);
	return rc;
}

/* The first export of the same file or device counts for all of them. */
static struct export *find_same_file(const struct exports *e, const struct export *ex)
{
	struct export *other;

	list_for_each(other, &e->list, link) {
		if (other->is_block == ex->is_block && other->dev == ex->dev &&
		    other->ino == ex->ino)
			return other->first;
	}
	return NULL;
}

static bool same_fs(const struct export *a, const struct export *b)
{
	return a->is_block == b->is_block && a->dev == b->dev;
}

static bool slot_is_free(const struct exports *e, unsigned slot)
{
	const struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->index == slot)
			return false;
	}
	return true;
}

static unsigned lowest_free_slot(const struct exports *e)
{
	unsigned slot = 0;

	while (!slot_is_free(e, slot))
		slot++;
	return slot;
}

int exports_add(struct exports *e, const char *spec, char *err, size_t errlen)
{
	struct export *ex = store_file_create();
	struct export *same;
	int rc;

	if (!ex) {
		snprintf(err, errlen, "export '%s': out of memory", spec);
		return -ENOMEM;
	}
	ex->state = &ex->own_state;
	range_lock_init(&ex->ranges);
	pthread_mutex_init(&ex->failures.lock, NULL);
	rc = parse_spec(ex, e, spec, err, errlen);
	if (!rc)
		rc = ex->ops->open(ex, err, errlen);
	if (rc) {
		export_free(ex);
		return rc;
	}
	same = find_same_file(e, ex);
	ex->first = same ? same : ex;
	ex->ops->added(ex);
	ex->all = e;
	if (e->n && !same_fs(ex, list_entry(e->list.next, struct export, link)))
		e->one_fs = false;
	ex->index = lowest_free_slot(e);
	e->nslots = MAX(e->nslots, ex->index + 1);
	e->n++;
	list_add_tail(&e->list, &ex->link);
	return 0;
}

struct export *exports_writer(const struct exports *e, const struct export *first)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->first == first && !ex->readonly)
			return ex;
	}
	return NULL;
}

int exports_lock(struct exports *e, char *err, size_t errlen)
{
	struct export *ex;
	int rc = 0;

	list_for_each(ex, &e->list, link) {
		/* NFS asks for a description that can write for an exclusive lock. */
		struct export *writer = exports_writer(e, ex);

		if (ex->first == ex && !rc)
			rc = ex->ops->lock(writer ? writer : ex, err, errlen);
	}
	/* During the wait any of the files may have been replaced, or be of another size. */
	list_for_each(ex, &e->list, link) {
		if (!rc)
			rc = ex->ops->check_same(ex, err, errlen);
	}
	e->locked = !rc;
	return rc;
}

int exports_claim(struct exports *e, char *err, size_t errlen)
{
	struct export *ex;
	int rc = 0;

	list_for_each(ex, &e->list, link) {
		if (!rc)
			rc = ex->ops->claim(ex, err, errlen);
	}
	return rc;
}

/* SplitMix64: other numbers in, unrelated numbers out. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t exports_losses(const struct exports *e)
{
	uint64_t sum = e->state_id, losses;
	const struct export *ex;

	list_for_each(ex, &e->list, link) {
		losses = atomic_load(&ex->state->losses);
		if (losses)
			sum += mix(mix(mix(ex->dev) ^ ex->ino) ^ losses);
	}
	return sum;
}
