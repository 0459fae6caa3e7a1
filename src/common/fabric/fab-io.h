/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a request down and of its completion up: checks that are the same for all providers,
 * and the call.  Part of fabric.h, which has the contracts. */
#ifndef FAB_IO_H
#define FAB_IO_H

#include <errno.h>

#include "util.h"

static inline void *fab_conn_context(const struct fab_conn *conn)
{
	return conn->context;
}

/* ---- memory ---- */

/* True if the range does not wrap, and @access has known rights and follows the rule of verbs:
 * memory that a peer may write is locally writable. */
static inline bool fab_access_ok(const void *addr, size_t length, int access)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

	return (uintptr_t)addr <= UINTPTR_MAX - length && !(access & ~known) &&
	       (!(access & IBV_ACCESS_REMOTE_WRITE) || (access & IBV_ACCESS_LOCAL_WRITE));
}

/* The fab_mr around @mr. */
static inline struct fab_mr *fab_mr(const struct ibv_mr *mr)
{
	return container_of(mr, struct fab_mr, ibv);
}

/* Store the name of the first byte and the rights with which @mr was registered. */
static inline void fab_mr_is(struct ibv_mr *mr, uint64_t iova, int access)
{
	fab_mr(mr)->access = access;
	fab_mr(mr)->iova = iova;
}

static inline uint64_t fab_mr_iova(const struct ibv_mr *mr)
{
	return fab_mr(mr)->iova;
}

static inline bool fab_mr_covers(const struct ibv_mr *mr, const struct fab_pd *pd, uint64_t addr,
				 uint64_t len, int access)
{
	return fab_mr(mr)->pd == pd && (fab_mr(mr)->access & access) == access &&
	       range_ok(addr - fab_mr(mr)->iova, len, mr->length);
}

static inline int fab_rereg_mr_iova(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova,
				    int access)
{
	const struct fab_provider *ops = fab_mr(mr)->pd->ops;
	int rc;

	if (!ops->mr_iova)
		iova = (uintptr_t)addr;
	if (!fab_access_ok(addr, length, access) || iova > UINT64_MAX - length)
		return -EINVAL;
	rc = ops->rereg_mr ? ops->rereg_mr(mr, addr, length, iova, access) : -ENOTSUP;
	if (!rc)
		fab_mr_is(mr, iova, access);
	return rc;
}

static inline int fab_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access)
{
	return fab_rereg_mr_iova(mr, addr, length, (uintptr_t)addr, access);
}

static inline int fab_revoke_mr(struct ibv_mr *mr)
{
	return fab_rereg_mr(mr, NULL, 0, 0);
}

static inline int fab_suspend_mr(struct ibv_mr *mr)
{
	const struct fab_provider *ops = fab_mr(mr)->pd->ops;

	return ops->suspend_mr ? ops->suspend_mr(mr, true) : -ENOTSUP;
}

static inline int fab_resume_mr(struct ibv_mr *mr)
{
	const struct fab_provider *ops = fab_mr(mr)->pd->ops;

	if (!ops->suspend_mr)
		return -ENOTSUP;
	return mr->length ? ops->suspend_mr(mr, false) : -EINVAL;
}

/* ---- posting ---- */

/* True if a device can refuse the bind @wr without crashing. */
static inline bool fab_bind_ok(const struct fab_provider *ops, const struct ibv_send_wr *wr)
{
	const unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       (ops->mw_zero_based ? IBV_ACCESS_ZERO_BASED : 0);

	return wr->num_sge == 0 && wr->bind_mw.mw && wr->bind_mw.bind_info.mr &&
	       !(wr->bind_mw.bind_info.mw_access_flags & ~known);
}

/* Check @wr against the subset.  Returns 0, or -errno with the reason in @why. */
static inline int fab_check_send(const struct fab_provider *ops, const struct ibv_send_wr *wr,
				 const char **why)
{
	const unsigned known = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE |
			       (wr->num_sge > 0 ? IBV_SEND_INLINE : 0);
	const unsigned subset = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM |
				1u << IBV_WR_SEND_WITH_INV | 1u << IBV_WR_RDMA_WRITE |
				1u << IBV_WR_RDMA_WRITE_WITH_IMM | 1u << IBV_WR_LOCAL_INV |
				1u << IBV_WR_BIND_MW;
	uint64_t total = 0;

	if ((unsigned)wr->opcode > 31 || !(subset & 1u << wr->opcode)) {
		*why = "post of an opcode outside the subset";
		return -EOPNOTSUPP;
	}
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (wr->num_sge < 0 || total > FAB_MSG_MAX || (wr->send_flags & ~known) ||
	    (wr->opcode == IBV_WR_LOCAL_INV && wr->num_sge) ||
	    (wr->opcode == IBV_WR_BIND_MW && !fab_bind_ok(ops, wr))) {
		*why = "post of a malformed work request";
		return -EINVAL;
	}
	return 0;
}

/* Checks the whole chain before the provider sees a part of the chain. */
static inline int fab_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	const char *why;
	int rc;

	for (const struct ibv_send_wr *w = wr; w; w = w->next) {
		rc = fab_check_send(conn->ops, w, &why);
		if (rc) {
			conn->ops->disconnect(conn, why);
			return rc;
		}
	}
	return conn->ops->post_send(conn, wr);
}

/* Checks the whole chain before the provider sees a part of the chain. */
static inline int fab_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	for (const struct ibv_recv_wr *w = wr; w; w = w->next) {
		if (w->num_sge < 0 || w->num_sge > FAB_RECV_SGE_MAX) {
			conn->ops->disconnect(conn, "post of a malformed receive");
			return -EINVAL;
		}
	}
	return conn->ops->post_recv(conn, wr);
}

/* ---- polling ---- */

static inline int fab_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	return conn->ops->poll(conn, wc, n);
}

static inline int fab_dispatch(struct fab_conn *conn, int budget)
{
	struct ibv_wc wc[32];
	int total = 0;

	while (total < budget) {
		int want = MIN(budget - total, (int)ARRAY_SIZE(wc));
		int n = fab_poll(conn, wc, want);

		if (n < 0)
			return total ? total : n;
		for (int i = 0; i < n; i++) {
			struct fab_cqe *cqe = (struct fab_cqe *)(uintptr_t)wc[i].wr_id;

			cqe->done(conn, cqe, &wc[i]);
		}
		total += n;
		if (n < want)
			break;
	}
	return total;
}

static inline int fab_conn_fd(const struct fab_conn *conn)
{
	return conn->fd;
}

static inline int fab_arm(struct fab_conn *conn, short *events)
{
	return conn->ops->arm(conn, events);
}

static inline bool fab_arm_is_dear(const struct fab_conn *conn)
{
	return conn->ops->arm_is_dear;
}

static inline int fab_need_rearm(const struct fab_conn *conn)
{
	return conn->ops->need_rearm(conn);
}

#endif
