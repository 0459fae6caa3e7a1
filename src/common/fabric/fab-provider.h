/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a provider.  Each function has the contract of its namesake in fabric.h; the
 * files of fabric.h make the checks common to all providers and call through here.  A provider
 * embeds the structs below first in its own.  Part of fabric.h, for inline calls; users leave the
 * fields alone. */
#ifndef FAB_PROVIDER_H
#define FAB_PROVIDER_H

#include <errno.h>

#include "util.h"

struct fab_cm {
	const struct fab_provider *ops;
	int fd;				/* the provider's, from cm_create() on */
	/* copied from struct fab_cm_conf */
	bool (*admit)(void *arg, const struct fab_addr *peer);
	void (*refused)(void *arg, const struct fab_addr *peer, bool tls, const char *why);
	void *admit_arg;
	uint8_t refusal[FAB_REJECT_DATA_MAX], pushed_out[FAB_REJECT_DATA_MAX];
	size_t refusal_len;
	bool tells_pushed_out;
	const char *(*seal)(struct fab_conn *conn, void *data, size_t len);
	struct fab_users servers;
	const struct fab_tls *tls;
	unsigned silence_ms;
};

/* True if @peer may connect.  False: the provider refuses @peer with cm->refusal. */
static inline bool fab_cm_admits(const struct fab_cm *cm, const struct fab_addr *peer)
{
	return !cm->admit || cm->admit(cm->admit_arg, peer);
}

struct fab_conn;

/* Have the user seal @data, the @len bytes of fab_connect(), before they are sent: what protects
 * @conn is known.  0, or -EACCES with fab_conn_cause().  Called for a provider without TLS, and by
 * one with TLS. */
int fab_conn_seal(struct fab_conn *conn, void *data, size_t len);

struct fab_listener {
	const struct fab_provider *ops;
	struct fab_cm *cm;
	struct fab_addr addr;
};

struct fab_conn {
	const struct fab_provider *ops;
	struct fab_cm *cm;
	void *context;
	int fd;				/* to wait on, from create_qp() on */
	struct fab_addr local, peer;
	_Atomic int cause_state;	/* 0: no failure; 1: a thread writes @cause; 2: told */
	char cause[160];
};

/* Write the first cause of @conn's failure, for fab_conn_tell_cause() to publish.  False: another
 * cause was first.  Any thread. */
bool fab_conn_claim_cause(struct fab_conn *conn, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Publish the cause that fab_conn_claim_cause() wrote. */
void fab_conn_tell_cause(struct fab_conn *conn);
/* Call fab_conn_claim_cause() and, if true, fab_conn_tell_cause(). */
void fab_conn_note_cause(struct fab_conn *conn, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* The name of a connection of @peer for fsm_run(), in @buf; NULL, unless the log wants its line. */
const char *fab_addr_log_name(const struct fab_addr *peer, char buf[FAB_ADDR_STRLEN]);

struct fab_pd {
	const struct fab_provider *ops;
	uint32_t dma_lkey;		/* for fab_pd_local_dma_lkey(); 0: none */
};

/* Our memory region; struct ibv_mr is the first member, and the pointer that users have. */
struct fab_mr {
	struct ibv_mr ibv;
	struct fab_pd *pd;
	int access;			/* fab-mem.c's */
	uint64_t iova;			/* fab-mem.c's: the name of the first byte */
};

/* Our memory window, with struct ibv_mw first. */
struct fab_mw {
	struct ibv_mw ibv;
	struct fab_pd *pd;
};

/* The fault of the bind @wr, on a connection of @pd, of a window whose last key is @last; NULL:
 * none.  The provider checks whether a window of type 2 is bound.  Call in the post: ibv_mw.rkey
 * moves on. */
const char *fab_bind_check(const struct ibv_send_wr *wr, const struct fab_pd *pd, uint32_t last);

struct fab_provider {
	const char *name;
	bool tls;			/* connections may have TLS */

	int (*cm_create)(struct fab_cm **cm);	/* fills all but the conf's fields */
	void (*cm_destroy)(struct fab_cm *cm);
	int (*cm_get_event)(struct fab_cm *cm, struct fab_event *ev);
	int (*listen)(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **l);
	int (*listener_query_device)(const struct fab_listener *l, struct fab_device_attr *attr);
	void (*listener_destroy)(struct fab_listener *l);

	int (*conn_create)(struct fab_cm *cm, struct fab_conn **conn);
	void (*conn_destroy)(struct fab_conn *conn);
	int (*resolve)(struct fab_conn *conn, const struct fab_addr *src,
		       const struct fab_addr *dst);
	int (*query_device)(const struct fab_conn *conn, struct fab_device_attr *attr);
	int (*create_qp)(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
	/* NULL: too little to count */
	size_t (*qp_memory)(const struct fab_conn *conn, const struct fab_qp_attr *attr);
	int (*connect)(struct fab_conn *conn, const void *private_data, size_t len);
	int (*accept)(struct fab_conn *conn, const void *private_data, size_t len);
	void (*reject)(struct fab_conn *conn, const void *private_data, size_t len);
	/* NULL: never. */
	bool (*unheard)(const struct fab_conn *conn);
	/* Fill @id, which is empty; NULL: peers prove nothing. */
	void (*identity)(const struct fab_conn *conn, struct fab_identity *id);
	/* Fill @mtu, which is zero; NULL: nothing is known. */
	void (*mtu)(const struct fab_conn *conn, struct fab_mtu *mtu);
	/* NULL: each is. */
	bool (*trusted)(const struct fab_conn *conn);
	/* Fill @out, which is zero; NULL: no connection has TLS. */
	bool (*binding)(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN]);

	int (*pd_create)(struct fab_conn *conn, struct fab_pd **pd);
	void (*pd_destroy)(struct fab_pd *pd);
	bool mr_iova;			/* false: @iova of reg_mr and rereg_mr is always the
					 * address */
	struct ibv_mr *(*reg_mr)(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
	/* NULL: -ENOTSUP, without FAB_CAP_REREG_MR */
	int (*rereg_mr)(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova, int access);
	void (*dereg_mr)(struct ibv_mr *mr);
	/* and resume; NULL: not offered, and so are the next three */
	int (*suspend_mr)(struct ibv_mr *mr, bool closed);
	int (*hold_mr)(struct ibv_mr *mr);
	void (*release_mr)(struct ibv_mr *mr);
	bool (*sends_left)(const struct fab_conn *conn);
	bool mw_zero_based;		/* binds may have IBV_ACCESS_ZERO_BASED */
	/* NULL: no windows */
	struct ibv_mw *(*alloc_mw)(struct fab_pd *pd, enum ibv_mw_type type);
	int (*dealloc_mw)(struct ibv_mw *mw);

	int (*post_send)(struct fab_conn *conn, const struct ibv_send_wr *wr);
	int (*post_recv)(struct fab_conn *conn, const struct ibv_recv_wr *wr);
	int (*poll)(struct fab_conn *conn, struct ibv_wc *wc, int n);
	bool arm_is_dear;
	int (*arm)(struct fab_conn *conn, short *events);
	int (*need_rearm)(const struct fab_conn *conn);
	/* @cause, which is copied, becomes fab_conn_cause(), unless another cause was first. */
	void (*disconnect)(struct fab_conn *conn, const char *cause);
};

extern const struct fab_provider fab_tcp;
#ifdef HAVE_RDMA
extern const struct fab_provider fab_verbs;	/* named "rdma" */
#endif

/* ---- the way of a request down and of its completion up ----
 *
 * Checks that are the same for all providers, and the call. */

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

static inline int fab_hold_mr(struct ibv_mr *mr)
{
	const struct fab_provider *ops = fab_mr(mr)->pd->ops;

	return ops->hold_mr ? ops->hold_mr(mr) : -ENOTSUP;
}

static inline void fab_release_mr(struct ibv_mr *mr)
{
	fab_mr(mr)->pd->ops->release_mr(mr);
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

static inline bool fab_sends_left(const struct fab_conn *conn)
{
	return !conn->ops->sends_left || conn->ops->sends_left(conn);
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
