/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of the tcp provider: its record, and its only failure.
 *
 * A connection is a socket, a send ring, a receive machine with its ring and at most a single
 * failure.  During the set-up the socket sits in the epoll of its cm (tcp-cm.h).  When the
 * connection is up, the socket belongs to fab_poll() and the cm does not know the connection.  Keys
 * belong to the pd; regions and windows have keys (tcp-key.h).
 *
 * A file calls only those before it: tcp-frame, tcp-ktls, tcp-tls, tcp-conn, tcp-key, tcp-tx,
 * tcp-rx; tcp-aside, tcp-hs-frame; tcp-cm with tcp-hs, tcp-listen; tcp.c.
 *
 * LOCKS, in the order of taking:
 *	pd->lock	connections of the pd, allocation of keys; held while a revoke walks
 *	rx->lock	the receive part of fab_poll(): staging, the current frame, its placement.
 *			Only non-blocking reads happen under rx->lock
 *	tx->lock	the send ring and writes to the socket
 *	pd->hold	held while a key is: a placement under the key waits for the lock
 *	rx->post_lock	producers of the receive ring
 * cm->lock (events, sockets in their set-up) is never held together with another lock, but that of
 * the worker for steps of TLS (tcp-cm.h), and that of a session of TLS (tcp-tls.c); these two
 * are innermost.  No lock is held while a completion handler runs. */
#ifndef TCP_CONN_H
#define TCP_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "fabric.h"
#include "fsm.h"
#include "list.h"
#include "tcp-frame.h"
#include "unproven.h"
#include "util.h"

struct tcp_key;
struct tcp_listener;
struct tcp_pd;
struct tcp_step;
struct tcp_tls;

/* ---- send side: tcp-tx.c owns it ---- */

struct tcp_sqe {
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	uint64_t wr_id;
	uint64_t left;			/* bytes of header and payload not yet in the socket; 0:
					 * BIND_MW and LOCAL_INV, carried out before the queue */
	uint16_t niov;			/* elements left in iov, the first trimmed */
	uint16_t iov0;			/* index of the first element left */
	uint8_t opcode;			/* enum ibv_wc_opcode */
	uint8_t status;			/* status if the connection fails */
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
	bool closed;			/* drained: posts are refused */
	/* Read without the lock: */
	_Atomic bool blocked;		/* the socket is full; POLLOUT is needed */
	_Atomic int error;		/* errno of a write, for the poll to fail with */
	_Atomic uint32_t ndone;		/* done_tail - done_head */
	_Atomic int armed;		/* events of fab_arm(); 0: no thread sleeps */
};

/* ---- receive side: tcp-rx.c owns it ---- */

struct tcp_rqe {
	uint64_t wr_id;
	int num_sge;
};

struct tcp_rx {
	pthread_mutex_t lock;
	uint8_t *buf;			/* staging */
	uint32_t head, tail;		/* unparsed bytes in @buf */
	struct tcp_frame frame;		/* the current frame, if @in_payload */
	bool in_payload;
	bool readable;			/* the socket may have bytes: recv is worth a call */
	bool more;			/* the last poll stopped early */
	uint32_t left;			/* payload bytes not yet placed */
	uint8_t *dst;			/* place of the next payload byte */
	uint32_t dst_left;		/* contiguous room at @dst */
	const struct ibv_sge *sge;	/* rest of the receive's list behind @dst */
	struct tcp_key *key;		/* held while placing a write, else NULL */

	pthread_mutex_t post_lock;
	uint32_t depth, mask;
	struct tcp_rqe *ring;		/* [mask + 1] */
	struct ibv_sge *sges;		/* [mask + 1][FAB_RECV_SGE_MAX]; NULL: no receive had any */
	_Atomic uint32_t rq_head, rq_tail;
	bool closed;			/* post_lock */
};

/* The size of a ring for @depth elements: a power of 2, so positions need no division. */
static inline uint32_t tcp_ring_size(uint32_t depth)
{
	uint32_t n = 1;

	while (n < depth)
		n *= 2;
	return n;
}

/* ---- connection ---- */

/* The table is in tcp-hs.c. */
enum tcp_state {
	TCP_IDLE,			/* created, perhaps resolved */

	/* active */
	TCP_CONNECTING,			/* connect() in progress */
	TCP_SECURING,			/* the handshake of TLS goes on */
	TCP_ANSWERED_PLAIN,		/* the peer answers our hello of TLS in plain */
	TCP_WAIT_REPLY,			/* CONNECT sent, over TLS or in plain */

	/* passive, and no CONNECT yet */
	TCP_TAKEN,			/* an accepted socket: nothing was read */
	TCP_TAKES_TLS,			/* the handshake of TLS goes on */
	TCP_REFUSES_HELLO,		/* TLS is off here: the begin of a hello is read */
	TCP_SKIPS_HELLO,		/* the rest of the hello is read */
	TCP_WAIT_PLAIN,			/* its refusal is sent: a CONNECT in plain may come */
	TCP_REFUSES_PLAIN,		/* TLS is required here: a CONNECT in plain is read */
	TCP_WAIT_CONNECT,		/* over TLS or in plain */

	TCP_REQUESTED,			/* passive: CONNECT_REQUEST reported */
	TCP_UP,
	TCP_DEAD,			/* active: rejected, unreachable */
	TCP_NSTATES,
};

enum tcp_event {
	TCP_EV_CONNECT,			/* connect() has begun */
	TCP_EV_ACCEPTED,		/* the socket, of a listener */
	TCP_EV_READY,			/* the socket, for what the state waits for */
	TCP_EV_TLS,			/* TLS is wanted here, or a hello has come */
	TCP_EV_NO_TLS,			/* a hello has come, and TLS is off here */
	TCP_EV_HELLO,			/* and its begin is right */
	TCP_EV_PLAIN,			/* go on in plain */
	TCP_EV_NO_PLAIN,		/* the peer begins in plain, and TLS is required here */
	TCP_EV_ANSWERED,		/* our hello, in plain */
	TCP_EV_SECURED,			/* the handshake of TLS is done */
	TCP_EV_REQUEST,			/* CONNECT has come */
	TCP_EV_UP,			/* ACCEPT has come, or is sent */
	TCP_EV_END,			/* active: without a connection */
	TCP_NEVENTS,
};

/* A source of the epoll; epoll_event.data points to a tcp_source. */
struct tcp_source {
	void (*ready)(struct tcp_source *src, uint32_t events);
};

struct tcp_conn {
	struct fab_conn base;
	int fd;
	struct tcp_tls *tls;		/* NULL: plain; constant from UP on */
	atomic_uint state;		/* enum tcp_state; UP is final but for failure */
	struct tcp_pd *pd;		/* set by fab_create_qp() */
	struct list pd_link;
	bool drained;			/* polling thread */
	uint64_t id;			/* never used again; not 0 */
	uint32_t qp_num;

	struct tcp_tx tx;
	struct tcp_rx rx;

	/* Under cm->lock: set-up. */
	struct tcp_source source;
	struct tcp_step *step;		/* of TLS's handshake (tcp-cm.h); NULL: none, or over */
	struct tcp_listener *listener;	/* passive, until CONNECT_REQUEST was taken */
	struct list hs_link;		/* cm->handshakes */
	struct unproven_place place;	/* of an unproven peer, in cm->unproven */
	uint64_t deadline_ms;
	struct list ev_link;		/* cm->events */
	enum fab_event_type ev_type;
	int ev_status;
	uint8_t connect_data[FAB_CONNECT_DATA_MAX];	/* of fab_connect(), until sent */
	uint32_t connect_len;
	uint32_t hs_skip;		/* bytes of a refused hello of TLS still to be read */
	uint32_t hs_len;		/* bytes received in hs_buf */
	uint8_t hs_buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	uint32_t pdata_len;		/* private data received, in hs_buf behind the header */
};

/* The tcp_conn around @conn. */
static inline struct tcp_conn *tcp_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct tcp_conn, base);
}

/* The state of @c now, and all that was written before.  Any thread. */
static inline enum tcp_state tcp_conn_state(const struct tcp_conn *c)
{
	return (enum tcp_state)atomic_load_explicit(&c->state, memory_order_acquire);
}

/* True if @c has failed, or is failing.  Any thread. */
static inline bool tcp_conn_failed(const struct tcp_conn *c)
{
	return atomic_load_explicit(&c->base.cause_state, memory_order_acquire) != 0;
}

/* Make a connection around @fd (or -1) for @cm.  Returns 0 or -ENOMEM. */
int tcp_conn_new(struct fab_cm *cm, int fd, struct tcp_conn **out);
/* Close and free @c, which has left its cm (tcp_cm_forget()) and its pd. */
void tcp_conn_free(struct tcp_conn *c);

/* Fail @c with the cause in words, unless @c has failed already.  Tells the peer @status (enum
 * ibv_wc_status, 0: none) and hangs up.  Takes tx->lock. */
void tcp_conn_fail(struct tcp_conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* tcp_conn_fail() for a caller that holds tx->lock. */
void tcp_conn_fail_tx_locked(struct tcp_conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Write the cause of a connection that is not up; no peer is told. */
void tcp_conn_set_cause(struct tcp_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* True if the cause is written and the peer told.  Until then a thread may still be failing @c. */
static inline bool tcp_conn_failure_told(const struct tcp_conn *c)
{
	return atomic_load_explicit(&c->base.cause_state, memory_order_acquire) == 2;
}

/* ---- the queues of a connection, as fabric.h has them ----
 *
 * The send side turns work requests into frames (tcp-tx.c); the receive side turns a byte stream
 * into placed data and completions (tcp-rx.c).  Any thread posts; the polling thread calls the
 * rest.  tcp.c drives both. */

#define TCP_QP_MAX_WR 32768u
#define TCP_QP_MAX_SGE 16u

/* ---- sending ---- */

/* Allocate the send ring.  -ENOMEM: call tcp_tx_fini() all the same. */
int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
/* Free the send ring. */
void tcp_tx_fini(struct tcp_conn *c);
/* Bytes that tcp_tx_init() allocates. */
size_t tcp_tx_memory(const struct fab_qp_attr *attr);

/* Post a chain, and write as much as the socket takes. */
int tcp_tx_post(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* True if requests wait to be written. */
bool tcp_tx_left(const struct fab_conn *conn);
/* True if no request waits to be written, and no completion to be polled. */
static inline bool tcp_tx_idle(const struct tcp_conn *c)
{
	return !atomic_load_explicit(&c->tx.blocked, memory_order_relaxed) &&
	       !atomic_load_explicit(&c->tx.ndone, memory_order_relaxed);
}
/* Write waiting requests, and take up to @n completions. */
int tcp_tx_poll(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: take completions not yet taken, then all other requests as flushed. */
int tcp_tx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Refuse further posts, if no request is left to flush.  Returns false if a request is left. */
bool tcp_tx_close(struct tcp_conn *c);

/* ---- receiving ---- */

/* Allocate staging and the receive ring.  -ENOMEM: call tcp_rx_fini() all the same. */
int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr);
/* Free staging and ring, and drop a placement in progress. */
void tcp_rx_fini(struct tcp_conn *c);
/* Bytes that tcp_rx_init() allocates. */
size_t tcp_rx_memory(const struct fab_qp_attr *attr);

/* Post receives.  A receive that cannot be taken fails the connection. */
int tcp_rx_post(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* Read and parse; returns up to @n completions.  After a failure tcp_conn_failed() is true.
 * rx->lock held. */
int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* After a failure: take up to @n receives as flushed. */
int tcp_rx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n);
/* Refuse further receives, if no receive is left to flush.  Returns false if a receive is left. */
bool tcp_rx_close(struct tcp_conn *c);

#endif
