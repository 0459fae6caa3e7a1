/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a provider.  Each function has the contract of its namesake in fabric.h; the
 * files of fabric.h make the checks common to all providers and call through here.  A provider
 * embeds the structs below first in its own.  Part of fabric.h, for inline calls; users leave the
 * fields alone. */
#ifndef FAB_PROVIDER_H
#define FAB_PROVIDER_H

struct fab_cm {
	const struct fab_provider *ops;
	int fd;				/* the provider's, from cm_create() on */
	/* copied from struct fab_cm_conf */
	bool (*admit)(void *arg, const struct fab_addr *peer);
	void (*refused)(void *arg, const struct fab_addr *peer, bool tls, const char *why);
	void *admit_arg;
	uint8_t refusal[FAB_REJECT_DATA_MAX];
	size_t refusal_len;
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
	int (*suspend_mr)(struct ibv_mr *mr, bool closed);	/* and resume; NULL: not offered */
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

#endif
