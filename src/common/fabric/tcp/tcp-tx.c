/* SPDX-License-Identifier: BSD-3-Clause */
/* The send side: work requests to frames.  Owns the send ring of a connection and all writes to its
 * socket, under tx->lock.
 *
 * The happy path: tcp_tx_post() carries out binds and invalidates (tcp-key.c), copies the chain
 * into the ring, and writes with a single system call; a request is done when its last byte is in
 * the socket; tcp_tx_poll() takes the completions.  If the socket was full, the poller writes the
 * rest.
 *
 * Possible failures: a request that breaks a rule fails the connection; a write error is kept in
 * tx->error, and the poller fails the connection after it has read the last bytes of the peer.
 * Then requests only flush, until tcp_tx_close() finds nothing left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cleanup.h"
#include "tcp-conn.h"
#include "tcp-key.h"
#include "tcp-tls.h"

#define TX_IOV_MAX 128

size_t tcp_tx_memory(const struct fab_qp_attr *attr)
{
	const struct tcp_tx *tx = NULL;

	return (size_t)tcp_ring_size(attr->max_send_wr) *
	       (sizeof(*tx->ring) + (1 + attr->max_send_sge) * sizeof(*tx->iov) +
		sizeof(*tx->done));
}

int tcp_tx_init(struct tcp_conn *c, const struct fab_qp_attr *attr)
{
	struct tcp_tx *tx = &c->tx;
	uint32_t n = tcp_ring_size(attr->max_send_wr);

	tx->depth = attr->max_send_wr;
	tx->mask = n - 1;
	tx->max_sge = attr->max_send_sge;
	/* Elements are written before they are read: calloc() would touch them all, and most of a
	 * deep ring is never used. */
	tx->ring = malloc(n * sizeof(*tx->ring));
	tx->iov = malloc((size_t)n * (1 + tx->max_sge) * sizeof(*tx->iov));
	tx->done = malloc(n * sizeof(*tx->done));
	return tx->ring && tx->iov && tx->done ? 0 : -ENOMEM;
}

void tcp_tx_fini(struct tcp_conn *c)
{
	free(c->tx.ring);
	free(c->tx.iov);
	free(c->tx.done);
}

static const struct tx_op {
	uint8_t frame, wc;		/* frame 0: nothing goes over the wire */
	bool imm, inv, rdma;
} tx_ops[] = {
	[IBV_WR_SEND] = { TCP_FRAME_SEND, IBV_WC_SEND, false, false, false },
	[IBV_WR_SEND_WITH_IMM] = { TCP_FRAME_SEND_WITH_IMM, IBV_WC_SEND, true, false, false },
	[IBV_WR_SEND_WITH_INV] = { TCP_FRAME_SEND_WITH_INV, IBV_WC_SEND, false, true, false },
	[IBV_WR_RDMA_WRITE] = { TCP_FRAME_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, false, true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { TCP_FRAME_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true,
					 false, true },
	[IBV_WR_LOCAL_INV] = { 0, IBV_WC_LOCAL_INV, false, false, false },
	[IBV_WR_BIND_MW] = { 0, IBV_WC_BIND_MW, false, false, false },
};

static struct iovec *tx_iov(struct tcp_tx *tx, uint32_t pos)
{
	return tx->iov + (size_t)(pos & tx->mask) * (1 + tx->max_sge);
}

/* Put header and payload of @wr into the iovecs of @sqe.  Returns NULL or the fault. */
static const char *tx_frame(struct tcp_conn *c, const struct ibv_send_wr *wr,
			    const struct tx_op *op, struct tcp_sqe *sqe)
{
	struct iovec *iov = tx_iov(&c->tx, c->tx.tail);
	struct tcp_frame f = { .op = op->frame, .imm = op->imm ? wr->imm_data : 0 };

	sqe->niov = 1;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		uint64_t at = sge->addr;

		if (sge->length == 0)
			continue;
		if (sge->lkey != TCP_DMA_LKEY && !tcp_key_local_ok(c->pd, sge, 0, &at))
			return "post with a local key that does not cover its element";
		iov[sqe->niov++] = (struct iovec){ (void *)(uintptr_t)at, sge->length };
		f.length += sge->length;
	}
	if (op->inv)
		f.rkey = wr->invalidate_rkey;
	if (op->rdma) {
		f.rkey = wr->wr.rdma.rkey;
		f.addr = wr->wr.rdma.remote_addr;
	}
	tcp_frame_encode(sqe->hdr, &f);
	iov[0] = (struct iovec){ sqe->hdr, TCP_FRAME_HDR_LEN };
	sqe->left = TCP_FRAME_HDR_LEN + (uint64_t)f.length;
	return NULL;
}

/* Copy @wr into the ring.  Returns NULL, or the fault with the errno in @err. */
static const char *tx_enqueue(struct tcp_conn *c, const struct ibv_send_wr *wr, int *err)
{
	struct tcp_tx *tx = &c->tx;
	struct tcp_sqe *sqe = &tx->ring[tx->tail & tx->mask];
	const struct tx_op *op = &tx_ops[wr->opcode];	/* fab_post_send() lets no other opcode
							 * through */
	bool signaled = wr->send_flags & IBV_SEND_SIGNALED;

	*err = -ENOMEM;
	if (tx->tail - tx->head == tx->depth || (signaled && tx->signaled == tx->depth))
		return "send queue overflow";
	*err = -EINVAL;
	if ((uint32_t)wr->num_sge > tx->max_sge)
		return "post with more elements than max_send_sge";

	*sqe = (struct tcp_sqe){ .wr_id = wr->wr_id, .opcode = op->wc, .signaled = signaled,
				 .status = IBV_WC_WR_FLUSH_ERR };
	if (op->frame) {
		const char *why = tx_frame(c, wr, op, sqe);

		if (why)
			return why;
	}
	tx->signaled += signaled;
	tx->tail++;
	return NULL;
}

static void tx_done(struct tcp_tx *tx, const struct tcp_sqe *sqe)
{
	if (!sqe->signaled)
		return;
	tx->done[tx->done_tail++ & tx->mask] = (struct tcp_scqe){ sqe->wr_id, sqe->opcode };
	atomic_store(&tx->ndone, tx->done_tail - tx->done_head);
}

/* Advance the ring by @n bytes that the socket took. */
static void tx_advance(struct tcp_tx *tx, size_t n)
{
	while (n) {
		struct tcp_sqe *sqe = &tx->ring[tx->head & tx->mask];
		struct iovec *iov = tx_iov(tx, tx->head) + sqe->iov0;

		if (n >= sqe->left) {
			n -= sqe->left;
			tx->head++;
			tx_done(tx, sqe);
			continue;
		}
		sqe->left -= n;
		while (n >= iov->iov_len) {
			n -= iov->iov_len;
			iov++;
			sqe->iov0++;
			sqe->niov--;
		}
		iov->iov_base = (char *)iov->iov_base + n;
		iov->iov_len -= n;
		n = 0;
	}
}

/* Complete requests that send nothing, when they are the oldest. */
static void tx_skip_local(struct tcp_tx *tx)
{
	while (tx->head != tx->tail && tx->ring[tx->head & tx->mask].left == 0)
		tx_done(tx, &tx->ring[tx->head++ & tx->mask]);
}

/* Gather waiting requests into @iov.  Returns the number of elements, and the bytes in @bytes. */
static unsigned tx_gather(struct tcp_tx *tx, struct iovec *iov, size_t *bytes)
{
	const struct iovec *part;
	unsigned n = 0;

	*bytes = 0;
	for (uint32_t pos = tx->head; pos != tx->tail; pos++) {
		const struct tcp_sqe *sqe = &tx->ring[pos & tx->mask];

		if (n + sqe->niov > TX_IOV_MAX)
			break;
		part = tx_iov(tx, pos) + sqe->iov0;
		for (unsigned i = 0; i < sqe->niov; i++)	/* of one or two elements */
			iov[n++] = part[i];
		*bytes += sqe->left;
	}
	return n;
}

static bool tx_can_write(const struct tcp_conn *c)
{
	return !atomic_load_explicit(&c->tx.error, memory_order_relaxed) && !tcp_conn_failed(c);
}

/* Write until the ring is empty or the socket full.  tx->lock held. */
static void tx_write(struct tcp_conn *c)
{
	struct tcp_tx *tx = &c->tx;
	struct iovec iov[TX_IOV_MAX];
	size_t bytes;
	unsigned niov;
	ssize_t n;

	for (;;) {
		tx_skip_local(tx);
		if (tx->head == tx->tail)
			break;
		niov = tx_gather(tx, iov, &bytes);
		n = tcp_stream_send(c, iov, niov);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			atomic_store(&tx->error, errno);
			return;
		}
		if (n > 0)
			tx_advance(tx, (size_t)n);
		if (n < (ssize_t)bytes) {
			atomic_store(&tx->blocked, true);
			return;
		}
	}
	/* Begin at the start again: a small part of a deep ring stays in the cache. */
	tx->head = tx->tail = 0;
	n = tcp_stream_flush(c);
	if (n < 0 && errno != EAGAIN)
		atomic_store(&tx->error, errno);
	else
		atomic_store(&tx->blocked, n < 0);
}

/* Carry out the binds and invalidates of the chain.  Returns the first request that breaks a rule,
 * with its @status and @why, or NULL.  tx->lock must not be held: a revoke may have to stop
 * placements first. */
static const struct ibv_send_wr *tx_windows(struct tcp_conn *c, const struct ibv_send_wr *wr,
					    enum ibv_wc_status *status, const char **why)
{
	for (; wr; wr = wr->next) {
		if (wr->opcode == IBV_WR_BIND_MW) {
			*status = IBV_WC_MW_BIND_ERR;
			*why = tcp_mw_bind(c, wr);
		} else if (wr->opcode == IBV_WR_LOCAL_INV) {
			*status = IBV_WC_LOC_QP_OP_ERR;
			*why = tcp_mw_invalidate(c, wr->invalidate_rkey);
		}
		if (*why)
			return wr;
	}
	return NULL;
}

int tcp_tx_post(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_tx *tx = &c->tx;
	const struct ibv_send_wr *bad = NULL;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	const char *why = NULL, *bad_why = NULL;
	int rc = 0;

	if (tcp_conn_state(c) != TCP_UP)
		return -EINVAL;
	/* On a failed connection requests only flush. */
	if (!tcp_conn_failed(c))
		bad = tx_windows(c, wr, &status, &bad_why);
	LOCK_SCOPE(&tx->lock);
	if (tx->closed)
		return -ENOTCONN;
	for (; wr && !why; wr = wr->next) {
		why = tx_enqueue(c, wr, &rc);
		if (wr == bad && !why)
			tx->ring[(tx->tail - 1) & tx->mask].status = (uint8_t)status;
	}
	if (why) {
		tcp_conn_fail_tx_locked(c, 0, "%s", why);
		return rc;
	}
	if (bad)
		tcp_conn_fail_tx_locked(c, 0, "%s of %s",
					bad->opcode == IBV_WR_BIND_MW ? "bind" : "invalidate",
					bad_why);
	if (!atomic_load_explicit(&tx->blocked, memory_order_relaxed) && tx_can_write(c))
		tx_write(c);
	return 0;
}

/* A post that does not write all that waits has found the socket full, or broken: then nothing is
 * read any more. */
bool tcp_tx_left(const struct fab_conn *conn)
{
	return atomic_load_explicit(&tcp_conn(conn)->tx.blocked, memory_order_relaxed);
}

static void tx_wc(struct tcp_conn *c, struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode,
		  enum ibv_wc_status status)
{
	*wc = (struct ibv_wc){
		.wr_id = wr_id, .status = status, .opcode = opcode, .qp_num = c->qp_num
	};
}

/* Take completions of @done.  tx->lock held. */
static int tx_reap(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_tx *tx = &c->tx;
	int got = 0;

	while (got < n && tx->done_head != tx->done_tail) {
		const struct tcp_scqe *d = &tx->done[tx->done_head++ & tx->mask];

		tx_wc(c, &wc[got++], d->wr_id, d->opcode, IBV_WC_SUCCESS);
	}
	tx->signaled -= (uint32_t)got;
	if (tx->done_head == tx->done_tail)
		tx->done_head = tx->done_tail = 0;
	atomic_store(&tx->ndone, tx->done_tail - tx->done_head);
	return got;
}

int tcp_tx_poll(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_tx *tx = &c->tx;

	LOCK_SCOPE(&tx->lock);
	if (atomic_load_explicit(&tx->blocked, memory_order_relaxed) && tx_can_write(c))
		tx_write(c);
	return tx_reap(c, wc, n);
}

int tcp_tx_flush(struct tcp_conn *c, struct ibv_wc *wc, int n)
{
	struct tcp_tx *tx = &c->tx;
	int got;

	LOCK_SCOPE(&tx->lock);
	got = tx_reap(c, wc, n);
	while (got < n && tx->head != tx->tail) {
		const struct tcp_sqe *sqe = &tx->ring[tx->head++ & tx->mask];

		tx->signaled -= sqe->signaled;
		tx_wc(c, &wc[got++], sqe->wr_id, sqe->opcode, sqe->status);
	}
	return got;
}

bool tcp_tx_close(struct tcp_conn *c)
{
	struct tcp_tx *tx = &c->tx;

	LOCK_SCOPE(&tx->lock);
	if (tx->head == tx->tail && tx->done_head == tx->done_tail)
		tx->closed = true;
	return tx->closed;
}
