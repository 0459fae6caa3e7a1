/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory windows: keys for a part of a region, given and taken by work requests.
 *
 * As strict as a NIC: what breaks a rule fails the connection it was posted on.  A window is bound
 * and invalidated when the request is posted, which is in front of its turn; nobody can tell,
 * because the peer learns a key from what is sent behind the bind, and the completion keeps its
 * place.  What is taken away is no longer written to when the post returns (promise k): a
 * connection that is in the middle of that fails.  Any thread; one at a time for one window. */
#include <errno.h>
#include <stdlib.h>

#include "tcp-priv.h"
#include "util.h"

struct tcp_mw {
	struct fab_mw base;
	struct tcp_key *key;
};

static struct tcp_mw *to_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct tcp_mw, base.ibv);
}

static struct tcp_pd *to_pd(struct fab_pd *pd)
{
	return container_of(pd, struct tcp_pd, base);
}

struct ibv_mw *tcp_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct tcp_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	mw->base.pd = pd;
	mw->key = tcp_key_alloc(to_pd(pd));
	if (!mw->key) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->base.ibv.type = type;
	mw->base.ibv.rkey = tcp_key_number(mw->key);
	return &mw->base.ibv;
}

/* Whatever the window is bound to, it is not any more, and is called @tag. */
static void unbind(struct tcp_mw *mw, uint8_t tag)
{
	bool bound = tcp_key_alive(mw->key);

	if (tcp_key_kill(mw->key, tag))
		tcp_key_stop(to_pd(mw->base.pd), mw->key);
	if (bound)
		tcp_mr_unbound(atomic_load(&mw->key->region));
}

int tcp_dealloc_mw(struct ibv_mw *ibv)
{
	struct tcp_mw *mw = to_mw(ibv);

	unbind(mw, (uint8_t)(tcp_key_number(mw->key) + 1));
	tcp_key_free(to_pd(mw->base.pd), mw->key);
	free(mw);
	return 0;
}

static const char *mw_bind(struct tcp_conn *c, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct tcp_mw *mw = to_mw(wr->bind_mw.mw);
	struct tcp_mr *mr = container_of(info->mr, struct tcp_mr, base.ibv);
	uint8_t tag = (uint8_t)wr->bind_mw.rkey;
	uint64_t name = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	const char *why = fab_bind_check(wr, &c->pd->base, tcp_key_number(mw->key));

	if (why)
		return why;
	if (mw->base.ibv.type == IBV_MW_TYPE_2 && tcp_key_alive(mw->key))
		return "a window of type 2 that is bound";
	unbind(mw, tag);
	if (info->length) {
		atomic_fetch_add(&mr->windows, 1);
		tcp_key_publish(mw->key, tag,
				mw->base.ibv.type == IBV_MW_TYPE_2 ? c->id : TCP_KEY_ANY_CONN, mr,
				name, (uintptr_t)mr->base.ibv.addr - mr->base.iova + info->addr - name,
				info->length, (int)info->mw_access_flags);
	}
	return NULL;
}

/* RACE: as in tcp_key_stop(), but only this connection can be in the middle of a write. */
static const char *mw_invalidate(struct tcp_conn *c, uint32_t rkey)
{
	struct tcp_key *key;
	const char *why = tcp_key_invalidate(c, rkey, &key);

	if (why)
		return why;
	pthread_mutex_lock(&c->rx.lock);
	if (tcp_rx_drop(c, key))
		tcp_conn_fail(c, IBV_WC_REM_ACCESS_ERR,
			      "remote access error: key 0x%x was invalidated during a write", rkey);
	pthread_mutex_unlock(&c->rx.lock);
	return NULL;
}

const struct ibv_send_wr *tcp_mw_run(struct tcp_conn *c, const struct ibv_send_wr *wr,
				     enum ibv_wc_status *status, const char **why)
{
	for (; wr; wr = wr->next) {
		if (wr->opcode == IBV_WR_BIND_MW) {
			*status = IBV_WC_MW_BIND_ERR;
			*why = mw_bind(c, wr);
		} else if (wr->opcode == IBV_WR_LOCAL_INV) {
			*status = IBV_WC_LOC_QP_OP_ERR;
			*why = mw_invalidate(c, wr->invalidate_rkey);
		} else {
			continue;
		}
		if (*why)
			return wr;
	}
	return NULL;
}
