/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the retries.  One that is dropped while its export is on its way is freed behind the way.
 * Control thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export-life.h"
#include "export-retry.h"
#include "log.h"
#include "util.h"

/* ---- one ---- */

static void retry_free(struct export_retry *retry)
{
	list_del(&retry->link);
	index_del(&retry->exports->retries_by_name, &retry->by_name);
	export_spec_free(&retry->spec);
	free(retry->why);
	free(retry);
}

/* Note and log @why the storage cannot be opened, unless that is known. */
static void retry_note(struct export_retry *retry, const char *why)
{
	char *copy;

	if (!strcmp(retry->why, why))
		return;
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(EXPORT_FAILED, .export = retry->name), retry->name,
		  "%s; retrying every %u s", why, EXPORT_RETRY_MS / 1000);
	copy = strdup(why);
	if (!copy)
		return;
	free(retry->why);
	retry->why = copy;
}

static void retry_arm(struct exports *e, uint64_t next_ms);

/* The storage is open: give the name to @ex. */
static void retry_show(struct export_retry *retry, struct export *ex)
{
	struct export_life *life = retry->exports->life;
	struct export *before = exports_find(retry->exports, retry->name);

	if (before)
		export_life_remove(life, before);
	retry_free(retry);
	life->opened(life->opened_arg, export_life_show(life, ex));
}

static void retry_ended(struct export *ex, int rc, const char *err, void *arg)
{
	struct export_retry *retry = arg;
	struct exports *e = retry->exports;

	if (retry->state == EXPORT_RETRY_DROPPED) {
		if (!rc)
			export_life_remove(e->life, ex);
		retry_free(retry);
	} else if (rc) {
		retry->state = EXPORT_RETRY_WAITS;
		retry->next_ms = clock_now_ms() + EXPORT_RETRY_MS;
		retry_note(retry, err);
		retry_arm(e, retry->next_ms);
	} else {
		retry_show(retry, ex);
	}
}

static void retry_open(struct export_retry *retry)
{
	struct export *ex = export_life_add(retry->exports->life, &retry->spec, retry_ended, retry);

	if (ex) {
		ex->hasty = true;
		retry->state = EXPORT_RETRY_OPENS;
		return;
	}
	retry->next_ms = clock_now_ms() + EXPORT_RETRY_MS;
	retry_note(retry, "out of memory");
}

/* ---- all ---- */

/* Have a try at @next_ms at the latest. */
static void retry_arm(struct exports *e, uint64_t next_ms)
{
	struct loop_timer *timer = e->life ? &e->life->retry_timer : NULL;

	if (!timer || atomic_load(&e->stopping))
		return;
	/* A timer that fires too early does nothing. */
	if (list_empty(&timer->link) || next_ms < timer->at_ms)
		loop_timer_set(e->life->loop, timer, next_ms);
}

/* Have a try when the first of all waits for it. */
static void retry_arm_all(struct exports *e)
{
	struct export_retry *retry;

	list_for_each(retry, &e->retries, link) {
		if (retry->state == EXPORT_RETRY_WAITS)
			retry_arm(e, retry->next_ms);
	}
}

static void retry_timer(struct loop_timer *timer)
{
	struct exports *e = container_of(timer, struct export_life, retry_timer)->exports;
	uint64_t now = clock_now_ms();
	struct export_retry *retry;

	list_for_each(retry, &e->retries, link) {
		if (retry->state == EXPORT_RETRY_WAITS && retry->next_ms <= now)
			retry_open(retry);
	}
	retry_arm_all(e);
}

static struct export_retry *retry_create(struct exports *e, const struct export_spec *spec)
{
	struct export_retry *retry = calloc(1, sizeof(*retry));

	if (!retry)
		return NULL;
	retry->why = strdup("");
	if (!retry->why || export_spec_copy(&retry->spec, spec)) {
		free(retry->why);
		free(retry);
		return NULL;
	}
	retry->exports = e;
	retry->name = retry->spec.name;
	retry->since_ms = clock_now_ms();
	list_add_tail(&e->retries, &retry->link);
	index_add(&e->retries_by_name, &retry->by_name, index_text(retry->name));
	return retry;
}

int export_retry_aside(struct exports *e, struct export *ex, const char *why)
{
	int rc = export_retry_add(e, &ex->spec, why);

	if (!rc)
		exports_del(e, ex);
	return rc;
}

int export_retry_add(struct exports *e, const struct export_spec *spec, const char *why)
{
	struct export_retry *retry;

	export_retry_drop(e, spec->name);
	retry = retry_create(e, spec);
	if (!retry)
		return -ENOMEM;
	if (why) {
		retry->next_ms = retry->since_ms + EXPORT_RETRY_MS;
		retry_note(retry, why);
	}
	retry_arm(e, retry->next_ms);
	return 0;
}

void export_retry_drop(struct exports *e, const char *name)
{
	struct export_retry *retry = export_retry_find(e, name);

	if (!retry)
		return;
	if (retry->state == EXPORT_RETRY_OPENS)
		retry->state = EXPORT_RETRY_DROPPED;
	else
		retry_free(retry);
}

struct export_retry *export_retry_find(const struct exports *e, const char *name)
{
	struct index_node *node;

	index_for_each(node, &e->retries_by_name, index_text(name)) {
		struct export_retry *retry = container_of(node, struct export_retry, by_name);

		if (retry->state != EXPORT_RETRY_DROPPED && !strcmp(retry->name, name))
			return retry;
	}
	return NULL;
}

bool export_retry_is_bare(const struct export_retry *retry)
{
	return retry->state != EXPORT_RETRY_DROPPED && !exports_find(retry->exports, retry->name);
}

const char *export_retry_bare_word(const struct export_retry *retry)
{
	return *retry->why ? "failed" : "opening";
}

void export_retry_replaced(struct export *ex)
{
	struct exports *e = ex->all;

	if (!e->life ||
	    (!export_retry_find(e, ex->name) && export_retry_add(e, &ex->spec, NULL)))
		return;
	log_event(LOG_LEVEL_WARN, LOG_FIELDS(EXPORT_REMOVED, .export = ex->name), ex->name,
		  "'%s' now names %s: it is opened again", ex->path,
		  ex->named == EXPORT_NAMED_OTHER ? "another file" : "no file");
	export_life_remove(e->life, ex);
}

const char *export_retry_word(const struct export *ex)
{
	static const char *const words[] = {
		[EXPORT_NAMED_OPEN] = "ok", [EXPORT_NAMED_OTHER] = "replaced",
		[EXPORT_NAMED_NOTHING] = "unlinked",
	};

	if (ex->life.rung != EXPORT_SHOWN)
		return "removed";
	if (ex->driver->fenced && ex->driver->fenced(ex))
		return "fenced";
	return export_retry_find(ex->all, ex->name) ? "stale" : words[ex->named];
}

/* ---- begin and end ---- */

void export_retry_begin(struct exports *e)
{
	loop_timer_init(&e->life->retry_timer, retry_timer);
	retry_arm_all(e);
}

void export_retry_end(struct exports *e)
{
	loop_timer_cancel(&e->life->retry_timer);
}

void export_retry_fini(struct exports *e)
{
	while (!list_empty(&e->retries))
		retry_free(list_entry(e->retries.next, struct export_retry, link));
}
