/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server adds to each export and each store, from export_comes() to export_goes(): its
 * counters with those at their last reset, its priority, and its share of the threads' pools.
 * Possible failure: no memory, and the export does not come. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "conf-limits.h"
#include "exports.h"
#include "log.h"
#include "srv-con.h"
#include "srv-export.h"
#include "srv-open.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-storage.h"
#include "util.h"

/* ---- coming and going ---- */

static struct srv_export *of_namesake(const struct export *ex)
{
	const struct export *other;

	list_for_each(other, &ex->store->names, store_link) {
		if (other != ex && other->user && !strcmp(other->name, ex->name))
			return other->user;
	}
	return NULL;
}

static struct srv_export *own_create(struct srv_rnbd *rnbd)
{
	size_t len = sizeof(struct srv_export) +
		     rnbd->srv->nthreads * sizeof(struct srv_export_thread);
	struct srv_export *own = aligned_alloc(_Alignof(struct srv_export), len);

	if (!own)
		return NULL;
	memset(own, 0, len);
	own->id = ++rnbd->export_ids;
	return own;
}

/* @ex gets counters, on all threads, and no limits: those of an export with the same name and
 * store, or new ones.  0 or -ENOMEM. */
static int export_comes(void *arg, struct export *ex)
{
	struct srv_export *own = of_namesake(ex);

	ex->user = own ? own : own_create(srv_rnbd(arg));
	if (!ex->user)
		return -ENOMEM;
	if (!own)
		srv_limit_begin(arg, ex);
	srv_export_of(ex)->exports++;
	return 0;
}

/* No thread counts for @ex any more. */
static void export_goes(void *arg, struct export *ex)
{
	struct srv_export *own = ex->user;

	if (own && !--own->exports) {
		srv_limit_end(ex);
		free(own);
	}
	ex->user = NULL;
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
	srv_storage_resize(arg, ex->name, true, sizes_known, NULL);
}

const struct export_users srv_export_users = {
	.export_comes = export_comes,
	.export_goes = export_goes,
	.store_comes = store_comes,
	.store_goes = store_goes,
	.export_openers = export_openers,
	.export_kick = srv_close_kick_export,
	.store_fenced = srv_close_fenced,
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
	uint16_t used = srv_export_wire_prio(prio, srv_rnbd(srv)->may_realtime);
	char wanted_text[PRIORITY_TEXT_MAX], used_text[PRIORITY_TEXT_MAX];

	if (used != prio)
		log_warn(ex->name, "priority %s needs CAP_SYS_NICE, which this process lacks: "
			 "using %s instead", conf_limits_priority_text(prio, wanted_text),
			 conf_limits_priority_text(used, used_text));
	atomic_store_explicit(&srv_export_of(ex)->prio, used, memory_order_relaxed);
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

/* ---- counters ---- */

void srv_export_stat_ever(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	const struct srv_export *all = srv_export_of(ex);

	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < rnbd->srv->nthreads; i++)
		io_stat_add(sum, &all->threads[i].stat, 1);
}

void srv_export_stat(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	const struct srv_export *all = srv_export_of(ex);

	srv_export_stat_ever(rnbd, ex, sum);
	io_stat_add(sum, &all->base, -1);
}

void srv_export_stat_reset(const struct srv_rnbd *rnbd, const struct export *ex)
{
	struct srv_export *all = srv_export_of(ex);

	srv_export_stat_ever(rnbd, ex, &all->base);
}

/* ---- priorities ---- */

/* Levels of each class with levels.  The bits between level and class are hints of newer kernels,
 * refused by older kernels. */
#define LEVELS 8u

/* What the kernel gives IO of a process that has chosen no priority and is not nice(1). */
#define DEFAULT_PRIO (IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | 4)

static bool has_capability(const struct __user_cap_data_struct *data, unsigned cap)
{
	return data[cap / 32].effective & (1u << cap % 32);
}

bool srv_export_may_realtime(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &hdr, data) == 0 &&
	       (has_capability(data, CAP_SYS_ADMIN) || has_capability(data, CAP_SYS_NICE));
}

uint16_t srv_export_wire_prio(uint16_t wire, bool may_realtime)
{
	unsigned class = wire >> IOPRIO_CLASS_SHIFT, level = wire % LEVELS;

	if (class == IOPRIO_CLASS_RT && !may_realtime)
		return IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT;
	switch (class) {
	case IOPRIO_CLASS_RT:
	case IOPRIO_CLASS_BE:
		return (uint16_t)(class << IOPRIO_CLASS_SHIFT | level);
	case IOPRIO_CLASS_IDLE:
		return IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT;
	default:
		return 0;
	}
}

uint16_t srv_export_limit_prio(uint16_t client, uint16_t export)
{
	if (client == DEFAULT_PRIO)
		return export;
	/* The better class and the better level have the lower number, and 0 is none. */
	return client > export ? client : export;
}

/* ---- the IO of a path ---- */

/* The counters of a connection are part of the connection, the counts at the last reset part of the
 * path, and the ages of the last look part of the sessions and exports. */

static void path_sum(const struct srv_path *path, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			io_stat_add(sum, &path->cons[cid]->stat, 1);
	}
}

void srv_stat_path(const struct srv_path *path, struct io_stat *sum)
{
	path_sum(path, sum);
	if (path->stat_base)
		io_stat_add(sum, path->stat_base, -1);
}

uint64_t srv_stat_inflight(const struct srv_path *path)
{
	uint64_t n = 0;

	for (unsigned cid = 0; cid < path->cid_num; cid++)
		n += path->cons[cid] ? counter_get(&path->cons[cid]->inflight) : 0;
	return n;
}

int srv_stat_reset_path(struct srv_path *path)
{
	if (!path->stat_base)
		path->stat_base = malloc(sizeof(*path->stat_base));
	if (!path->stat_base)
		return -ENOMEM;
	path_sum(path, path->stat_base);
	return 0;
}

/* ---- the oldest request ---- */

/* Returns the age of the oldest request of @path. */
static uint64_t look_at_path(const struct srv_path *path, uint64_t now_ns)
{
	uint64_t oldest_ns = 0;

	for (unsigned i = 0; i < path->chunks.geom->queue_depth; i++) {
		const struct export *ex;
		uint64_t at_ns = srv_req_look(srv_req_at(path, i), (const void **)&ex), ns;

		if (!at_ns || at_ns > now_ns)
			continue;
		ns = now_ns - at_ns;
		oldest_ns = MAX(oldest_ns, ns);
		if (ex) {
			struct srv_export *own = srv_export_of(ex);

			own->oldest_ns = MAX(own->oldest_ns, ns);
		}
	}
	return oldest_ns;
}

uint64_t srv_stat_age_look(const struct srv *srv)
{
	uint64_t now_ns = clock_now_ns(), oldest_ns = 0;
	const struct srv_path *path;
	struct srv_sess *sess;
	struct export *ex;

	srv_export_each(ex, srv)
		srv_export_of(ex)->oldest_ns = 0;
	list_for_each(sess, &srv->sessions, link) {
		sess->oldest_ns = 0;
		list_for_each(path, &sess->paths, link) {
			if (path->reqs && srv_stat_inflight(path))
				sess->oldest_ns = MAX(sess->oldest_ns, look_at_path(path, now_ns));
		}
		oldest_ns = MAX(oldest_ns, sess->oldest_ns);
	}
	return oldest_ns;
}
