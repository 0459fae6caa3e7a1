/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a provider.  Each function has the contract of its namesake in fabric.h, whose
 * files make the checks common to all and call through here.  A provider embeds the structs
 * below first in its own.  Part of fabric.h, for inline calls; users leave the fields alone. */
#ifndef FAB_PROVIDER_H
#define FAB_PROVIDER_H

struct fab_cm {
	const struct fab_provider *ops;
	int fd;				/* the provider's, from cm_create() on */
	/* of its conf */
	bool (*admit)(void *arg, const struct fab_addr *peer);
	void *admit_arg;
	uint8_t refusal[FAB_REJECT_DATA_MAX];
	size_t refusal_len;
	struct fab_users servers;
};

/* May @peer come in?  Else it is to be refused with cm->refusal. */
static inline bool fab_cm_admits(const struct fab_cm *cm, const struct fab_addr *peer)
{
	return !cm->admit || cm->admit(cm->admit_arg, peer);
}

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
	_Atomic int cause_state;	/* 0: no failure; 1: its cause is being written; 2: there */
	char cause[160];
};

/* Write the cause of a failure of @conn.  True if it is the first; fab_conn_tell_cause() is to
 * follow.  Any thread. */
__attribute__((format(printf, 2, 0)))
/* Write the cause of @conn's failure, unless another thread has done so: then false. The cause is
 * read only after fab_conn_tell_cause(). */
bool fab_conn_claim_cause(struct fab_conn *conn, const char *fmt, va_list ap);
/* Publish the cause that fab_conn_claim_cause() wrote. */
void fab_conn_tell_cause(struct fab_conn *conn);
/* fab_conn_claim_cause() and, if it wrote, fab_conn_tell_cause(). */
__attribute__((format(printf, 2, 0)))
void fab_conn_note_cause(struct fab_conn *conn, const char *fmt, va_list ap);

struct fab_pd {
	const struct fab_provider *ops;
	uint32_t dma_lkey;		/* fab_pd_local_dma_lkey(); 0: there is none */
};

/* Our memory region: struct ibv_mr is first, so one converts to the other. */
struct fab_mr {
	struct ibv_mr ibv;
	struct fab_pd *pd;
	int access;			/* fab-mem.c's */
	uint64_t iova;			/* likewise: what the first byte is called */
};

/* Our memory window, in the same way. */
struct fab_mw {
	struct ibv_mw ibv;
	struct fab_pd *pd;
};

/* The fault of a bind on a connection of @pd of a window whose last key is @last, or NULL.
 * Whether a window of type 2 is bound is the provider's to see.  When it is posted: ibv_mw.rkey
 * moves on. */
const char *fab_bind_check(const struct ibv_send_wr *wr, const struct fab_pd *pd, uint32_t last);

struct fab_provider {
	const char *name;

	int (*cm_create)(struct fab_cm **cm);	/* all but what is of the conf */
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
	size_t (*qp_memory)(const struct fab_qp_attr *attr);	/* NULL: nothing to speak of */
	int (*connect)(struct fab_conn *conn, const void *private_data, size_t len);
	int (*accept)(struct fab_conn *conn, const void *private_data, size_t len);
	void (*reject)(struct fab_conn *conn, const void *private_data, size_t len);

	int (*pd_create)(struct fab_conn *conn, struct fab_pd **pd);
	void (*pd_destroy)(struct fab_pd *pd);
	bool mr_iova;			/* else @iova of the next two is always the address */
	struct ibv_mr *(*reg_mr)(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access);
	/* NULL: -ENOTSUP, as fab_device_attr.rereg_mr says */
	int (*rereg_mr)(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova, int access);
	void (*dereg_mr)(struct ibv_mr *mr);
	int (*suspend_mr)(struct ibv_mr *mr, bool closed);	/* and resume; NULL where there is
								 * none */
	bool mw_zero_based;		/* binds may have IBV_ACCESS_ZERO_BASED */
	/* NULL where there are no windows. */
	struct ibv_mw *(*alloc_mw)(struct fab_pd *pd, enum ibv_mw_type type);
	int (*dealloc_mw)(struct ibv_mw *mw);

	int (*post_send)(struct fab_conn *conn, const struct ibv_send_wr *wr);
	int (*post_recv)(struct fab_conn *conn, const struct ibv_recv_wr *wr);
	int (*poll)(struct fab_conn *conn, struct ibv_wc *wc, int n);
	bool arm_is_dear;
	int (*arm)(struct fab_conn *conn, short *events);
	int (*need_rearm)(const struct fab_conn *conn);
	/* @cause: becomes fab_conn_cause() if it is the first; copied. */
	void (*disconnect)(struct fab_conn *conn, const char *cause);
};

extern const struct fab_provider fab_tcp;
#ifdef HAVE_RDMA
extern const struct fab_provider fab_verbs;	/* named "rdma" */
#endif

#endif
