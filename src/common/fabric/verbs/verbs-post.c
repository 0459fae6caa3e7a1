/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the requests posted to a connection's queue pair: the ring that mirrors the send queue, and
 * late posts.  Any thread, under post_lock.  A post that the device or the rules refuse fails the
 * connection (verbs-conn.c); errors as fabric.h says. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "verbs-priv.h"

#define SEND_BATCH 16

static uint64_t send_wr_id(uint32_t pos)
{
	return (uint64_t)pos << 1 | VERBS_SEND_BIT;
}

/* Keep a request posted after the failure, for the poll to flush.  post_lock held. */
static int post_late(struct verbs_conn *c, uint64_t wr_id)
{
	if (atomic_load(&c->state) == VERBS_CONN_DRAINED)
		return -ENOTCONN;
	if (c->nlate == c->late_room) {
		uint32_t room = c->late_room ? 2 * c->late_room : 64;
		uint64_t *late = realloc(c->late, room * sizeof(*late));

		if (!late)
			return -ENOMEM;
		c->late = late;
		c->late_room = room;
	}
	c->late[c->nlate++] = wr_id;
	return 0;
}

static uint32_t send_room(const struct verbs_conn *c)
{
	return c->attr.max_send_wr + c->signal_every -
	       (c->sq_head - atomic_load_explicit(&c->sq_tail, memory_order_acquire));
}

/* True if the ring has room for another request. */
static bool send_has_room(struct verbs_conn *c)
{
	if (send_room(c) == 0)
		verbs_poll_look(c);
	return send_room(c) != 0;
}

/* True if the device has room for a copy of the data of @wr. */
static bool send_fits_inline(const struct verbs_conn *c, const struct ibv_send_wr *wr)
{
	uint64_t total = 0;

	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	return total && total <= c->max_inline;
}

/* Translate a request for the device.  Returns NULL, or the reason why the request is refused. */
static const char *send_fill(struct verbs_conn *c, const struct ibv_send_wr *wr,
			     struct ibv_send_wr *hw)
{
	bool signaled = wr->send_flags & IBV_SEND_SIGNALED;
	const char *why = NULL;

	/* The peer may have invalidated already, asked or not.  A completion not yet polled would
	 * make ours the second invalidate. */
	if (wr->opcode == IBV_WR_LOCAL_INV)
		verbs_poll_look(c);
	if (verbs_mw_is(wr))
		why = verbs_mw_fill(c, wr, hw);
	else
		*hw = *wr;
	if (why)
		return why;
	if ((hw->send_flags & IBV_SEND_INLINE) && !send_fits_inline(c, wr))
		hw->send_flags &= ~(unsigned)IBV_SEND_INLINE;
	hw->next = NULL;
	hw->wr_id = send_wr_id(c->sq_head);
	c->sq[c->sq_head & c->sq_mask] = (struct verbs_sqe){ wr->wr_id, signaled };
	c->sq_head++;
	if (signaled || ++c->unsignaled >= c->signal_every) {
		hw->send_flags |= IBV_SEND_SIGNALED;
		c->unsignaled = 0;
	}
	return NULL;
}

/* Post the next requests of @wr, at most SEND_BATCH, and advance @wr.  Stops at a request that
 * breaks the rules of windows: the requests before are posted, and @c has failed. */
static int send_batch(struct verbs_conn *c, const struct ibv_send_wr **wr)
{
	struct ibv_send_wr hw[SEND_BATCH];
	const char *why = NULL;
	bool alone = false, unable = false;
	unsigned n = 0;
	int rc;

	for (; *wr && n < SEND_BATCH && !alone; *wr = (*wr)->next, n++) {
		alone = verbs_mw_is_alone(*wr);
		if (alone && n)
			break;
		if (!send_has_room(c)) {
			verbs_conn_fail_locked(c, "send queue overflow");
			return -ENOMEM;
		}
		why = send_fill(c, *wr, &hw[n]);
		if (why)
			break;
		if (n)
			hw[n - 1].next = &hw[n];
	}
	rc = n ? verbs_mw_post(c->id->qp, hw, &unable) : 0;
	if (rc) {
		verbs_conn_fail_locked(c, "the device refused a %s: %s",
				       unable ? "memory window" : "send", strerror(rc));
		return rc == ENOMEM ? -ENOMEM : unable ? -EOPNOTSUPP : -EINVAL;
	}
	if (why)
		verbs_conn_fail_locked(
			c, "%s of %s",
			(*wr)->opcode == IBV_WR_BIND_MW ? "bind" : "invalidate", why);
	return 0;
}

static int send_locked(struct verbs_conn *c, const struct ibv_send_wr *wr)
{
	int rc = 0;

	if (atomic_load(&c->state) == VERBS_CONN_NEW) {
		verbs_conn_fail_locked(c, "post on a connection that is not connected");
		return -EINVAL;
	}
	while (wr && !rc && !verbs_conn_failed(c))
		rc = send_batch(c, &wr);
	for (; wr && !rc; wr = wr->next)
		rc = post_late(c, wr->wr_id);
	return rc;
}

int verbs_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct verbs_conn *c = verbs_conn(conn);

	if (!c->cq)
		return -EINVAL;
	LOCK_SCOPE(&c->post_lock);
	return send_locked(c, wr);
}

static int recv_locked(struct verbs_conn *c, const struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad = NULL;
	uint32_t n = 0;
	int rc = 0;

	if (verbs_conn_failed(c)) {
		for (; wr && !rc; wr = wr->next)
			rc = post_late(c, wr->wr_id);
		return rc;
	}
	for (const struct ibv_recv_wr *w = wr; w; w = w->next)
		n++;
	if (atomic_fetch_add(&c->nrecvs, n) + n > c->attr.max_recv_wr) {
		atomic_fetch_sub(&c->nrecvs, n);
		verbs_conn_fail_locked(c, "receive queue overflow");
		return -ENOMEM;
	}
	rc = abs(ibv_post_recv(c->id->qp, (struct ibv_recv_wr *)(uintptr_t)wr, &bad));
	if (!rc)
		return 0;
	for (; bad; bad = bad->next)
		atomic_fetch_sub(&c->nrecvs, 1);
	verbs_conn_fail_locked(c, "the device refused a receive: %s", strerror(rc));
	return rc == ENOMEM ? -ENOMEM : -EINVAL;
}

int verbs_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct verbs_conn *c = verbs_conn(conn);

	if (!c->cq)
		return -EINVAL;
	LOCK_SCOPE(&c->post_lock);
	return recv_locked(c, wr);
}
