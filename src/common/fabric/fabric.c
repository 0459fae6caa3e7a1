/* SPDX-License-Identifier: BSD-3-Clause */
/* The door to the providers: finds them by name, makes the checks that are the same for all and
 * calls through.  Owns only the table of providers, which is complete before any thread starts.
 * Threads and errors are those of fabric.h. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fab-provider.h"
#include "util.h"

#define FAB_PROVIDERS_MAX 4

static const struct fab_provider *providers[FAB_PROVIDERS_MAX] = {
	&fab_tcp,
#ifdef HAVE_RDMA
	&fab_verbs,
#endif
};

const struct fab_provider *fab_provider_find(const char *name)
{
	for (unsigned i = 0; i < FAB_PROVIDERS_MAX && providers[i]; i++) {
		if (strcmp(providers[i]->name, name) == 0)
			return providers[i];
	}
	return NULL;
}

const char *fab_provider_name(const struct fab_provider *p)
{
	return p->name;
}

void fab_provider_register(const struct fab_provider *p)
{
	unsigned i = 0;

	while (i < FAB_PROVIDERS_MAX && providers[i])
		i++;
	assert(i < FAB_PROVIDERS_MAX);
	providers[i] = p;
}

int fab_cm_create(const struct fab_provider *p, struct fab_cm **cm)
{
	return p->cm_create(cm);
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
	return l->ops->listener_query_device(l, attr);
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
	return conn->ops->query_device(conn, attr);
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

/* The rule of verbs: what a peer may write must be writable here. */
static bool access_ok(int access)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

	return !(access & ~known) &&
	       (!(access & IBV_ACCESS_REMOTE_WRITE) || (access & IBV_ACCESS_LOCAL_WRITE));
}

static struct fab_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct fab_mr, ibv);
}

struct ibv_mr *fab_reg_mr(struct fab_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	if (!access_ok(access) || (uintptr_t)addr > UINTPTR_MAX - length) {
		errno = EINVAL;
		return NULL;
	}
	mr = pd->ops->reg_mr(pd, addr, length, access);
	if (mr)
		to_mr(mr)->access = access;
	return mr;
}

int fab_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access)
{
	int rc;

	if (!access_ok(access) || (uintptr_t)addr > UINTPTR_MAX - length)
		return -EINVAL;
	rc = to_mr(mr)->pd->ops->rereg_mr(mr, addr, length, access);
	if (!rc)
		to_mr(mr)->access = access;
	return rc;
}

int fab_revoke_mr(struct ibv_mr *mr)
{
	return fab_rereg_mr(mr, NULL, 0, 0);
}

bool fab_mr_covers(const struct ibv_mr *ibv, const struct fab_pd *pd, uint64_t addr, uint64_t len,
		   int access)
{
	const struct fab_mr *mr = container_of(ibv, struct fab_mr, ibv);

	return mr->pd == pd && (mr->access & access) == access &&
	       range_ok(addr - (uintptr_t)ibv->addr, len, ibv->length);
}

void fab_dereg_mr(struct ibv_mr *mr)
{
	if (mr)
		to_mr(mr)->pd->ops->dereg_mr(mr);
}

struct ibv_mw *fab_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	if (!pd->ops->alloc_mw) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return pd->ops->alloc_mw(pd, type);
}

int fab_dealloc_mw(struct ibv_mw *mw)
{
	return mw ? container_of(mw, struct fab_mw, ibv)->pd->ops->dealloc_mw(mw) : 0;
}

/* What a device could not refuse without falling over it. */
static bool bind_ok(const struct ibv_send_wr *wr)
{
	const unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	return wr->num_sge == 0 && wr->bind_mw.mw && wr->bind_mw.bind_info.mr &&
	       !(wr->bind_mw.bind_info.mw_access_flags & ~known);
}

const char *fab_bind_check(const struct ibv_send_wr *wr, const struct fab_pd *pd, uint32_t last)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct fab_mw *mw = container_of(wr->bind_mw.mw, struct fab_mw, ibv);
	const struct fab_mr *mr = to_mr(info->mr);
	bool type_2 = mw->ibv.type == IBV_MW_TYPE_2;

	if (mw->pd != pd || mr->pd != pd)
		return "a window or region of another protection domain";
	if (mw->ibv.rkey != last)
		return "a window whose ibv_mw.rkey is not its last key";
	if (wr->bind_mw.rkey >> 8 != last >> 8)
		return "the key of another window";
	if (type_2 && wr->bind_mw.rkey == last)
		return "a window of type 2 under its last key";
	if (!type_2 && wr->bind_mw.rkey != ibv_inc_rkey(last))
		return "a window of type 1 with other than its next key";
	if (info->length == 0)
		return type_2 ? "a window of type 2 to nothing" : NULL;
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "a region without the right to bind windows";
	if ((info->mw_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "a writable window to a region that is not";
	if (info->length > FAB_MW_LEN_MAX || !fab_mr_covers(info->mr, pd, info->addr, info->length, 0))
		return "a range outside of its region";
	return NULL;
}

/* Returns 0, or -errno with the reason in @why. */
static int check_send(const struct ibv_send_wr *wr, const char **why)
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
	    (wr->opcode == IBV_WR_BIND_MW && !bind_ok(wr))) {
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
		rc = check_send(w, &why);
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
