/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the windows of a path, one for each slot, so the pool needs no free list and no lock; and
 * what was learned about devices.
 *
 * Created with the path's connections, on any thread; killed and destroyed when these have drained.
 * Windows are never repaired.  A window that the device refuses to free stays, with the pool, for
 * another call. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "frwr-priv.h"
#include "log.h"
#include "number.h"
#include "util.h"

void frwr_pool_zero_based(struct frwr_pool *pool)
{
	assert(pool->mode != FRWR_STATIC && pool->mode != FRWR_SUSPEND);
	pool->zero_based = true;
}

enum frwr_state frwr_state(const struct frwr *w)
{
	return frwr_word_state(frwr_word(w));
}

static int window_init(struct frwr_pool *pool, unsigned i)
{
	struct frwr *w = &pool->windows[i];

	w->pool = pool;
	w->index = i;
	w->bind_cqe.done = frwr_bind_wc;
	w->inv_cqe.done = frwr_inv_wc;
	if (pool->mode == FRWR_REREG) {
		/* If a region cannot be given another range, each IO registers one. */
		w->mr = fab_reg_mr(pool->pd, NULL, 0, 0);
		return w->mr || errno == ENOTSUP ? 0 : -errno;
	}
	if (!frwr_has_windows(pool->mode))
		return 0;
	w->mw = fab_alloc_mw(pool->pd, pool->mode == FRWR_MW2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	if (!w->mw)
		return errno ? -errno : -ENOMEM;
	pool->by_key[i] = (struct frwr_index){ w->mw->rkey >> 8, i };
	return 0;
}

static int by_key_cmp(const void *a, const void *b)
{
	const struct frwr_index *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

struct frwr *frwr_pool_find(struct frwr_pool *pool, uint32_t rkey)
{
	const struct frwr_index key = { .key = rkey >> 8 };
	const struct frwr_index *hit = bsearch(&key, pool->by_key, pool->n, sizeof(key),
					       by_key_cmp);

	return hit ? &pool->windows[hit->i] : NULL;
}

int frwr_pool_create(struct frwr_pool **out, struct fab_pd *pd, enum frwr_mode mode, unsigned n)
{
	struct frwr_pool *pool = calloc(1, sizeof(*pool));
	int rc = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->pd = pd;
	pool->mode = mode;
	pool->windows = calloc(n, sizeof(*pool->windows));
	pool->by_key = calloc(n, sizeof(*pool->by_key));
	if (!pool->windows || !pool->by_key)
		goto fail;
	for (pool->n = 0; pool->n < n; pool->n++) {
		rc = window_init(pool, pool->n);
		if (rc)
			goto fail;
	}
	if (frwr_has_windows(mode))
		qsort(pool->by_key, n, sizeof(*pool->by_key), by_key_cmp);
	*out = pool;
	return 0;
fail:
	/* A window that the device refuses to free here is leaked. */
	while (pool->n) {
		struct frwr *w = &pool->windows[--pool->n];

		fab_dealloc_mw(w->mw);
		fab_dereg_mr(w->mr);
	}
	free(pool->by_key);
	free(pool->windows);
	free(pool);
	return rc;
}

bool frwr_bury(struct frwr *w)
{
	uint32_t word = frwr_word(w);

	do {
		if (frwr_word_state(word) == FRWR_DEAD)
			return false;
	} while (!frwr_step(w, &word, FRWR_DEAD));
	return true;
}

void frwr_pool_kill(struct frwr_pool *pool)
{
	for (unsigned i = 0; i < pool->n; i++)
		frwr_bury(&pool->windows[i]);
	/* Call back when all windows are dead: a callback may look at other windows. */
	for (unsigned i = 0; i < pool->n; i++) {
		if (pool->windows[i].unmap)
			frwr_entry_over(pool->windows[i].unmap, -ENOTCONN);
	}
}

unsigned frwr_pool_destroy(struct frwr_pool *pool)
{
	unsigned left = 0;
	int rc;

	if (!pool)
		return 0;
	frwr_pool_kill(pool);
	for (unsigned i = 0; i < pool->n; i++) {
		struct frwr *w = &pool->windows[i];

		if (w->mw) {
			rc = fab_dealloc_mw(w->mw);
			if (rc) {
				log_warn("frwr",
					 "window %u, key 0x%x: the device refused to free it: %d",
					 i, w->mw->rkey, rc);
				frwr_count(pool, orphaned);
				left++;
				continue;
			}
			w->mw = NULL;
		}
		if (!frwr_has_windows(pool->mode) && w->mr) {
			fab_dereg_mr(w->mr);
			w->mr = NULL;
		}
	}
	if (left)
		return left;
	free(pool->by_key);
	free(pool->windows);
	free(pool);
	return 0;
}

void frwr_stats(const struct frwr_pool *pool, struct frwr_stats *s)
{
	const _Atomic uint64_t *from = (const void *)&pool->stats;
	_Atomic uint64_t *to = (void *)s;

	for (unsigned i = 0; i < sizeof(*s) / sizeof(*to); i++)
		to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
	for (unsigned i = 0; i < pool->n; i++) {
		const struct frwr *w = &pool->windows[i];

		s->mapped += atomic_load_explicit(&w->mapped, memory_order_relaxed);
		s->local_inv += atomic_load_explicit(&w->revoked, memory_order_relaxed);
	}
}

/* ---- the choice of a mode, with the reasons in words.  Pure. ----
 *
 * Queues are sized so that the IO path never has to check for room. */

const enum frwr_mode frwr_order_client[3] = { FRWR_MW2, FRWR_MW1, FRWR_REREG };
const enum frwr_mode frwr_order_server[2] = { FRWR_MW1, FRWR_SUSPEND };

const char *frwr_mode_name(enum frwr_mode mode)
{
	static const char *const names[FRWR_NMODES] = { "MW2", "MW1", "REREG", "suspend",
							"STATIC" };

	return names[mode];
}

int frwr_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n, char *why,
	      size_t len)
{
	unsigned pick = 0;

	while (pick < n && caps->rc[order[pick]])
		pick++;
	snprintf(why, len, "%s", pick < n ? frwr_mode_name(order[pick]) : "none");
	for (unsigned i = 0; i < pick; i++)
		fmt_add(why, len, "%snot %s: %s", i ? "; " : " (", frwr_mode_name(order[i]),
			   caps->why[order[i]]);
	if (pick < n && order[pick] == FRWR_REREG && !(caps->dev.caps & FAB_CAP_REREG_MR))
		fmt_add(why, len, "%ssystem calls for each request", pick ? "; " : " (");
	else if (pick == 0)
		return pick < n ? (int)order[pick] : -EOPNOTSUPP;
	fmt_add(why, len, ")");
	return pick < n ? (int)order[pick] : -EOPNOTSUPP;
}

/* ---- sizes ---- */

/* client: bind, request, invalidate; server: revoke, data, bind, SEND_WITH_INV, answer */
uint32_t frwr_wr_per_req(const struct frwr_load *load)
{
	bool windows = frwr_has_windows(load->mode);

	return load->server ? (windows ? 5 : 3) : (windows ? 3 : 1);
}

/* An invalidated read is answered with two messages. */
static uint32_t recv_per_req(const struct frwr_load *load)
{
	return !load->server && load->mode == FRWR_MW2 ? 2 : 1;
}

int frwr_sizing(const struct fab_device_attr *dev, const struct frwr_load *load,
		struct frwr_sizes *sizes)
{
	uint32_t max_wr = dev->max_qp_wr, per_req = frwr_wr_per_req(load);
	uint32_t per_recv = recv_per_req(load), depth = load->queue_depth;

	if (dev->max_sge < (load->server ? 1 : 2))
		return -EOPNOTSUPP;
	if (frwr_has_windows(load->mode) && !load->server)
		depth = MIN(depth, dev->max_mw - MIN(dev->max_mw, load->spare_windows));
	depth = MIN(depth, (max_wr - MIN(max_wr, load->spare_wr)) / per_req);
	depth = MIN(depth, (max_wr - MIN(max_wr, 1u)) / per_recv);
	if (depth == 0)
		return -ENOMEM;
	*sizes = (struct frwr_sizes){
		.queue_depth = depth,
		.wr_per_req = per_req,
		.max_send_wr = depth * per_req + load->spare_wr,
		.max_recv_wr = depth * per_recv + 1,
	};
	return 0;
}

/* ---- lessons: names of devices that cannot use their windows ----
 *
 * Any thread, in handlers and under send locks, too.  A lesson is never changed or forgotten, so a
 * pointer to its words stays good. */

void frwr_lessons_init(struct frwr_lessons *l)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
}

void frwr_lessons_fini(struct frwr_lessons *l)
{
	pthread_mutex_destroy(&l->lock);
}

unsigned frwr_lessons_count(struct frwr_lessons *l)
{
	return atomic_load(&l->n);
}

/* The lesson about @mode of @device, or NULL.  Lock held. */
static const struct frwr_lesson *lesson_find(const struct frwr_lessons *l, const char *device,
					     enum frwr_mode mode)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->lesson[i].mode == mode && !strcmp(l->lesson[i].device, device))
			return &l->lesson[i];
	}
	return NULL;
}

void frwr_lessons_apply(struct frwr_lessons *l, struct frwr_caps *caps)
{
	LOCK_SCOPE(&l->lock);
	for (int mode = FRWR_MW2; mode <= FRWR_MW1; mode++) {
		const struct frwr_lesson *lesson =
			lesson_find(l, caps->dev.name, (enum frwr_mode)mode);

		if (!lesson || caps->rc[mode])
			continue;
		caps->rc[mode] = -EOPNOTSUPP;
		caps->why[mode] = lesson->why;
		caps->unable[mode] = true;
	}
}

void frwr_pool_learn(struct frwr_pool *pool, struct frwr_lessons *l, const struct frwr_caps *caps)
{
	snprintf(pool->device, sizeof(pool->device), "%s", caps->dev.name);
	pool->lessons = l;
}

void frwr_unable(struct frwr_pool *pool, const char *what)
{
	struct frwr_lessons *l = pool->lessons;
	struct frwr_lesson *lesson;

	if (!l)
		return;
	LOCK_SCOPE(&l->lock);
	if (l->n == FRWR_LESSONS || lesson_find(l, pool->device, pool->mode))
		return;
	lesson = &l->lesson[l->n++];
	lesson->mode = pool->mode;
	memcpy(lesson->device, pool->device, sizeof(lesson->device));
	snprintf(lesson->why, sizeof(lesson->why),
		 "device %s offers memory windows of type %s and %s",
		 pool->device, pool->mode == FRWR_MW2 ? "2B" : "1", what);
	log_warn(NULL, "%s: they are not used any more", lesson->why);
}

void frwr_post_failed(struct frwr_pool *pool, int rc, const char *what)
{
	frwr_count(pool, post_fail);
	if (rc != -ENOTCONN)
		frwr_count(pool, partial_post);
	if (rc == -EOPNOTSUPP)
		frwr_unable(pool, what);
}
