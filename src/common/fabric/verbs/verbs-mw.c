/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory windows of RDMA devices, and the known state of each: its last key and, of type 2,
 * the connection of the bind.
 *
 * verbs_mw_fill() refuses a request that breaks a rule of fabric.h, before the request reaches the
 * device: rxe answers wrongly, or crashes the host (doc/decisions.md D1; doc/verbs.md Q1, Q7, Q8).
 * Only the device decides whether a peer may use our keys; a receive reports an invalidate by the
 * peer.
 *
 * A window counts as bound or free from the post on, before the device's turn; the device keeps the
 * order.  The windows of all domains are in a single table, because a device names windows only by
 * their number.
 *
 * LOCKS.  A bucket's lock is innermost: taken under post_lock and under cq_lock. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "log.h"
#include "verbs-priv.h"

#define BUCKETS 64u

struct verbs_mw {
	struct fab_mw fab;
	struct ibv_mw *hw;		/* its library reads @hw->rkey in a post */
	const struct ibv_context *device;
	struct verbs_mw *next;
	uint32_t key;			/* the last key bound */
	const struct verbs_conn *conn;	/* type 2: bound on @conn; NULL: free */
	struct verbs_reap reap;
};

static struct bucket {
	pthread_mutex_t lock;
	struct verbs_mw *first;
} table[BUCKETS] = {
	[0 ... BUCKETS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

/* The bucket of @rkey: the low eight bits of a key change, and the rest is the window's number. */
static struct bucket *bucket_of(uint32_t rkey)
{
	return &table[(rkey >> 8) % BUCKETS];
}

/* The window with the number of @rkey, or NULL.  Of two windows with the same number the first in
 * the bucket is alive; the other is being deallocated.  Bucket locked. */
static struct verbs_mw *bucket_find(struct bucket *b, const struct ibv_context *device,
				    uint32_t rkey)
{
	struct verbs_mw *mw = b->first;

	while (mw && (mw->device != device || mw->key >> 8 != rkey >> 8))
		mw = mw->next;
	return mw;
}

static struct verbs_mw *to_verbs_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct verbs_mw, fab.ibv);
}

/* ---- life ---- */

/* All windows of a path end together. */
static struct log_limit kept_limit = LOG_LIMIT_INIT(1, 10000);

struct ibv_mw *verbs_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct verbs_mw *mw = calloc(1, sizeof(*mw));
	struct bucket *b;

	if (!mw)
		return NULL;
	errno = 0;
	mw->hw = ibv_alloc_mw(container_of(pd, struct verbs_pd, fab)->pd, type);
	if (!mw->hw) {
		int err = errno ? errno : EIO;

		free(mw);
		errno = err;
		return NULL;
	}
	mw->device = mw->hw->context;
	mw->fab.ibv.type = type;
	mw->fab.ibv.rkey = mw->key = mw->hw->rkey;
	mw->fab.pd = pd;
	b = bucket_of(mw->key);
	LOCK_SCOPE(&b->lock);
	mw->next = b->first;
	b->first = mw;
	return &mw->fab.ibv;
}

/* Returns 0 or -errno, with the window as it was. */
static int mw_dealloc(struct verbs_mw *mw)
{
	struct bucket *b = bucket_of(mw->key);
	struct verbs_mw **link;
	int rc = ibv_dealloc_mw(mw->hw);

	/* The windows of a removed device are gone. */
	if (rc && !verbs_dev_is_removed(mw->device))
		return -abs(rc);
	LOCK_SCOPE(&b->lock);
	link = &b->first;
	while (*link != mw)
		link = &(*link)->next;
	*link = mw->next;
	free(mw);
	return 0;
}

static void mw_reap(struct verbs_reap *job)
{
	struct verbs_mw *mw = container_of(job, struct verbs_mw, reap);
	int rc = mw_dealloc(mw);

	if (rc)
		log_limited(&kept_limit, LOG_LEVEL_WARN, NULL,
			    "rdma: %s keeps a memory window after its connections are closed: %s",
			    ibv_get_device_name(mw->hw->context->device), strerror(-rc));
}

int verbs_mw_dealloc(struct ibv_mw *ibv)
{
	struct verbs_mw *mw = to_verbs_mw(ibv);
	struct verbs_pd *pd = container_of(mw->fab.pd, struct verbs_pd, fab);

	if (!verbs_reap_follows(pd))
		return mw_dealloc(mw);
	mw->reap = (struct verbs_reap){ .destroy = mw_reap, .pd = pd };
	verbs_reap(pd, &mw->reap);
	return 0;
}

/* ---- requests ---- */

static const char *fill_bind(const struct verbs_conn *c, const struct ibv_send_wr *wr,
			     struct ibv_send_wr *hw)
{
	struct verbs_mw *mw = to_verbs_mw(wr->bind_mw.mw);
	struct bucket *b = bucket_of(mw->key);
	const char *why;

	LOCK_SCOPE(&b->lock);
	why = fab_bind_check(wr, &c->pd->fab, mw->key);
	if (why)
		return why;
	if (mw->fab.ibv.type == IBV_MW_TYPE_2) {
		if (mw->conn)
			return "a window of type 2 that is bound";
		mw->conn = c;
	}
	mw->key = wr->bind_mw.rkey;
	hw->bind_mw.mw = mw->hw;
	hw->bind_mw.rkey = wr->bind_mw.rkey;
	hw->bind_mw.bind_info = wr->bind_mw.bind_info;
	/* A bind to nothing names a region, too (doc/verbs.md Q12). */
	hw->bind_mw.bind_info.mr = container_of(wr->bind_mw.bind_info.mr, struct verbs_mr,
						fab.ibv)->hw;
	return NULL;
}

/* Make @mw free, if @rkey is bound on @c.  Returns NULL or the fault.  Bucket locked. */
static const char *note_inv(const struct verbs_conn *c, struct verbs_mw *mw, uint32_t rkey)
{
	if (!mw)
		return "a key that is no window's";
	if (mw->fab.ibv.type != IBV_MW_TYPE_2)
		return "a window of type 1";
	if (!mw->conn || mw->key != rkey)
		return "the key of no bound window";
	if (mw->conn != c)
		return "a window bound on another connection";
	mw->conn = NULL;
	return NULL;
}

static const char *fill_inv(const struct verbs_conn *c, const struct ibv_send_wr *wr,
			    struct ibv_send_wr *hw)
{
	uint32_t rkey = wr->invalidate_rkey;
	struct bucket *b = bucket_of(rkey);

	LOCK_SCOPE(&b->lock);
	hw->invalidate_rkey = rkey;
	return note_inv(c, bucket_find(b, c->id->verbs, rkey), rkey);
}

const char *verbs_mw_fill(const struct verbs_conn *c, const struct ibv_send_wr *wr,
			  struct ibv_send_wr *hw)
{
	/* Copy no other fields of the caller: a library may look at the fields (doc/verbs.md
	 * Q13). */
	*hw = (struct ibv_send_wr){ .opcode = wr->opcode, .send_flags = wr->send_flags };
	return wr->opcode == IBV_WR_BIND_MW ? fill_bind(c, wr, hw) : fill_inv(c, wr, hw);
}

static int bind_type_1(struct ibv_qp *qp, const struct ibv_send_wr *hw)
{
	struct ibv_mw_bind bind = {
		.wr_id = hw->wr_id, .send_flags = hw->send_flags,
		.bind_info = hw->bind_mw.bind_info,
	};
	int rc = ibv_bind_mw(qp, hw->bind_mw.mw, &bind);

	/* The library chooses the key; EPROTO if not ibv_inc_rkey(), the key that other libraries
	 * choose. */
	return rc ? rc : hw->bind_mw.mw->rkey == hw->bind_mw.rkey ? 0 : EPROTO;
}

/* True if @err means that the library lacks the call or the request, whatever the device offers;
 * EPROTO is bind_type_1()'s. */
static bool err_means_unable(int err)
{
	return err == EOPNOTSUPP || err == ENOSYS || err == EINVAL || err == EPROTO;
}

int verbs_mw_post(struct ibv_qp *qp, struct ibv_send_wr *hw, bool *unable)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	if (verbs_mw_is_alone(hw)) {
		rc = abs(bind_type_1(qp, hw));
		*unable = err_means_unable(rc);
		return rc;
	}
	rc = abs(ibv_post_send(qp, hw, &bad));	/* siw returns -errno */
	*unable = err_means_unable(rc) && bad && verbs_mw_is(bad);
	/* ORDER: after the post, because a library reads the last key while it posts the bind of
	 * the next. */
	for (; hw && !rc; hw = hw->next) {
		if (hw->opcode == IBV_WR_BIND_MW)
			hw->bind_mw.mw->rkey = hw->bind_mw.rkey;
	}
	return rc;
}

/* A window bound on another connection is free now, too: another invalidate would be the second. */
bool verbs_mw_peer_inv(const struct verbs_conn *c, uint32_t rkey)
{
	struct bucket *b = bucket_of(rkey);
	struct verbs_mw *mw;
	bool ours;

	LOCK_SCOPE(&b->lock);
	mw = bucket_find(b, c->id->verbs, rkey);
	ours = mw && mw->conn == c && mw->key == rkey;
	if (mw && mw->key == rkey)
		mw->conn = NULL;
	return ours;
}
