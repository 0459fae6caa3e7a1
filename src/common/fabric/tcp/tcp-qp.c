/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the queues of a connection: the poll drives both directions, and drains the queues when the
 * connection has failed.  A single thread at a time polls and arms; any thread asks whether to arm
 * again. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "cleanup.h"
#include "tcp-conn.h"
#include "tcp-key.h"
#include "tcp-tls.h"

int tcp_qp_create(struct fab_conn *conn, struct fab_pd *fpd, const struct fab_qp_attr *attr)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_pd *pd = tcp_pd(fpd);
	int rc;

	if (c->pd || c->fd < 0)
		return -EINVAL;
	rc = tcp_tx_init(c, attr);
	if (!rc)
		rc = tcp_rx_init(c, attr);
	if (rc) {
		tcp_tx_fini(c);
		tcp_rx_fini(c);
		return rc;
	}
	c->base.fd = c->fd;
	c->pd = pd;
	LOCK_SCOPE(&pd->lock);
	list_add_tail(&pd->conns, &c->pd_link);
	return 0;
}

size_t tcp_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr)
{
	return sizeof(struct tcp_conn) + tcp_tx_memory(attr) + tcp_rx_memory(attr) +
	       (tcp_conn(conn)->tls ? tcp_tls_memory() : 0);
}

void tcp_qp_fini(struct tcp_conn *c)
{
	if (!c->pd)
		return;
	pthread_mutex_lock(&c->pd->lock);
	list_del(&c->pd_link);
	pthread_mutex_unlock(&c->pd->lock);
	tcp_rx_fini(c);
	tcp_tx_fini(c);
	c->pd = NULL;
}

/* ---- poll ---- */

/* RACE: a post on another thread may slip in until both rings are closed; the next round flushes
 * such a post.  A closed send ring alone is harmless: posts to a failed connection may be
 * refused. */
static int qp_drain(struct tcp_conn *c, struct ibv_wc *wc, int n, int got)
{
	got += tcp_tx_flush(c, wc + got, n - got);
	got += tcp_rx_flush(c, wc + got, n - got);
	if (got)
		return got;
	if (n > 0 && tcp_conn_failure_told(c) &&
	    tcp_tx_close(c) && tcp_rx_close(c)) {
		c->drained = true;
		return -ENOTCONN;
	}
	return 0;
}

int tcp_qp_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_tx *tx = &c->tx;
	int got = 0, err;

	if (c->drained)
		return -ENOTCONN;
	/* Before UP the bytes of the socket belong to the handshake. */
	if (tcp_conn_state(c) != TCP_UP)
		return tcp_conn_failed(c) ? qp_drain(c, wc, n, 0) : 0;
	if (atomic_load_explicit(&tx->armed, memory_order_relaxed))
		atomic_store(&tx->armed, 0);
	if (!tcp_tx_idle(c))
		got = tcp_tx_poll(c, wc, n);
	err = atomic_load_explicit(&tx->error, memory_order_relaxed);
	if (!tcp_conn_failed(c)) {
		pthread_mutex_lock(&c->rx.lock);
		if (err)
			c->rx.readable = true;
		got += tcp_rx_run(c, wc + got, n - got);
		/* Behind a full poll nobody needs to arm: the next one reads as behind an arm. */
		if (got == n)
			c->rx.readable = true;
		pthread_mutex_unlock(&c->rx.lock);
		/* The peer's last words may name the cause better than our write error. */
		if (err && !c->rx.more)
			tcp_conn_fail(c, 0, "%s", strerror(err));
	}
	if (__builtin_expect(tcp_conn_failed(c), 0))
		return qp_drain(c, wc, n, got);
	return got;
}

/* RACE: a post that fills the socket after tcp_qp_arm() has read @blocked sees @armed (need_rearm);
 * an earlier post is seen here.  Both sides use sequentially consistent accesses.
 *
 * RACE: the next poll reads the socket, whatever this returns.  Bytes may come in front of that
 * poll, and a caller that takes edges has had the edge then. */
int tcp_qp_arm(struct fab_conn *conn, short *events)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_tx *tx = &c->tx;
	short ev = POLLIN;

	if (atomic_load(&tx->blocked))
		ev |= POLLOUT;
	atomic_store(&tx->armed, ev);
	/* Bytes, or an end, that wait in the library: behind the last frame of the handshake. */
	if (tcp_conn_state(c) == TCP_UP && tcp_stream_pending(c))
		c->rx.more = true;
	c->rx.readable = true;
	if (c->rx.more || atomic_load(&tx->ndone) || atomic_load(&tx->error) ||
	    (atomic_load(&tx->blocked) && !(ev & POLLOUT)) || tcp_conn_failed(c)) {
		atomic_store(&tx->armed, 0);
		return 1;
	}
	*events = ev;
	return 0;
}

int tcp_qp_need_rearm(const struct fab_conn *conn)
{
	const struct tcp_tx *tx = &tcp_conn(conn)->tx;
	int armed = atomic_load(&tx->armed), need = 0;

	if (!armed)
		return 0;
	if ((atomic_load(&tx->blocked) && !(armed & POLLOUT)) || atomic_load(&tx->error))
		need |= FAB_REARM_EVENTS;
	if (atomic_load(&tx->ndone))
		need |= FAB_REARM_DONE;
	return need;
}
