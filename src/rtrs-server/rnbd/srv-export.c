/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: gives each export its counters, and each store its share of the threads' pools, and
 * takes them back. */
#include "conf-priority.h"
#include "exports.h"
#include "log.h"
#include "srv-close.h"
#include "srv-export-stat.h"
#include "srv-export.h"
#include "srv-open.h"
#include "srv-prio.h"
#include "srv-resize.h"
#include "srv-rnbd-state.h"

static int export_comes(void *arg, struct export *ex)
{
	return srv_export_stat_begin(srv_rnbd(arg), ex);
}

static void export_goes(void *arg, struct export *ex)
{
	srv_export_stat_end(ex);
}

/* NULL: this server makes no private copies. */
static struct srv_pool *pool_of(struct srv *srv, unsigned thread)
{
	struct srv_pool *pool = &srv->threads[thread].pool;

	return pool->base ? pool : NULL;
}

static int store_comes(void *arg, unsigned ring, const struct store *store)
{
	struct srv_pool *pool = pool_of(arg, ring);

	return pool ? srv_pool_share_add(pool, store->index) : 0;
}

static void store_goes(void *arg, unsigned ring, const struct store *store)
{
	struct srv_pool *pool = pool_of(arg, ring);

	if (pool)
		srv_pool_share_del(pool, store->index);
}

static void export_openers(void *arg, const struct export *ex, char *buf, size_t len)
{
	srv_close_openers(arg, ex, buf, len);
}

static void export_kick(void *arg, const struct export *ex)
{
	srv_close_kick_export(arg, ex);
}

static void store_fenced(void *arg, const struct store *store)
{
	srv_close_fenced(arg, store);
}

static void store_led(void *arg, const struct store *store)
{
	srv_open_retry(arg);
}

/* srv-size.c logs the change. */
static void sizes_known(void *arg, int rc, const char *text)
{
}

static void export_resized(void *arg, const struct export *ex)
{
	srv_resize(arg, ex->name, true, sizes_known, NULL);
}

const struct export_users srv_export_users = {
	.export_comes = export_comes,
	.export_goes = export_goes,
	.store_comes = store_comes,
	.store_goes = store_goes,
	.export_openers = export_openers,
	.export_kick = export_kick,
	.store_fenced = store_fenced,
	.store_led = store_led,
	.export_resized = export_resized,
};

int srv_export_init(struct srv *srv)
{
	struct exports *exports = srv_rnbd(srv)->exports;
	struct store *store;
	struct export *ex;
	int rc = 0;

	list_for_each(ex, &exports->list, link)
		rc = rc ? rc : export_comes(srv, ex);
	list_for_each(store, &exports->stores, link) {
		for (unsigned i = 0; i < srv->nthreads && !rc; i++)
			rc = store_comes(srv, i, store);
	}
	return rc;
}

void srv_export_set_prio(struct srv *srv, struct export *ex, uint16_t prio)
{
	uint16_t used = srv_prio(prio, srv_rnbd(srv)->may_realtime);
	char wanted_text[PRIORITY_TEXT_MAX], used_text[PRIORITY_TEXT_MAX];

	if (used != prio)
		log_warn(ex->name, "priority %s needs CAP_SYS_NICE, which this process lacks: "
			 "using %s instead", conf_priority_text(prio, wanted_text),
			 conf_priority_text(used, used_text));
	atomic_store_explicit(&((struct srv_export_stat *)ex->user)->prio, used,
			      memory_order_relaxed);
}

void srv_export_fini(struct srv *srv)
{
	struct export *ex;

	list_for_each(ex, &srv_rnbd(srv)->exports->list, link)
		export_goes(srv, ex);
}

/* ---- exports as people see them ---- */

struct export *srv_export_shown(const struct export *ex)
{
	struct export *other = exports_find(ex->all, ex->name);

	if (other && other->user == ex->user)
		return other;
	list_for_each(other, &ex->all->removed, life.link) {
		if (other->held && other->user == ex->user)
			return other;
	}
	return NULL;
}

/* The first removed export from @link on that people see; NULL: none. */
static struct export *removed_from(const struct exports *e, const struct list *link)
{
	for (; link != &e->removed; link = link->next) {
		struct export *ex = list_entry(link, struct export, life.link);

		if (srv_export_shown(ex) == ex)
			return ex;
	}
	return NULL;
}

struct export *srv_export_next(const struct srv *srv, const struct export *ex)
{
	const struct exports *e = srv_rnbd(srv)->exports;
	const struct list *next;

	if (ex && ex->life.rung != EXPORT_SHOWN)
		return removed_from(e, ex->life.link.next);
	next = ex ? ex->link.next : e->list.next;
	if (next != &e->list)
		return list_entry(next, struct export, link);
	return removed_from(e, e->removed.next);
}
