/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive side: a byte stream to placed data and completions.  The polling thread runs the
 * machine under rx->lock; posts fill the ring of receives under rx->post_lock.
 *
 * The happy path: rx_fill() reads into staging; rx_header() checks a frame, and finds its place:
 * rx_start_write() by key and range, rx_start_send() in the oldest posted receive; rx_parse()
 * copies the staged payload there, and rx_fill() reads the rest straight to its place;
 * rx_complete() consumes the receive and writes the completion.
 *
 * Possible failures: a mistake of the peer fails the connection with the reason, before any byte of
 * it is placed; a failed connection flushes the ring, and ends when tcp_rx_close() finds no receive
 * left. */
#include <assert.h>
#include <errno.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cleanup.h"
#include "tcp-conn.h"
#include "tcp-key.h"
#include "tcp-tls.h"

#define RX_STAGING (32u << 10)
/* Another large payload mostly follows a large payload: stage little more than its header, so that
 * the payload is read to its place without a copy. */
#define RX_LARGE (16u << 10)
#define RX_AHEAD 512u
#define RX_POLL_BYTES (512u << 10)	/* of a fab_poll(), for fairness among connections */

size_t tcp_rx_memory(const struct fab_qp_attr *attr)
{
	const struct tcp_rx *rx = NULL;

	return RX_STAGING + (size_t)tcp_ring_size(attr->max_recv_wr) *
			    (sizeof(*rx->ring) + FAB_RECV_SGE_MAX * sizeof(*rx->sges));
}

int tcp_rx_init(struct tcp_conn *c, const struct fab_qp_attr *attr)
{
	struct tcp_rx *rx = &c->rx;
	uint32_t n = tcp_ring_size(attr->max_recv_wr);

	rx->depth = attr->max_recv_wr;
	rx->mask = n - 1;
	rx->readable = true;
	rx->buf = malloc(RX_STAGING);
	/* As the send ring, written before read.  Lists: rq_push(). */
	rx->ring = malloc(n * sizeof(*rx->ring));
	return rx->buf && rx->ring ? 0 : -ENOMEM;
}

void tcp_rx_fini(struct tcp_conn *c)
{
	tcp_key_drop(c, NULL);
	free(c->rx.buf);
	free(c->rx.ring);
	free(c->rx.sges);
}

/* ---- the ring of posted receives ---- */

/* The oldest posted receive, which stays until rq_pop(), or NULL.  rx->lock held, for both. */
static const struct tcp_rqe *rq_first(struct tcp_rx *rx, const struct ibv_sge **sges)
{
	uint32_t head = atomic_load_explicit(&rx->rq_head, memory_order_relaxed);
	const struct tcp_rqe *rqe = &rx->ring[head & rx->mask];

	if (head == atomic_load_explicit(&rx->rq_tail, memory_order_acquire))
		return NULL;
	*sges = rqe->num_sge ? &rx->sges[(size_t)(head & rx->mask) * FAB_RECV_SGE_MAX] : NULL;
	return rqe;
}

static void rq_pop(struct tcp_rx *rx)
{
	uint32_t head = atomic_load_explicit(&rx->rq_head, memory_order_relaxed);

	atomic_store_explicit(&rx->rq_head, head + 1, memory_order_release);
}

static const char *rq_push(struct tcp_conn *c, const struct ibv_recv_wr *wr, int *err)
{
	struct tcp_rx *rx = &c->rx;
	uint32_t tail = atomic_load_explicit(&rx->rq_tail, memory_order_relaxed);
	struct tcp_rqe *rqe = &rx->ring[tail & rx->mask];

	*err = -ENOMEM;
	if (tail - atomic_load_explicit(&rx->rq_head, memory_order_acquire) == rx->depth)
		return "receive queue overflow";
	/* Most connections have empty receives alone, and need no room for lists. */
	if (wr->num_sge && !rx->sges) {
		rx->sges = malloc(((size_t)rx->mask + 1) * FAB_RECV_SGE_MAX * sizeof(*rx->sges));
		if (!rx->sges)
			return "no memory for the lists of receives";
	}
	*err = -EINVAL;
	for (int i = 0; i < wr->num_sge; i++) {
		struct ibv_sge *sge =
			&rx->sges[(size_t)(tail & rx->mask) * FAB_RECV_SGE_MAX + (unsigned)i];

		*sge = wr->sg_list[i];
		if (sge->length &&
		    !tcp_key_local_ok(c->pd, &wr->sg_list[i], IBV_ACCESS_LOCAL_WRITE, &sge->addr))
			return "receive with a local key that does not cover its element";
	}
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	atomic_store_explicit(&rx->rq_tail, tail + 1, memory_order_release);
	return NULL;
}

int tcp_rx_post(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct tcp_conn *c = tcp_conn(conn);
	const char *why = NULL;
	int rc = -ENOTCONN;

	if (!c->pd)
		return -EINVAL;
	pthread_mutex_lock(&c->rx.post_lock);
	if (!c->rx.closed) {
		for (rc = 0; wr && !why; wr = wr->next)
			why = rq_push(c, wr, &rc);
		if (!why)
			rc = 0;
	}
	pthread_mutex_unlock(&c->rx.post_lock);
	if (why)
		tcp_conn_fail(c, 0, "%s", why);
	return rc;
}

/* ---- frames ---- */

/* Fail the connection, because the peer broke a rule.  A request that would have consumed a receive
 * completes that receive with @status, as on a NIC.  Returns the completions written, 0 or 1. */
static int rx_violation(struct tcp_conn *c, struct ibv_wc *wc, enum ibv_wc_status status,
			const char *what)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_frame *f = &rx->frame;
	const struct ibv_sge *sges;
	const struct tcp_rqe *rqe = NULL;

	tcp_conn_fail(c, status, "%s: key 0x%x range 0x%" PRIx64 "+%u", what, f->rkey, f->addr,
		      f->length);
	if (f->op != TCP_FRAME_RDMA_WRITE)
		rqe = rq_first(rx, &sges);
	if (!rqe)
		return 0;
	*wc = (struct ibv_wc){ .wr_id = rqe->wr_id, .status = status, .qp_num = c->qp_num };
	rq_pop(rx);
	return 1;
}

/* The message of rx->frame is complete.  Returns the completions written to @wc, 0 or 1. */
static int rx_complete(struct tcp_conn *c, struct ibv_wc *wc)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_frame *f = &rx->frame;
	const struct tcp_rqe *rqe;
	const struct ibv_sge *sges;
	const char *why;
	char what[80];

	if (rx->key) {
		tcp_key_put(rx->key);
		rx->key = NULL;
	}
	rx->in_payload = false;
	if (f->op == TCP_FRAME_RDMA_WRITE)
		return 0;
	rqe = rq_first(rx, &sges);
	if (!rqe) {
		tcp_conn_fail(c, IBV_WC_RNR_RETRY_EXC_ERR,
			      "an immediate met no posted receive");
		return 0;
	}
	/* No placement runs under the key: its connection, @c, is between two messages. */
	if (f->op == TCP_FRAME_SEND_WITH_INV &&
	    (why = tcp_key_invalidate(c, f->rkey, &(struct tcp_key *){ NULL }))) {
		snprintf(what, sizeof(what), "remote invalidate of %s", why);
		return rx_violation(c, wc, IBV_WC_REM_INV_REQ_ERR, what);
	}
	*wc = (struct ibv_wc){ .wr_id = rqe->wr_id, .status = IBV_WC_SUCCESS,
			       .opcode = IBV_WC_RECV, .byte_len = f->length,
			       .qp_num = c->qp_num };
	if (f->op == TCP_FRAME_RDMA_WRITE_WITH_IMM)
		wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	if (f->op == TCP_FRAME_SEND_WITH_INV) {
		wc->wc_flags = IBV_WC_WITH_INV;
		wc->invalidated_rkey = f->rkey;
	} else if (f->op != TCP_FRAME_SEND) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = f->imm;
	}
	rq_pop(rx);
	return 1;
}

static int rx_start_write(struct tcp_conn *c, struct ibv_wc *wc)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_frame *f = &rx->frame;
	const char *why;
	char what[64];

	if (f->length == 0)
		return rx_complete(c, wc);
	rx->key = tcp_key_get(c, f->rkey, f->addr, f->length, &why);
	if (!rx->key) {
		snprintf(what, sizeof(what), "remote access error: %s", why);
		return rx_violation(c, wc, IBV_WC_REM_ACCESS_ERR, what);
	}
	rx->dst = (uint8_t *)(uintptr_t)(f->addr + atomic_load_explicit(&rx->key->shift,
									memory_order_relaxed));
	rx->dst_left = rx->left = f->length;
	rx->in_payload = true;
	return 0;
}

static int rx_start_send(struct tcp_conn *c, struct ibv_wc *wc)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_frame *f = &rx->frame;
	const struct ibv_sge *sges;
	const struct tcp_rqe *rqe = rq_first(rx, &sges);
	uint64_t room = 0;

	if (!rqe) {
		tcp_conn_fail(c, IBV_WC_RNR_RETRY_EXC_ERR, "a send met no posted receive");
		return 0;
	}
	if (f->length == 0)
		return rx_complete(c, wc);
	for (int i = 0; i < rqe->num_sge; i++)
		room += sges[i].length;
	if (f->length > room)
		return rx_violation(c, wc, IBV_WC_LOC_LEN_ERR, "a send is longer than its receive");
	rx->sge = sges;
	rx->dst_left = 0;
	rx->left = f->length;
	rx->in_payload = true;
	return 0;
}

/* Fail the connection with the @status of the peer's DISCONNECT in words. */
static void rx_disconnected(struct tcp_conn *c, uint32_t status)
{
	static const char *const reasons[] = {
		[IBV_WC_LOC_LEN_ERR] = ": a send was longer than its receive",
		[IBV_WC_BAD_RESP_ERR] = ": bad frame",
		[IBV_WC_REM_INV_REQ_ERR] = ": invalidate of a key that is no bound window",
		[IBV_WC_REM_ACCESS_ERR] = ": remote access error",
		[IBV_WC_RNR_RETRY_EXC_ERR] = ": no receive was posted",
	};
	const char *reason = status < ARRAY_SIZE(reasons) ? reasons[status] : NULL;

	if (status == IBV_WC_SUCCESS)
		tcp_conn_fail(c, 0, "peer disconnected");
	else
		tcp_conn_fail(c, 0, "peer failed the connection%s", reason ? reason : "");
}

/* Begin the frame whose header is staged.  Returns the completions written to @wc, 0 or 1. */
static int rx_header(struct tcp_conn *c, struct ibv_wc *wc)
{
	struct tcp_rx *rx = &c->rx;
	const char *why = tcp_frame_decode(rx->buf + rx->head, &rx->frame);

	rx->head += TCP_FRAME_HDR_LEN;
	if (why) {
		tcp_conn_fail(c, IBV_WC_BAD_RESP_ERR, "bad frame: %s (opcode %u, length %u)", why,
			      rx->frame.op, rx->frame.length);
		return 0;
	}
	switch (rx->frame.op) {
	case TCP_FRAME_RDMA_WRITE:
	case TCP_FRAME_RDMA_WRITE_WITH_IMM:
		return rx_start_write(c, wc);
	case TCP_FRAME_SEND:
	case TCP_FRAME_SEND_WITH_IMM:
	case TCP_FRAME_SEND_WITH_INV:
		return rx_start_send(c, wc);
	case TCP_FRAME_DISCONNECT:
		rx_disconnected(c, be32toh(rx->frame.imm));
		return 0;
	default:
		tcp_conn_fail(c, IBV_WC_BAD_RESP_ERR, "bad frame: handshake opcode %u after setup",
			      rx->frame.op);
		return 0;
	}
}

/* Set rx->dst to the place of the next payload byte; a SEND moves along the receive's list. */
static void rx_next_dst(struct tcp_rx *rx)
{
	while (rx->dst_left == 0) {
		rx->dst = (uint8_t *)(uintptr_t)rx->sge->addr;
		rx->dst_left = MIN(rx->sge->length, rx->left);
		rx->sge++;
	}
}

/* Count @n placed bytes of payload. */
static void rx_placed(struct tcp_rx *rx, uint32_t n)
{
	rx->dst += n;
	rx->dst_left -= n;
	rx->left -= n;
}

/* Consume staged bytes, until no more are staged, @n completions are written or the connection
 * fails. */
static int rx_parse(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_rx *rx = &c->rx;
	int got = 0;
	uint32_t take;

	while (got < n && !tcp_conn_failed(c)) {
		if (!rx->in_payload) {
			if (rx->tail - rx->head < TCP_FRAME_HDR_LEN)
				break;
			got += rx_header(c, wc + got);
			continue;
		}
		if (rx->left == 0) {
			got += rx_complete(c, wc + got);
			continue;
		}
		rx_next_dst(rx);
		take = MIN(rx->dst_left, rx->tail - rx->head);
		if (take == 0)
			break;
		memcpy(rx->dst, rx->buf + rx->head, take);
		rx->head += take;
		rx_placed(rx, take);
	}
	return got;
}

/* Fail the connection at the end of the stream.  A failed write has consumed the socket's error,
 * and a read then sees only the end. */
static void rx_end_of_stream(struct tcp_conn *c, ssize_t n)
{
	const struct tcp_rx *rx = &c->rx;
	int err = n < 0 ? errno : atomic_load(&c->tx.error);

	if (n < 0 && *tcp_stream_why(c))
		tcp_conn_fail(c, 0, "%s", tcp_stream_why(c));
	else if (err && err != EPIPE)
		tcp_conn_fail(c, 0, "%s", strerror(err));
	else if (rx->in_payload || rx->head != rx->tail)
		tcp_conn_fail(c, 0, "peer closed in the middle of a frame");
	else
		tcp_conn_fail(c, 0, "peer closed");
}

/* Read once: the missing payload straight to its place, the bytes behind into staging.  Returns the
 * bytes read; 0 without bytes or at the end of the stream. */
static size_t rx_fill(struct tcp_conn *c)
{
	struct tcp_rx *rx = &c->rx;
	struct iovec iov[2];
	unsigned niov = 0;
	size_t want, room;
	ssize_t n;
	uint32_t direct;

	if (rx->head && rx->head != rx->tail)
		memmove(rx->buf, rx->buf + rx->head, rx->tail - rx->head);
	rx->tail -= rx->head;
	rx->head = 0;
	if (rx->in_payload) {
		assert(rx->tail == 0);
		iov[niov++] = (struct iovec){ rx->dst, rx->dst_left };
	}
	room = rx->in_payload && rx->frame.length >= RX_LARGE ? RX_AHEAD : RX_STAGING - rx->tail;
	iov[niov++] = (struct iovec){ rx->buf + rx->tail, room };
	want = iov[0].iov_len + (niov == 2 ? iov[1].iov_len : 0);
	do {
		n = tcp_stream_recv(c, iov, niov);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)want)
		rx->readable = false;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {
		rx_end_of_stream(c, n);
		return 0;
	}
	direct = rx->in_payload ? (uint32_t)MIN((size_t)n, (size_t)rx->dst_left) : 0;
	if (direct)
		rx_placed(rx, direct);
	rx->tail += (uint32_t)n - direct;
	return (size_t)n;
}

int tcp_rx_run(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_rx *rx = &c->rx;
	size_t bytes = 0;
	int got = 0;

	for (;;) {
		got += rx_parse(c, wc + got, n - got);
		if (got == n || !rx->readable || bytes >= RX_POLL_BYTES || tcp_conn_failed(c))
			break;
		bytes += rx_fill(c);
	}
	rx->more = rx->readable || (got == n && rx->head != rx->tail);
	return got;
}

/* ---- the end ---- */

int tcp_rx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_rx *rx = &c->rx;
	const struct tcp_rqe *rqe;
	const struct ibv_sge *sges;
	int got = 0;

	LOCK_SCOPE(&rx->lock);
	tcp_key_drop(c, NULL);
	while (got < n && (rqe = rq_first(rx, &sges))) {
		wc[got++] = (struct ibv_wc){ .wr_id = rqe->wr_id, .status = IBV_WC_WR_FLUSH_ERR,
					     .qp_num = c->qp_num };
		rq_pop(rx);
	}
	return got;
}

bool tcp_rx_close(struct tcp_conn *c)
{
	struct tcp_rx *rx = &c->rx;

	LOCK_SCOPE(&rx->post_lock);
	if (atomic_load(&rx->rq_head) == atomic_load(&rx->rq_tail))
		rx->closed = true;
	return rx->closed;
}
