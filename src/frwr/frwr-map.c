/* SPDX-License-Identifier: BSD-3-Clause */
/* A window's way from FREE to VALID: a range and a key, the bind in front of the request that tells
 * the key, and the result of the post.  The window's owner calls in; posted() runs under the send
 * lock.  frwr_map() refuses a range that would fail the connection as a bind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "frwr-priv.h"
#include "log.h"
#include "util.h"

/* ---- mapping ---- */

static int remote_right(enum frwr_dir dir)
{
	return dir == FRWR_PEER_WRITES ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
}

static int local_right(enum frwr_dir dir)
{
	return dir == FRWR_PEER_WRITES ? IBV_ACCESS_LOCAL_WRITE : 0;
}

uint32_t frwr_next_key(const struct frwr *w, uint32_t key)
{
	key = ibv_inc_rkey(key);
	if (!(key & 0xff))
		frwr_count(w->pool, key_wraps);
	return key;
}

/* True if each window of the pool has a region of its own. */
static bool has_region(const struct frwr *w)
{
	return w->pool->mode == FRWR_REREG || w->pool->mode == FRWR_SUSPEND;
}

/* Register these bytes as the region of @w, under another key than before. */
static int region_register(struct frwr *w, uint64_t addr, uint32_t len, enum frwr_dir dir)
{
	int access = local_right(dir) | remote_right(dir), rc;
	void *mem = (void *)(uintptr_t)addr;

	if (w->mr) {
		rc = fab_rereg_mr_iova(w->mr, mem, len, w->pool->zero_based ? 0 : addr, access);
		if (rc != -ENOTSUP) {
			/* Revoking the last key used up a key in between. */
			if (!rc && (w->mr->rkey & 0xff) < (w->handle.rkey & 0xff))
				frwr_count(w->pool, key_wraps);
			return rc;
		}
		fab_dereg_mr(w->mr);
	}
	w->mr = fab_reg_mr(w->pool->pd, mem, len, access);
	return w->mr ? 0 : errno ? -errno : -ENOMEM;
}

/* Open the region of @w; the first call registers the region. */
static int region_open(struct frwr *w, const struct ibv_mr *mr, uint64_t addr, uint32_t len,
		       enum frwr_dir dir)
{
	uint8_t *mem = (uint8_t *)mr->addr + (addr - fab_mr_iova(mr));

	if (w->mr)
		return w->mr->addr == mem && w->mr->length == len &&
			w->access == remote_right(dir) ?
		       fab_resume_mr(w->mr) : -EINVAL;
	w->mr = fab_reg_mr_iova(w->pool->pd, mem, len, addr, local_right(dir) | remote_right(dir));
	return w->mr ? 0 : errno ? -errno : -ENOMEM;
}

/* REREG, SUSPEND: close @w to the peer.  Dead on error. */
static int region_close(struct frwr *w)
{
	int rc = w->pool->mode == FRWR_SUSPEND ? fab_suspend_mr(w->mr) : fab_revoke_mr(w->mr);

	if (rc == -ENOTSUP) {
		fab_dereg_mr(w->mr);
		w->mr = NULL;
		return 0;
	}
	if (rc)
		frwr_bury(w);
	return rc;
}

static int map_check(const struct frwr *w, const struct ibv_mr *mr, uint64_t addr, uint32_t len,
		     enum frwr_dir dir)
{
	enum frwr_mode mode = w->pool->mode;
	int need = mode == FRWR_STATIC ? remote_right(dir) :
		   mode == FRWR_REREG ? 0 : mode == FRWR_SUSPEND ? local_right(dir) :
		   IBV_ACCESS_MW_BIND | local_right(dir);

	if (len == 0 || len > FAB_MW_LEN_MAX)
		return -EINVAL;
	if (mode == FRWR_REREG && !mr)
		return 0;
	return mr && fab_mr_covers(mr, w->pool->pd, addr, len, need) ? 0 : -EINVAL;
}

int frwr_map(struct frwr *w, struct ibv_mr *mr, uint64_t addr, uint32_t len, enum frwr_dir dir,
	     struct frwr_handle *handle)
{
	uint32_t word = frwr_word(w), key, next;
	uint64_t name = w->pool->zero_based ? 0 : addr;
	int rc;

	if (frwr_word_state(word) == FRWR_DEAD)
		return -ENOTCONN;
	if (word & (FRWR_STATE | FRWR_POSTING))
		return -EBUSY;
	rc = map_check(w, mr, addr, len, dir);
	if (rc)
		return rc;
	if (has_region(w)) {
		rc = w->pool->mode == FRWR_REREG ? region_register(w, addr, len, dir) :
			region_open(w, mr, addr, len, dir);
		if (rc)
			return rc;
		key = w->mr->rkey;
		name = fab_mr_iova(w->mr);
	} else if (w->pool->mode == FRWR_STATIC) {
		key = mr->rkey;
	} else {
		key = frwr_next_key(w, w->mw->rkey);
		w->mr = mr;
	}
	w->access = remote_right(dir);
	if (w->pool->zero_based)
		w->access |= IBV_ACCESS_ZERO_BASED;
	w->addr = addr;
	w->handle = (struct frwr_handle){ name, key, len };
	atomic_store_explicit(&w->key, key, memory_order_relaxed);
	/* Only a kill may have come in between. */
	do {
		if (frwr_word_state(word) != FRWR_FREE)
			return -ENOTCONN;
		next = (word & ~(FRWR_GENERATION - 1)) + FRWR_GENERATION;
	} while (!atomic_compare_exchange_weak_explicit(&w->state, &word, next | FRWR_MAPPED,
							memory_order_acq_rel,
							memory_order_acquire));
	frwr_count_own(&w->mapped);
	*handle = w->handle;
	return 0;
}

int frwr_map_end(struct frwr *w)
{
	uint32_t word = frwr_word(w);
	enum frwr_state state = frwr_word_state(word);
	int rc = 0;

	if (state == FRWR_DEAD)
		return -ENOTCONN;
	if (word & FRWR_POSTING)
		return -EBUSY;
	if (state == FRWR_FREE)
		return 0;
	if (state != FRWR_MAPPED && frwr_has_windows(w->pool->mode))
		return -EINVAL;
	if (has_region(w)) {
		frwr_count_own(&w->revoked);
		rc = region_close(w);
	}
	/* Only a kill may have come in between. */
	while (!rc && frwr_word_state(word) == state && !frwr_step(w, &word, FRWR_FREE))
		;
	return rc;
}

int frwr_hold(struct frwr *w)
{
	return w->pool->mode == FRWR_SUSPEND ? fab_hold_mr(w->mr) : -EOPNOTSUPP;
}

void frwr_release(struct frwr *w)
{
	fab_release_mr(w->mr);
}

/* ---- sending ---- */

void frwr_wr_bind(const struct frwr *w, struct ibv_send_wr *wr, uint32_t key, struct ibv_mr *mr,
		  uint64_t addr, uint64_t len, int access)
{
	memset(wr, 0, sizeof(*wr));
	wr->opcode = IBV_WR_BIND_MW;
	wr->bind_mw.mw = w->mw;
	wr->bind_mw.rkey = key;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = addr, .length = len, .mw_access_flags = (unsigned)access,
	};
}

void frwr_bind_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct frwr *w = container_of(cqe, struct frwr, bind_cqe);

	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status == IBV_WC_MW_BIND_ERR || wc->status == IBV_WC_LOC_QP_OP_ERR)
		frwr_unable(w->pool, "fails to bind them");
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		log_dbg("frwr", "qp %u, window %u, key 0x%x: bind failed with status %d",
			wc->qp_num, w->index, atomic_load_explicit(&w->key, memory_order_relaxed),
			(int)wc->status);
	if (frwr_bury(w))
		frwr_count(w->pool, flushed_bind);
}

/* RACE: if the answer was faster than posted(), the window is FREE already. */
static void window_posted(struct frwr *w)
{
	uint32_t word = frwr_word(w), next;

	if (w->mw) {
		w->mw->rkey = w->handle.rkey;
		frwr_count(w->pool, bind_posted);
	}
	do {
		next = word & (FRWR_STATE | FRWR_PEER_INV);
		if (frwr_word_state(word) == FRWR_MAPPED)
			next = FRWR_VALID | (word & FRWR_PEER_INV);
	} while (!frwr_step(w, &word, next));
}

/* No peer has been told the key.  RACE: a peer that guessed the key may have invalidated the
 * window, which is FREE then. */
static void window_not_posted(struct frwr *w)
{
	uint32_t word = frwr_word(w);

	if (has_region(w) && region_close(w))
		return;
	while (frwr_word_state(word) <= FRWR_MAPPED && !frwr_step(w, &word, FRWR_FREE))
		;
}

static void send_posted(struct frwr_entry *e, int rc)
{
	struct frwr *next;

	if (rc)
		frwr_post_failed(e->pool, rc, "refuses to bind them");
	/* RACE: the owner may use a FREE window again as soon as window_posted() has run. */
	for (struct frwr *w = e->list; w; w = next) {
		next = w->next;
		if (rc == 0)
			window_posted(w);
		else if (rc == -ENOTCONN)
			window_not_posted(w);
		else
			frwr_bury(w);
	}
}

int frwr_fill_send(struct frwr_entry *e, struct fab_conn *conn, struct frwr *list,
		   struct ibv_send_wr *first, struct ibv_send_wr *last)
{
	struct ibv_send_wr *head = NULL, **tail = &head, *bind = NULL;

	for (const struct frwr *w = list; w; w = w->next) {
		if ((frwr_word(w) & (FRWR_STATE | FRWR_POSTING)) != FRWR_MAPPED ||
		    w->pool != list->pool)
			return -EINVAL;
	}
	if (!list || !first != !last)
		return -EINVAL;
	for (struct frwr *w = list; w; w = w->next) {
		atomic_store_explicit(&w->conn, conn, memory_order_relaxed);
		if (w->mw) {
			bind = &w->wr;
			frwr_wr_bind(w, bind, w->handle.rkey, w->mr, w->addr, w->handle.len,
				     w->access);
			bind->wr_id = (uintptr_t)&w->bind_cqe;
			*tail = bind;
			tail = &bind->next;
		}
		atomic_fetch_or_explicit(&w->state, FRWR_POSTING, memory_order_release);
	}
	*tail = first;
	*e = (struct frwr_entry){
		.first = head, .last = last ? last : bind,
		.posted = send_posted, .pool = list->pool, .list = list,
	};
	return 0;
}

/* ---- which modes a device can do ----
 *
 * Found out by trying: a capability flag describes the kernel, not the user library that has to
 * carry the mode out.  Owns nothing that outlives the call; may block. */

#define TRIAL_LEN 4096

/* Devices whose windows deviate from the specification, by vendor and part. */
static const struct quirk {
	uint32_t vendor, part;
	unsigned quirks;
} quirks[] = {
	/* soft-RoCE, at the latest Linux 6.12 */
	{ 0xffffff, 0, FRWR_QUIRK_MR_BOUNDS | FRWR_QUIRK_INV_FATAL | FRWR_QUIRK_RETRIED_BIND |
		       FRWR_QUIRK_INV_FLAG },
};

static void try_mw(struct fab_pd *pd, struct frwr_caps *caps, enum frwr_mode mode)
{
	enum ibv_mw_type type = mode == FRWR_MW2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
	struct ibv_mw *mw;

	if (!(caps->dev.caps & FAB_CAP_MW(type))) {
		caps->rc[mode] = -EOPNOTSUPP;
		caps->why[mode] = mode == FRWR_MW2 ? "the device has no windows of type 2B" :
						     "the device has no windows of type 1";
		return;
	}
	mw = fab_alloc_mw(pd, type);
	if (!mw) {
		caps->rc[mode] = errno ? -errno : -ENOMEM;
		caps->why[mode] = "the device offers windows and did not give one";
		return;
	}
	fab_dealloc_mw(mw);
}

static void try_mr(struct fab_pd *pd, struct frwr_caps *caps)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *mem = calloc(1, TRIAL_LEN);
	struct ibv_mr *mr = mem ? fab_reg_mr(pd, mem, TRIAL_LEN, access) : NULL;
	uint32_t old;

	if (!mr) {
		caps->rc[FRWR_STATIC] = caps->rc[FRWR_SUSPEND] = caps->rc[FRWR_REREG] =
			errno ? -errno : -ENOMEM;
		caps->why[FRWR_STATIC] = caps->why[FRWR_SUSPEND] = caps->why[FRWR_REREG] =
			"the device did not register memory for a peer to write";
		free(mem);
		return;
	}
	if (!(caps->dev.caps & FAB_CAP_SUSPEND_MR)) {
		caps->rc[FRWR_SUSPEND] = -EOPNOTSUPP;
		caps->why[FRWR_SUSPEND] = "keys of the device cannot be closed for a while";
	}
	old = mr->rkey;
	if (caps->dev.caps & FAB_CAP_REREG_MR) {
		caps->rc[FRWR_REREG] = fab_rereg_mr(mr, mem, TRIAL_LEN, access);
		caps->why[FRWR_REREG] = "the device did not give registered memory another key";
		if (!caps->rc[FRWR_REREG] && mr->rkey == old)
			caps->rc[FRWR_REREG] = -EOPNOTSUPP;
	}
	fab_dereg_mr(mr);
	free(mem);
}

int frwr_query(struct fab_conn *conn, struct fab_pd *pd, struct frwr_caps *caps)
{
	int rc;

	*caps = (struct frwr_caps){ 0 };
	rc = fab_query_device(conn, &caps->dev);
	if (rc)
		return rc;
	try_mw(pd, caps, FRWR_MW2);
	try_mw(pd, caps, FRWR_MW1);
	try_mr(pd, caps);
	for (unsigned i = 0; i < ARRAY_SIZE(quirks); i++) {
		if (quirks[i].vendor == caps->dev.vendor_id &&
		    quirks[i].part == caps->dev.vendor_part_id)
			caps->quirks |= quirks[i].quirks;
	}
	return 0;
}
