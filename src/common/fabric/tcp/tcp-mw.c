/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory windows. */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "tcp-key.h"

struct tcp_mw {
	struct fab_mw base;
	struct tcp_key *key;
};

static struct tcp_mw *to_tcp_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct tcp_mw, base.ibv);
}

struct ibv_mw *tcp_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct tcp_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	mw->base.pd = pd;
	mw->key = tcp_pd_key_alloc(tcp_pd(pd));
	if (!mw->key) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->base.ibv.type = type;
	mw->base.ibv.rkey = tcp_key_number(mw->key);
	return &mw->base.ibv;
}

/* Unbind @mw, if bound, and make its key dead as @tag. */
static void window_unbind(struct tcp_mw *mw, uint8_t tag)
{
	bool bound = tcp_key_alive(mw->key);

	if (tcp_key_kill(mw->key, tag))
		tcp_pd_key_stop(tcp_pd(mw->base.pd), mw->key);
	if (bound)
		atomic_fetch_sub(&atomic_load(&mw->key->region)->windows, 1);
}

int tcp_mw_dealloc(struct ibv_mw *ibv)
{
	struct tcp_mw *mw = to_tcp_mw(ibv);

	window_unbind(mw, (uint8_t)(tcp_key_number(mw->key) + 1));
	tcp_pd_key_free(tcp_pd(mw->base.pd), mw->key);
	free(mw);
	return 0;
}

const char *tcp_mw_bind(struct tcp_conn *c, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct tcp_mw *mw = to_tcp_mw(wr->bind_mw.mw);
	struct tcp_mr *mr = container_of(info->mr, struct tcp_mr, base.ibv);
	uint8_t tag = (uint8_t)wr->bind_mw.rkey;
	uint64_t name = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	const char *why = fab_bind_check(wr, &c->pd->base, tcp_key_number(mw->key));

	if (why)
		return why;
	if (mw->base.ibv.type == IBV_MW_TYPE_2 && tcp_key_alive(mw->key))
		return "a window of type 2 that is bound";
	window_unbind(mw, tag);
	if (info->length) {
		atomic_fetch_add(&mr->windows, 1);
		tcp_key_publish(mw->key, tag,
				mw->base.ibv.type == IBV_MW_TYPE_2 ? c->id : TCP_KEY_ANY_CONN, mr,
				name,
				(uintptr_t)mr->base.ibv.addr - mr->base.iova + info->addr - name,
				info->length, (int)info->mw_access_flags);
	}
	return NULL;
}

/* RACE: as in tcp_pd_key_stop(), but only this connection can be in the middle of a write. */
const char *tcp_mw_invalidate(struct tcp_conn *c, uint32_t rkey)
{
	struct tcp_key *key;
	const char *why = tcp_key_invalidate(c, rkey, &key);

	if (why)
		return why;
	LOCK_SCOPE(&c->rx.lock);
	if (tcp_key_drop(c, key))
		tcp_conn_fail(c, IBV_WC_REM_ACCESS_ERR,
			      "remote access error: key 0x%x was invalidated during a write", rkey);
	return NULL;
}
