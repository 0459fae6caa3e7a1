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
#include "random.h"
#include "store-drivers.h"
#include "suggest.h"
#include "util.h"

void exports_init(struct exports *e)
{
	list_init(&e->list);
	list_init(&e->stores);
	e->n = e->nslots = 0;
	e->one_medium = true;
	e->locked = false;
	e->lock_timeout_ms = EXPORTS_LOCK_TIMEOUT_MS;
	e->state_dir = -1;
	e->state_id = 0;
}

static void export_free(struct export *ex)
{
	pthread_mutex_destroy(&ex->failures.lock);
	free(ex->name);
	free(ex->path);
	ex->driver->close(ex);
}

/* The store of @ex goes with its last name. */
static void export_close(struct export *ex)
{
	struct store *store = ex->store;
	bool last = !--store->names;

	if (last && ex->driver->store_close)
		ex->driver->store_close(store);
	if (last)
		ex->store = NULL;
	export_free(ex);
	if (last)
		store_destroy(store);
}

void exports_del(struct exports *e, struct export *ex)
{
	list_del(&ex->link);
	e->n--;
	export_close(ex);
}

void exports_fini(struct exports *e)
{
	while (!list_empty(&e->list))
		exports_del(e, list_entry(e->list.next, struct export, link));
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

/* ---- "NAME=TARGET[,FLAG...]" ---- */

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

/* All flags of @ex's storage, "readonly" first; returns their number. */
#define FLAGS_MAX 8u
static unsigned all_flags(const struct export *ex, const char *flags[FLAGS_MAX])
{
	unsigned n = 0;

	flags[n++] = "readonly";
	for (const char *const *f = ex->driver->flags; *f && n < FLAGS_MAX; f++)
		flags[n++] = *f;
	return n;
}

static int unknown_flag(const struct export *ex, const char *flag, size_t len, char *err,
			size_t errlen)
{
	const char *flags[FLAGS_MAX], *meant;
	unsigned n = all_flags(ex, flags);
	char expected[128] = "";

	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(expected);

		const char *comma = i + 1 < n ? ", " : " or ";

		snprintf(expected + at, sizeof(expected) - at, "%s%s", i ? comma : "", flags[i]);
	}
	meant = suggest(flag, len, flags, n);
	snprintf(err, errlen,
		 "export '%s': unknown flag '%.*s'%s%s%s: expected %s (a comma in PATH is "
		 "written '\\,')",
		 ex->name, (int)len, flag, meant ? " (did you mean " : "", meant ? meant : "",
		 meant ? "?)" : "", expected);
	return -EINVAL;
}

/* False: there is no such flag. */
static bool set_flag(struct export *ex, const char *text, size_t len)
{
	const char *flags[FLAGS_MAX];
	unsigned n = all_flags(ex, flags);

	for (unsigned i = 0; i < n; i++) {
		if (len != strlen(flags[i]) || strncmp(text, flags[i], len))
			continue;
		if (i)
			ex->driver->flag(ex, i - 1);
		else
			ex->readonly = true;
		return true;
	}
	return false;
}

static int parse_flags(struct export *ex, const char *text, char *err, size_t errlen)
{
	while (*text == ',') {
		size_t len = strcspn(++text, ",");

		if (!set_flag(ex, text, len))
			return unknown_flag(ex, text, len, err, errlen);
		text += len;
	}
	return ex->driver->check(ex, err, errlen);
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

static int split_spec(const char *spec, char **name, char **target, const char **flags, char *err,
		      size_t errlen)
{
	const char *eq = strchr(spec, '=');

	if (!eq) {
		snprintf(err, errlen, "'%s': expected NAME=PATH[,readonly][,direct][,force]", spec);
		return -EINVAL;
	}
	*name = strndup(spec, (size_t)(eq - spec));
	*target = unescape(eq + 1, flags);
	if (*name && *target)
		return 0;
	snprintf(err, errlen, "export '%s': out of memory", spec);
	return -ENOMEM;
}

static const struct store_driver *driver_of(const char *target)
{
	const struct store_driver *const *d = store_drivers;

	while ((*d)->prefix && strncmp(target, (*d)->prefix, strlen((*d)->prefix)))
		d++;
	return *d;
}

static struct export *export_create(const char *target)
{
	const struct store_driver *driver = driver_of(target);
	struct export *ex = driver->create();

	if (!ex)
		return NULL;
	ex->driver = driver;
	pthread_mutex_init(&ex->failures.lock, NULL);
	return ex;
}

/* An export as @spec says, which is not opened; NULL with @rc and one line in @err. */
static struct export *parse_spec(const struct exports *e, const char *spec, int *rc, char *err,
				 size_t errlen)
{
	char *name = NULL, *target = NULL;
	struct export *ex = NULL;
	const char *flags;

	*rc = split_spec(spec, &name, &target, &flags, err, errlen);
	if (!*rc)
		*rc = check_name(e, name, err, errlen);
	if (!*rc && !*target) {
		snprintf(err, errlen, "export '%s': no path: expected NAME=PATH", name);
		*rc = -EINVAL;
	}
	if (!*rc && !(ex = export_create(target))) {
		snprintf(err, errlen, "export '%s': out of memory", spec);
		*rc = -ENOMEM;
	}
	if (!ex) {
		free(name);
		free(target);
		return NULL;
	}
	ex->name = name;
	ex->path = target;
	*rc = parse_flags(ex, flags, err, errlen);
	if (!*rc)
		return ex;
	export_free(ex);
	return NULL;
}

int exports_check(const struct exports *e, const char *spec, char *err, size_t errlen)
{
	int rc;
	struct export *ex = parse_spec(e, spec, &rc, err, errlen);

	if (ex)
		export_free(ex);
	return rc;
}

/* That of the exports which are the same, or a new one; NULL: no memory. */
static struct store *store_of(struct exports *e, const struct export *ex)
{
	struct store *store = store_find(&e->stores, &ex->id);

	return store ? store : store_create(&e->stores, &ex->id, ex->driver->store_own);
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
	struct export *ex;
	int rc;

	ex = parse_spec(e, spec, &rc, err, errlen);
	if (!ex)
		return rc;
	rc = ex->driver->open(ex, err, errlen);
	if (rc) {
		export_free(ex);
		return rc;
	}
	ex->store = store_of(e, ex);
	if (!ex->store) {
		snprintf(err, errlen, "export '%s': out of memory", spec);
		export_free(ex);
		return -ENOMEM;
	}
	ex->store->names++;
	ex->driver->added(ex);
	ex->all = e;
	if (e->n && ex->medium != list_entry(e->list.next, struct export, link)->medium)
		e->one_medium = false;
	ex->index = lowest_free_slot(e);
	e->nslots = MAX(e->nslots, ex->index + 1);
	e->n++;
	list_add_tail(&e->list, &ex->link);
	return 0;
}

struct export *exports_writer(const struct exports *e, const struct store *store)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->store == store && !ex->readonly)
			return ex;
	}
	return NULL;
}

struct export *exports_name(const struct exports *e, const struct store *store)
{
	struct export *ex;

	list_for_each(ex, &e->list, link) {
		if (ex->store == store)
			return ex;
	}
	return NULL;
}

int exports_lock(struct exports *e, char *err, size_t errlen)
{
	struct store *store;
	struct export *ex;
	int rc = 0;

	list_for_each(store, &e->stores, link) {
		/* NFS asks for a description that can write for an exclusive lock. */
		ex = exports_writer(e, store);
		if (!ex)
			ex = exports_name(e, store);
		if (!rc)
			rc = ex->driver->lock(ex, err, errlen);
	}
	/* During the wait any of the files may have been replaced, or be of another size. */
	list_for_each(ex, &e->list, link) {
		if (!rc)
			rc = ex->driver->check_same(ex, err, errlen);
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
			rc = ex->driver->claim(ex, err, errlen);
	}
	return rc;
}

uint64_t exports_losses(const struct exports *e)
{
	uint64_t sum = e->state_id, losses, state;
	const struct store *store;

	list_for_each(store, &e->stores, link) {
		losses = atomic_load(&store->state->losses);
		if (!losses)
			continue;
		/* Sums of unrelated numbers are not equal by chance. */
		state = fnv1a(FNV1A_INIT, store->id.bytes, store->id.len) ^ losses;
		sum += random_next(&state);
	}
	return sum;
}
