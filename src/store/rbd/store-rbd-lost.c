/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a client of the cluster that is fenced: nothing, for good.  An entry of the
 * blocklist ends after an hour, or when somebody removes it, and then the cluster answers READs
 * again, of an image that has another owner.
 *
 * Owns the questions to the cluster, one at a time.  A thread of librados has the answer.
 *
 * A question that is under way when rados_shutdown() runs has no answer, or its answer crashes in
 * librados (16.2.15).  So it is cancelled, and has ended, before its handle goes. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "log.h"
#include "loop.h"
#include "store-lead.h"
#include "store-rbd-priv.h"

#define ASK_MS 5000u

struct rbd_asking {
	struct loop *loop;
	struct loop_timer timer;
	struct loop_msg answered;
	struct store_rbd *r;
	unsigned opened;	/* r->opened of the question */
	rados_completion_t answer;	/* of the last question, under r->renews; NULL: none */
	int rc;
	/* librados writes these */
	uint64_t size;
	time_t mtime;
};

/* Of a shared image the lead tells (store-lead.c). */
static void tell_lost(const struct store_rbd *r, int why)
{
	if (!store_lead_fences(r->ex.store))
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(IO_FAILED, .export = r->ex.name), r->ex.name,
			  "%s: each request fails until the export is removed and added again, or "
			  "the server is restarted", why == -EROFS ?
			  "another client has taken the lock of the image" :
			  "the cluster has fenced this server");
}

int store_rbd_lost(struct store_rbd *r, int result)
{
	int lost = 0;

	/* Without the lock librbd refuses writes, even before the cluster fences this client. */
	if (result == -EROFS && r->ex.store->lead)
		result = -ESHUTDOWN;
	if ((result == -ESHUTDOWN || (result == -EROFS && r->handle.has_lock)) &&
	    atomic_compare_exchange_strong(&r->lost, &lost, result))
		tell_lost(r, result);
	lost = atomic_load(&r->lost);
	return lost ? lost : result;
}

bool store_rbd_lost_already(const struct export *ex)
{
	return atomic_load(&store_rbd(ex)->lost) && !store_lead_fences(ex->store);
}

/* librados keeps the answer for itself until it has called. */
static void drop_answer(struct rbd_asking *a)
{
	if (a->answer)
		rbd_lib.rados_aio_release(a->answer);
	a->answer = NULL;
}

static void ask_later(struct rbd_asking *a)
{
	loop_timer_set(a->loop, &a->timer, clock_now_ms() + ASK_MS);
}

/* ---- the answer ---- */

/* A thread of librados. */
static void asking_answered(rados_completion_t answer, void *arg)
{
	struct rbd_asking *a = arg;

	a->rc = rbd_lib.rados_aio_get_return_value(answer);
	loop_post(a->loop, &a->answered);
}

static void answered_msg(struct loop_msg *msg)
{
	struct rbd_asking *a = container_of(msg, struct rbd_asking, answered);
	struct store_rbd *r = a->r;

	ask_later(a);
	/* Whoever opens the image again has a handle that is not fenced. */
	if (a->rc != -ESHUTDOWN || pthread_mutex_trylock(&r->renews))
		return;
	if (a->opened == r->opened && store_rbd_lost(r, a->rc) == -ESHUTDOWN &&
	    store_lead_fences(r->ex.store))
		store_lead_lost(r->ex.store);
	pthread_mutex_unlock(&r->renews);
}

/* ---- the question ---- */

/* Any operation goes to the osd: whether the object is there does not matter.  False: no answer
 * follows. */
static bool ask(struct rbd_asking *a)
{
	struct store_rbd *r = a->r;

	drop_answer(a);
	if (!r->handle.pool || atomic_load(&r->lost) ||
	    rbd_lib.rados_aio_create_completion2(a, asking_answered, &a->answer) < 0)
		return false;
	a->opened = r->opened;
	if (rbd_lib.rados_aio_stat(r->handle.pool, r->header, a->answer, &a->size, &a->mtime) >= 0)
		return true;
	drop_answer(a);
	return false;
}

static void asking_timer(struct loop_timer *timer)
{
	struct rbd_asking *a = container_of(timer, struct rbd_asking, timer);
	bool asked = false;

	/* If the lock is taken, the handle is being replaced by another one. */
	if (!pthread_mutex_trylock(&a->r->renews)) {
		asked = ask(a);
		pthread_mutex_unlock(&a->r->renews);
	}
	if (!asked)
		ask_later(a);
}

struct rbd_asking *store_rbd_lost_watch(const struct export *ex, struct loop *loop)
{
	struct rbd_asking *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->loop = loop;
	a->r = store_rbd(ex);
	loop_msg_init(&a->answered, answered_msg);
	loop_timer_init(&a->timer, asking_timer);
	ask_later(a);
	return a;
}

void store_rbd_lost_cancel(struct rbd_asking *a)
{
	if (!a || !a->answer)
		return;
	/* librados ignores the cancel of what it has answered. */
	rbd_lib.rados_aio_cancel(a->r->handle.pool, a->answer);
	rbd_lib.rados_aio_wait_for_complete_and_cb(a->answer);
	drop_answer(a);
}

void store_rbd_lost_unwatch(struct rbd_asking *a)
{
	if (!a)
		return;
	loop_timer_cancel(&a->timer);
	/* ORDER: the answer of what is cancelled is posted. */
	store_rbd_lost_cancel(a);
	loop_unpost(a->loop, &a->answered);
	free(a);
}
