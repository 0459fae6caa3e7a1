/* SPDX-License-Identifier: BSD-3-Clause */
/* The door to the providers: makes the checks that are the same for all and calls through.  Owns nothing.
 * Threads and errors are those of fabric.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fab-provider.h"
#include "util.h"

int fab_cm_create(const struct fab_provider *p, struct fab_cm **cm)
{
	int rc = p->cm_create(cm);

	if (!rc)
		(*cm)->ops = p;
	return rc;
}

void fab_cm_destroy(struct fab_cm *cm)
{
	if (cm)
		cm->ops->cm_destroy(cm);
}

int fab_cm_fd(const struct fab_cm *cm)
{
	return cm->ops->cm_fd(cm);
}

int fab_cm_get_event(struct fab_cm *cm, struct fab_event *ev)
{
	return cm->ops->cm_get_event(cm, ev);
}

void fab_cm_admit(struct fab_cm *cm, bool (*admit)(void *arg, const struct fab_addr *peer), void *arg,
		  const void *private_data, size_t len)
{
	assert(len <= sizeof(cm->refusal));
	cm->admit = admit;
	cm->admit_arg = arg;
	memcpy(cm->refusal, private_data, len);
	cm->refusal_len = len;
}

int fab_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **l)
{
	if (addr->len == 0 || addr->provider != cm->ops)
		return -EINVAL;
	return cm->ops->listen(cm, addr, l);
}

void fab_listener_addr(const struct fab_listener *l, struct fab_addr *addr)
{
	*addr = l->addr;
}

int fab_listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr)
{
	int rc = l->ops->listener_query_device(l, attr);

	if (!rc)
		attr->mw_zero_based = l->ops->mw_zero_based;
	return rc;
}

void fab_listener_destroy(struct fab_listener *l)
{
	if (l)
		l->ops->listener_destroy(l);
}

int fab_conn_create(struct fab_cm *cm, void *context, struct fab_conn **conn)
{
	int rc = cm->ops->conn_create(cm, conn);

	if (!rc)
		(*conn)->context = context;
	return rc;
}

void fab_conn_set_context(struct fab_conn *conn, void *context)
{
	conn->context = context;
}

void *fab_conn_context(const struct fab_conn *conn)
{
	return conn->context;
}

void fab_conn_destroy(struct fab_conn *conn)
{
	if (conn)
		conn->ops->conn_destroy(conn);
}

int fab_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst)
{
	if (src && src->len == 0)
		src = NULL;
	if (dst->len == 0 || (src && src->ss.ss_family != dst->ss.ss_family))
		return -EINVAL;
	return conn->ops->resolve(conn, src, dst);
}

int fab_query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	int rc = conn->ops->query_device(conn, attr);

	if (!rc)
		attr->mw_zero_based = conn->ops->mw_zero_based;
	return rc;
}

int fab_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	struct fab_device_attr dev;
	int rc;

	rc = conn->ops->query_device(conn, &dev);
	if (rc)
		return rc;
	if (pd->ops != conn->ops || attr->max_send_wr == 0 || attr->max_recv_wr == 0 ||
	    attr->max_send_sge == 0 || attr->max_send_wr > dev.max_qp_wr ||
	    attr->max_recv_wr > dev.max_qp_wr || attr->max_send_sge > dev.max_sge)
		return -EINVAL;
	return conn->ops->create_qp(conn, pd, attr);
}

size_t fab_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr)
{
	return conn->ops->qp_memory ? conn->ops->qp_memory(attr) : 0;
}

int fab_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	if (len > FAB_CONNECT_DATA_MAX)
		return -EINVAL;
	return conn->ops->connect(conn, private_data, len);
}

int fab_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	if (len > FAB_PRIVATE_DATA_MAX)
		return -EINVAL;
	return conn->ops->accept(conn, private_data, len);
}

void fab_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	assert(len <= FAB_REJECT_DATA_MAX);
	conn->ops->reject(conn, private_data, len);
}

void fab_conn_addrs(const struct fab_conn *conn, struct fab_addr *local, struct fab_addr *peer)
{
	if (local)
		*local = conn->local;
	if (peer)
		*peer = conn->peer;
}

int fab_pd_create(struct fab_conn *conn, struct fab_pd **pd)
{
	return conn->ops->pd_create(conn, pd);
}

void fab_pd_destroy(struct fab_pd *pd)
{
	if (pd)
		pd->ops->pd_destroy(pd);
}

bool fab_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey)
{
	return pd->ops->pd_local_dma_lkey(pd, lkey);
}

/* What a device could not refuse without falling over it. */
static bool bind_ok(const struct fab_provider *ops, const struct ibv_send_wr *wr)
{
	const unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       (ops->mw_zero_based ? IBV_ACCESS_ZERO_BASED : 0);

	return wr->num_sge == 0 && wr->bind_mw.mw && wr->bind_mw.bind_info.mr &&
	       !(wr->bind_mw.bind_info.mw_access_flags & ~known);
}

/* Returns 0, or -errno with the reason in @why. */
static int check_send(const struct fab_provider *ops, const struct ibv_send_wr *wr,
		      const char **why)
{
	const unsigned known = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	uint64_t total = 0;

	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
		break;
	default:
		*why = "post of an opcode outside the subset";
		return -EOPNOTSUPP;
	}
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (wr->num_sge < 0 || total > FAB_MSG_MAX || (wr->send_flags & ~known) ||
	    (wr->opcode == IBV_WR_LOCAL_INV && wr->num_sge) ||
	    (wr->opcode == IBV_WR_BIND_MW && !bind_ok(ops, wr))) {
		*why = "post of a malformed work request";
		return -EINVAL;
	}
	return 0;
}

int fab_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	const char *why;
	int rc;

	for (const struct ibv_send_wr *w = wr; w; w = w->next) {
		rc = check_send(conn->ops, w, &why);
		if (rc) {
			conn->ops->disconnect(conn, why);
			return rc;
		}
	}
	return conn->ops->post_send(conn, wr);
}

int fab_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	for (const struct ibv_recv_wr *w = wr; w; w = w->next) {
		if (w->num_sge < 0 || w->num_sge > FAB_RECV_SGE_MAX) {
			conn->ops->disconnect(conn, "post of a malformed receive");
			return -EINVAL;
		}
	}
	return conn->ops->post_recv(conn, wr);
}

int fab_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	return conn->ops->poll(conn, wc, n);
}

/* A handler of it is on the stack of this thread. */
static _Thread_local unsigned dispatching;

bool fab_in_dispatch(void)
{
	return dispatching > 0;
}

int fab_dispatch(struct fab_conn *conn, int budget)
{
	struct ibv_wc wc[32];
	int total = 0;

	while (total < budget) {
		int want = MIN(budget - total, (int)ARRAY_SIZE(wc));
		int n = conn->ops->poll(conn, wc, want);

		if (n < 0)
			return total ? total : n;
		dispatching++;
		for (int i = 0; i < n; i++) {
			struct fab_cqe *cqe = (struct fab_cqe *)(uintptr_t)wc[i].wr_id;

			cqe->done(conn, cqe, &wc[i]);
		}
		dispatching--;
		total += n;
		if (n < want)
			break;
	}
	return total;
}

int fab_conn_fd(const struct fab_conn *conn)
{
	return conn->ops->conn_fd(conn);
}

int fab_arm(struct fab_conn *conn, short *events)
{
	return conn->ops->arm(conn, events);
}

bool fab_arm_is_dear(const struct fab_conn *conn)
{
	return conn->ops->arm_is_dear;
}

int fab_need_rearm(const struct fab_conn *conn)
{
	return conn->ops->need_rearm(conn);
}

void fab_disconnect(struct fab_conn *conn)
{
	conn->ops->disconnect(conn, "disconnected");
}

const char *fab_conn_cause(const struct fab_conn *conn)
{
	return conn->ops->conn_cause(conn);
}
