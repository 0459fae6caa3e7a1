/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the tcp provider.
 *
 * A connection is a socket, a send ring (tcp-tx.c), a receive machine (tcp-rx.c) with its
 * ring (tcp-rq.c), and one failure (tcp-conn.c).  While it is being set up its socket sits in the epoll of its cm (tcp-cm.c); when
 * it is up the socket belongs to fab_poll() and the cm knows nothing of it.  Keys belong to the pd
 * (tcp-mem.c).
 *
 * LOCKS, in the order they may be taken:
 *	pd->lock	connections of the pd, allocation of keys; held while a revoke walks
 *	rx->lock	the receive part of fab_poll(): staging, the current frame, its placement.
 *			Only non-blocking reads happen under it
 *	tx->lock	the send ring and writes to the socket
 *	rx->post_lock	producers of the receive ring
 * cm->lock (events, sockets being set up) is never held together with any of them.  No lock is
 * held while a completion handler runs. */
#ifndef TCP_PRIV_H
#define TCP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "fab-provider.h"
#include "list.h"
#include "tcp-frame.h"

#define TCP_MAX_QP_WR 32768u
#define TCP_MAX_SGE 16u

/* lkey good for any memory as a send source; no key of the table has this index. */
#define TCP_DMA_LKEY 0xffffff00u

/* ---- keys (tcp-key.c), regions (tcp-mem.c), windows (tcp-mw.c) ---- */

struct tcp_conn;

struct tcp_mr {
	struct fab_mr base;
	struct tcp_key *key;
	_Atomic uint32_t windows;	/* bound in it */
};

/* Who may use a key: */
#define TCP_KEY_REGION 0ull		/* a region's: every connection of the pd */
#define TCP_KEY_ANY_CONN UINT64_MAX	/* a window of type 1: every connection of the pd */
					/* else a window of type 2: the connection of this id */

/* One entry of a pd's table.  A key on the wire is index << 8 | tag.
 *
 * word: alive, tag and the number of placements in progress, so that looking up and taking a
 * reference is one compare-and-swap.  The other fields are written only while dead and without
 * references. */
struct tcp_key {
	_Atomic uint64_t word;
	_Atomic uint64_t owner;
	_Atomic(struct tcp_mr *) region;	/* a window's */
	_Atomic uint64_t addr;			/* as the peer calls it */
	_Atomic uint64_t shift;			/* added to it: the memory */
	_Atomic uint64_t len;
	_Atomic int access;
	uint32_t index;
	struct tcp_key *next_free;
};

#define TCP_KEY_LEVELS 18	/* 64 << 0 + ... + 64 << 17 entries */
#define TCP_MAX_MW ((64u << TCP_KEY_LEVELS) - 64u)

struct tcp_pd {
	struct fab_pd base;
	pthread_mutex_t lock;
	struct list conns;			/* tcp_conn.pd_link */
	_Atomic(struct tcp_key *) levels[TCP_KEY_LEVELS];
	uint32_t nkeys;				/* indices handed out so far */
	uint32_t live;				/* regions and windows that exist */
	struct tcp_key *free;
};

/* A dead key, or NULL.  Takes pd->lock, as tcp_key_free() of a key that is dead again. */
struct tcp_key *tcp_key_alloc(struct tcp_pd *pd);
void tcp_key_free(struct tcp_pd *pd, struct tcp_key *key);
/* As on the wire, of a dead one the last. */
uint32_t tcp_key_number(const struct tcp_key *key);
bool tcp_key_alive(const struct tcp_key *key);
/* Make a dead key alive as @tag. */
void tcp_key_publish(struct tcp_key *key, uint8_t tag, uint64_t owner, struct tcp_mr *region,
		     uint64_t addr, uint64_t shift, uint64_t len, int access);
/* Nobody finds the key any more; it is @tag from now on.  Returns the placements still in progress,
 * for which tcp_key_stop() is needed. */
uint32_t tcp_key_kill(struct tcp_key *key, uint8_t tag);
/* Wait for those to stop and fail the connections they are of.  No lock held. */
void tcp_key_stop(struct tcp_pd *pd, struct tcp_key *key);
/* Look up @rkey for a peer's write to [addr, addr + len) and hold it against revocation; NULL with
 * the reason in @why.  Under rx->lock, which is how a revoke finds the holder. */
struct tcp_key *tcp_key_get(struct tcp_conn *c, uint32_t rkey, uint64_t addr, uint32_t len,
			    const char **why);
void tcp_key_put(struct tcp_key *key);
/* Kill the key of a window of type 2 that is bound on @c.  Returns NULL and the key, whose placements,
 * all of @c, may go on; or what @rkey is instead. */
const char *tcp_key_invalidate(struct tcp_conn *c, uint32_t rkey, struct tcp_key **out);
/* True if @sge may be used locally with @access (0 or IBV_ACCESS_LOCAL_WRITE); @at is its memory then. */
bool tcp_lkey_ok(struct tcp_pd *pd, const struct ibv_sge *sge, int access, uint64_t *at);

int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out);
void tcp_pd_destroy(struct fab_pd *fpd);
bool tcp_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey);
struct ibv_mr *tcp_reg_mr(struct fab_pd *fpd, void *addr, size_t length, int access);
struct ibv_mr *tcp_reg_mr_iova(struct fab_pd *fpd, void *addr, size_t length, uint64_t iova,
			       int access);
int tcp_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, int access);
int tcp_rereg_mr_iova(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access);
void tcp_dereg_mr(struct ibv_mr *ibv);
/* A window of @mr is not bound any more. */
void tcp_mr_unbound(struct tcp_mr *mr);

struct ibv_mw *tcp_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type);
int tcp_dealloc_mw(struct ibv_mw *ibv);
/* Carry out the BIND_MW and LOCAL_INV of a chain that is about to be queued on @c.  Returns the first
 * that cannot be, with its @status and @why, or NULL.  No lock held. */
const struct ibv_send_wr *tcp_mw_run(struct tcp_conn *c, const struct ibv_send_wr *wr,
				     enum ibv_wc_status *status, const char **why);

/* ---- send side (tcp-tx.c) ---- */

struct tcp_sqe {
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	uint64_t wr_id;
	uint64_t left;			/* bytes of header and payload not yet in the socket; of
					 * BIND_MW and LOCAL_INV, done before they are queued, 0 */
	uint16_t niov;			/* elements left in iov, first one trimmed */
	uint16_t iov0;			/* first of them */
	uint8_t opcode;			/* enum ibv_wc_opcode */
	uint8_t status;			/* of a failed connection: why it failed, or flushed */
	bool signaled;
};

struct tcp_scqe {
	uint64_t wr_id;
	uint8_t opcode;
};

struct tcp_tx {
	pthread_mutex_t lock;
	uint32_t depth, mask, max_sge;
	struct tcp_sqe *ring;		/* [mask + 1] */
	struct iovec *iov;		/* [mask + 1][1 + max_sge]: header, payload */
	uint32_t head, tail;		/* oldest not wholly in the socket; next free */
	struct tcp_scqe *done;		/* [mask + 1] signaled and sent, not yet polled */
	uint32_t done_head, done_tail;
	uint32_t signaled;		/* in ring or done */
	bool closed;			/* drained: nothing is taken any more */
	/* Read without the lock: */
	_Atomic bool blocked;		/* the socket is full; POLLOUT is needed */
	_Atomic int error;		/* errno of a write; tcp_conn_poll() makes it a failure */
	_Atomic uint32_t ndone;		/* done_tail - done_head */
	_Atomic int armed;		/* what fab_arm() answered, or 0 when nobody sleeps */
};

/* ---- receive side (tcp-rx.c, tcp-rq.c) ---- */

struct tcp_rqe {
	uint64_t wr_id;
	int num_sge;
};

struct tcp_rx {
	pthread_mutex_t lock;
	uint8_t *buf;			/* staging */
	uint32_t head, tail;		/* unparsed bytes in it */
	struct tcp_frame frame;		/* whose payload is coming, when in_payload */
	bool in_payload;
	bool readable;			/* the socket may have something: recv is worth a call */
	bool more;			/* the last poll stopped before it had seen everything */
	uint32_t left;			/* payload bytes not yet placed */
	uint8_t *dst;			/* where the next of them go */
	uint32_t dst_left;		/* contiguous room there */
	const struct ibv_sge *sge;	/* rest of the receive's list behind dst */
	struct tcp_key *key;		/* held while placing a write, else NULL */

	pthread_mutex_t post_lock;
	uint32_t depth, mask;
	struct tcp_rqe *ring;		/* [mask + 1] */
	struct ibv_sge *sges;		/* [mask + 1][FAB_RECV_SGE_MAX] */
	_Atomic uint32_t rq_head, rq_tail;
	bool closed;			/* post_lock */
};

/* Elements of a ring for @depth: a power of 2, so that positions need no division. */
static inline uint32_t tcp_ring_size(uint32_t depth)
{
	uint32_t n = 1;

	while (n < depth)
		n *= 2;
	return n;
}

/* Oldest posted receive, or NULL; stays until tcp_rq_pop().  rx->lock held, for both. */
static inline const struct tcp_rqe *tcp_rq_first(struct tcp_rx *rx, const struct ibv_sge **sges)
{
	uint32_t head = atomic_load_explicit(&rx->rq_head, memory_order_relaxed);

	if (head == atomic_load_explicit(&rx->rq_tail, memory_order_acquire))
		return NULL;
	*sges = &rx->sges[(size_t)(head & rx->mask) * FAB_RECV_SGE_MAX];
	return &rx->ring[head & rx->mask];
}

static inline void tcp_rq_pop(struct tcp_rx *rx)
{
	uint32_t head = atomic_load_explicit(&rx->rq_head, memory_order_relaxed);

	atomic_store_explicit(&rx->rq_head, head + 1, memory_order_release);
}

/* ---- connection ---- */

enum tcp_state {
	TCP_IDLE,			/* created, perhaps resolved */
	TCP_CONNECTING,			/* connect() in progress */
	TCP_WAIT_REPLY,			/* CONNECT sent */
	TCP_STRANGER,			/* accepted socket without a CONNECT yet */
	TCP_REQUESTED,			/* CONNECT_REQUEST reported */
	TCP_UP,
	TCP_DEAD,			/* rejected, unreachable */
};

#define TCP_CAUSE_LEN 160

/* What epoll_event.data points to. */
struct tcp_source {
	void (*ready)(struct tcp_source *src, uint32_t events);
};

struct tcp_conn {
	struct fab_conn base;
	int fd;
	_Atomic int state;		/* enum tcp_state; UP is final but for fail */
	struct tcp_pd *pd;		/* set by create_qp */
	struct list pd_link;
	bool drained;			/* polling thread */
	uint64_t id;			/* never used again; not 0 */
	uint32_t qp_num;
	/* 0; 1: somebody writes cause; 2: failed */
	_Atomic int failed;
	char cause[TCP_CAUSE_LEN];

	struct tcp_tx tx;
	struct tcp_rx rx;

	/* Under cm->lock: set-up. */
	struct tcp_source source;
	bool in_epoll;
	struct tcp_listener *listener;	/* passive, until CONNECT_REQUEST was taken */
	struct list hs_link;		/* cm->handshakes */
	uint64_t deadline_ms;
	struct list ev_link;		/* cm->events */
	enum fab_event_type ev_type;
	int ev_status;
	uint32_t hs_len;		/* bytes of hs_buf received; bytes of private data to send */
	uint8_t hs_buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	uint32_t pdata_len;		/* of the frame received, in hs_buf behind the header */
};

static inline struct tcp_conn *tcp_conn(struct fab_conn *conn)
{
	return container_of(conn, struct tcp_conn, base);
}

static inline bool tcp_conn_failed(const struct tcp_conn *c)
{
	return atomic_load_explicit(&c->failed, memory_order_acquire) != 0;
}

/* A connection around @fd (or -1) for @cm.  -ENOMEM. */
int tcp_conn_new(struct fab_cm *cm, int fd, struct tcp_conn **out);
/* Free what @c holds but what the cm does (tcp_cm_forget() comes first). */
void tcp_conn_free(struct tcp_conn *c);

/* Fail @c with the cause in words unless it has failed already, tell the peer @status (enum
 * ibv_wc_status, 0: none) and hang up.  Takes tx->lock. */
void tcp_conn_fail(struct tcp_conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As above while the caller holds tx->lock. */
void tcp_conn_fail_tx_locked(struct tcp_conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Only write the cause. */
void tcp_conn_set_cause(struct tcp_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
/* What that allocates; of tcp_rx_init() below. */
size_t tcp_tx_memory(const struct fab_qp_attr *attr);
size_t tcp_rx_memory(const struct fab_qp_attr *attr);
void tcp_tx_fini(struct tcp_conn *c);
int tcp_tx_post(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* Write what waits, take up to @n completions. */
int tcp_tx_poll(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: completions not yet taken, then everything else as flushed. */
int tcp_tx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Say DISCONNECT if the stream is between two frames.  tx->lock held. */
void tcp_tx_goodbye(struct tcp_conn *c, int status);
/* Nothing is left to flush: take nothing any more.  Returns false if there is. */
bool tcp_tx_close(struct tcp_conn *c);

int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
void tcp_rx_fini(struct tcp_conn *c);
/* Read and parse; up to @n completions.  A failure is in c->failed afterwards.  rx->lock held. */
int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Stop placing under @key (any, if NULL) and forget the message.  rx->lock held.
 * Returns true if a placement was dropped. */
bool tcp_rx_drop(struct tcp_conn *c, const struct tcp_key *key);

int tcp_rq_post(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* After a failure: up to @n receives as flushed. */
int tcp_rq_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* None is left: take none any more.  Returns false if there is one. */
bool tcp_rq_close(struct tcp_conn *c);

/* ---- set-up (tcp-cm.c) ---- */

int tcp_cm_create(struct fab_cm **out);
void tcp_cm_destroy(struct fab_cm *fcm);
int tcp_cm_fd(const struct fab_cm *cm);
int tcp_cm_get_event(struct fab_cm *fcm, struct fab_event *ev);
int tcp_listen(struct fab_cm *fcm, const struct fab_addr *addr, struct fab_listener **out);
void tcp_listener_destroy(struct fab_listener *fl);
int tcp_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst);
int tcp_connect(struct fab_conn *conn, const void *private_data, size_t len);
int tcp_accept(struct fab_conn *conn, const void *private_data, size_t len);
void tcp_reject(struct fab_conn *conn, const void *private_data, size_t len);
/* The cm knows @c no longer: out of the epoll, no event.  Any thread. */
void tcp_cm_forget(struct tcp_conn *c);

#endif
