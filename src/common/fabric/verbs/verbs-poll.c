/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what a connection's CQ has completed and no caller has polled, and gives up a device that
 * does not drain; verbs-priv.h says how a connection drains.  A single thread polls; errors as
 * fabric.h says. */
#define FSM_PREFIX VERBS_CONN_

#include <config.h>

#include <poll.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "verbs-priv.h"

/* All connections of a path end together. */
static struct log_limit late_limit = LOG_LIMIT_INIT(1, 10000);

/* ---- completions, cq_lock held ---- */

/* Check a receive with an invalidate.  rxe shows the kernel's value of the flag (doc/verbs.md Q3).
 * rxe also carries out invalidates that the peer must not ask for (doc/verbs.md Q7). */
static void wc_translate_inv(struct verbs_conn *c, struct ibv_wc *wc)
{
	const unsigned inv = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV || !(wc->wc_flags & inv) ||
	    (wc->wc_flags & IBV_WC_WITH_IMM))
		return;
	wc->wc_flags = (wc->wc_flags & ~inv) | IBV_WC_WITH_INV;
	if (!verbs_mw_peer_inv(c, wc->invalidated_rkey))
		wc->status = IBV_WC_REM_INV_REQ_ERR;
}

/* Translate a completion of the device in place.  False: the completion is not for the user. */
static bool wc_translate(struct verbs_conn *c, struct ibv_wc *wc)
{
	struct verbs_sqe *sqe;
	uint32_t pos;

	if (wc->wr_id == VERBS_MARKER_ID) {
		verbs_conn_step(c, VERBS_CONN_EV_MARKER);
		return false;
	}
	if (!(wc->wr_id & VERBS_SEND_BIT)) {
		atomic_fetch_sub(&c->nrecvs, 1);
		wc_translate_inv(c, wc);
	}
	if (wc->status != IBV_WC_SUCCESS && !c->broken)
		c->broken = wc->status;
	if (!(wc->wr_id & VERBS_SEND_BIT))
		return true;
	pos = (uint32_t)(wc->wr_id >> 1);
	sqe = &c->sq[pos & c->sq_mask];
	wc->wr_id = sqe->wr_id;
	atomic_store_explicit(&c->sq_tail, pos + 1, memory_order_release);
	return wc->status != IBV_WC_SUCCESS || sqe->signaled;
}

/* Take up to @n completions from the device.  Returns their number, less than @n only when the
 * device has no more. */
static int cq_take(struct verbs_conn *c, struct ibv_wc *wc, int n)
{
	int got = 0, k;

	do {
		k = ibv_poll_cq(c->cq, n - got, wc + got);
		for (int i = got, end = got + k; i < end; i++) {
			if (wc_translate(c, &wc[i]))
				wc[got++] = wc[i];
		}
	} while (k > 0 && got < n);
	if (k < 0)
		atomic_store(&c->cq_broken, true);
	return got;
}

static void stash_fill(struct verbs_conn *c)
{
	memmove(c->stash, c->stash + c->stash_first, c->stash_n * sizeof(*c->stash));
	c->stash_first = 0;
	c->stash_n += (unsigned)cq_take(c, c->stash + c->stash_n, (int)(VERBS_STASH - c->stash_n));
}

void verbs_poll_look(struct verbs_conn *c)
{
	LOCK_SCOPE(&c->cq_lock);
	stash_fill(c);
}

static int stash_take(struct verbs_conn *c, struct ibv_wc *wc, int n)
{
	unsigned k = MIN(c->stash_n, (unsigned)n);

	memcpy(wc, c->stash + c->stash_first, k * sizeof(*wc));
	c->stash_first += k;
	c->stash_n -= k;
	return (int)k;
}

/* True if @c is in one of @states. */
static bool is_in(const struct verbs_conn *c, unsigned states)
{
	return states >> atomic_load(&c->state) & 1;
}

/* True if the device has given back every request, or has lost its queue pair. */
static bool device_drained(const struct verbs_conn *c)
{
	return !c->stash_n &&
	       (is_in(c, IN(LEFT) | IN(DRAINED)) ||
		(is_in(c, IN(MARKED) | IN(STUCK_MARKED)) && !atomic_load(&c->nrecvs)));
}

static bool conn_gone(const struct verbs_conn *c)
{
	return atomic_load(&c->cq_broken) || verbs_dev_is_removed(c->id->verbs);
}

/* True if the device had its time to flush.  After the failure. */
static bool device_is_late(const struct verbs_conn *c)
{
	return clock_now_ms() - c->failed_ms >= VERBS_DRAIN_MS;
}

/* True if the device is to be given up, because nothing more will come of its queues. */
static bool device_is_lost(const struct verbs_conn *c)
{
	return is_in(c, IN(FAILED) | IN(MARKED)) && (conn_gone(c) || device_is_late(c));
}

/* The status of a completion that has yet to fail the connection. */
static enum ibv_wc_status news_of_failure(const struct verbs_conn *c)
{
	return verbs_conn_failed(c) ? IBV_WC_SUCCESS : c->broken;
}

static void tell_late(const struct verbs_conn *c, const char *what)
{
	char peer[FAB_ADDR_STRLEN];

	log_limited(&late_limit, LOG_LEVEL_WARN, NULL,
		    "rdma %s: %s has not given back all requests %u s after the failure: %s",
		    fab_addr_format(&c->fab.peer, peer, sizeof(peer)),
		    ibv_get_device_name(c->id->verbs->device), VERBS_DRAIN_MS / 1000, what);
}

/* Destroy the queue pair, without which the device cannot touch buffers.  What the device completed
 * before stays in the CQ.  A device that keeps the queue pair may still write: then the connection
 * never drains, and no buffer is freed.  Thread of the device (verbs-reap.c). */
static void destroy_qp(struct verbs_reap *job)
{
	struct verbs_conn *c = container_of(job, struct verbs_conn, give_up);
	bool left = !ibv_destroy_qp(c->qp) || verbs_dev_is_removed(c->id->verbs);

	LOCK_SCOPE(&c->post_lock);
	if (!left || !conn_gone(c))
		tell_late(c, left ? "its queue pair is destroyed" :
				    "it keeps the queue pair, and so the memory stays allocated");
	if (!left)
		return;
	c->qp = NULL;
	verbs_conn_step(c, VERBS_CONN_EV_DESTROYED);
}

static void give_up_device(struct verbs_conn *c)
{
	pthread_mutex_lock(&c->post_lock);
	verbs_conn_step(c, VERBS_CONN_EV_GIVE_UP);
	verbs_conn_take_qp(c);
	pthread_mutex_unlock(&c->post_lock);
	c->give_up = (struct verbs_reap){ .destroy = destroy_qp, .pd = c->pd };
	/* A removed device has let go of it, and no event would tell the end of a thread. */
	if (verbs_dev_is_removed(c->id->verbs))
		destroy_qp(&c->give_up);
	else
		verbs_reap(c->pd, &c->give_up);
}

/* ---- polling ---- */

/* Flush late posts; -ENOTCONN when no request is left. */
static int poll_late(struct verbs_conn *c, struct ibv_wc *wc, int n)
{
	int got = 0;
	bool drained;

	pthread_mutex_lock(&c->cq_lock);
	drained = device_drained(c);
	pthread_mutex_unlock(&c->cq_lock);
	if (!drained) {
		verbs_dev_events(c->id->verbs);
		if (device_is_lost(c))
			give_up_device(c);
		return 0;		/* the CQ first, if that has something left */
	}
	LOCK_SCOPE(&c->post_lock);
	while (got < n && c->late_taken < c->nlate)
		wc[got++] = (struct ibv_wc){ .wr_id = c->late[c->late_taken++],
					     .status = IBV_WC_WR_FLUSH_ERR };
	if (got || !n)
		return got;
	verbs_conn_step(c, VERBS_CONN_EV_DRAIN);
	return -ENOTCONN;
}

int verbs_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct verbs_conn *c = verbs_conn(conn);
	enum ibv_wc_status broken = IBV_WC_SUCCESS;
	int got = 0, late;

	if (c->cq) {
		pthread_mutex_lock(&c->cq_lock);
		got = stash_take(c, wc, n);
		got += cq_take(c, wc + got, n - got);
		broken = news_of_failure(c);
		pthread_mutex_unlock(&c->cq_lock);
	}
	if (atomic_load(&c->cq_broken))
		verbs_conn_fail(c, "the RDMA device can no longer be polled");
	if (broken == IBV_WC_WR_FLUSH_ERR)	/* rxe: local failures, too (doc/verbs.md Q8) */
		verbs_conn_fail(c, "the queue pair broke: the peer is gone or a request was bad");
	else if (broken)
		verbs_conn_fail(c, "work request failed: %s", ibv_wc_status_str(broken));
	if (got == n || !verbs_conn_failed(c))
		return got;
	late = poll_late(c, wc + got, n - got);
	return got && late < 0 ? got : got + late;
}

/* True if a poll would find work: take a completion, note a failure, give up the device, or say
 * that all has drained.  Anything else here would have a caller poll for ever. */
static bool poll_has_work(struct verbs_conn *c)
{
	LOCK_SCOPE(&c->cq_lock);
	stash_fill(c);
	if (c->stash_n)
		return true;
	if (!verbs_conn_failed(c))
		return news_of_failure(c) || atomic_load(&c->cq_broken);
	return device_drained(c) || device_is_lost(c);
}

int verbs_poll_arm(struct fab_conn *conn, short *events)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct ibv_cq *cq;
	void *context;

	*events = POLLIN;
	/* Looking at the CQ is cheap; the calls below are system calls. */
	if (poll_has_work(c))
		return 1;
	/* A notify request gives a single event, and stands until the event has come. */
	if (!ibv_get_cq_event(c->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		c->armed = false;
	}
	if (!c->armed && ibv_req_notify_cq(c->cq, 0))
		return 1;		/* no sleep without an alarm */
	c->armed = true;
	/* RACE: a completion before the notify request makes no event. */
	return poll_has_work(c);
}

/* A flush by the device makes an event; the flush of late posts does not. */
int verbs_poll_need_rearm(const struct fab_conn *conn)
{
	return verbs_conn_failed(verbs_conn(conn)) ? FAB_REARM_EVENTS : 0;
}
