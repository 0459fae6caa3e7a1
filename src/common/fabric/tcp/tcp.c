/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp provider: its table, and the queues of a connection; tcp-conn.h says how tcp is built.
 *
 * The poll drives both directions, and drains the queues when the connection has failed.  A single
 * thread at a time polls and arms; any thread asks whether to arm again. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "cleanup.h"
#include "tcp-cm.h"
#include "tcp-conn.h"
#include "tcp-key.h"
#include "tcp-tls.h"

/* ---- the queues of a connection ---- */

static int qp_create(struct fab_conn *conn, struct fab_pd *fpd, const struct fab_qp_attr *attr)
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

static size_t qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr)
{
	return sizeof(struct tcp_conn) + tcp_tx_memory(attr) + tcp_rx_memory(attr) +
	       (tcp_conn(conn)->tls ? tcp_tls_memory() : 0);
}

static void qp_fini(struct tcp_conn *c)
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

static int qp_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
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

/* RACE: a post that fills the socket after qp_arm() has read @blocked sees @armed (need_rearm);
 * an earlier post is seen here.  Both sides use sequentially consistent accesses.
 *
 * RACE: the next poll reads the socket, whatever this returns.  Bytes may come in front of that
 * poll, and a caller that takes edges has had the edge then. */
static int qp_arm(struct fab_conn *conn, short *events)
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

static int qp_need_rearm(const struct fab_conn *conn)
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

/* ---- connections and devices ---- */

static int conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	struct tcp_conn *c;
	int rc = tcp_conn_new(cm, -1, &c);

	if (!rc)
		*conn = &c->base;
	return rc;
}

static void conn_destroy(struct fab_conn *conn)
{
	struct tcp_conn *c = tcp_conn(conn);

	tcp_cm_forget(c);
	qp_fini(c);
	tcp_conn_free(c);
}

/* Without the frame the peer sees the connection closed, which is a refusal, too. */
static void conn_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);

	assert(tcp_conn_state(c) == TCP_REQUESTED);
	tcp_hs_send(c, TCP_FRAME_REJECT, 0, private_data, len);
	conn_destroy(conn);
}

static const struct fab_device_attr device = {
	.max_qp_wr = TCP_QP_MAX_WR, .max_sge = TCP_QP_MAX_SGE, .max_mw = TCP_KEY_MAX,
	.caps = FAB_CAP_DMA_LKEY | FAB_CAP_REREG_MR | FAB_CAP_SUSPEND_MR | FAB_CAP_MW_TYPE_1 |
		FAB_CAP_MW_TYPE_2B,
};

static int query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = device;
	return 0;
}

static int listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr)
{
	*attr = device;
	return 0;
}

static void conn_identity(const struct fab_conn *conn, struct fab_identity *id)
{
	const struct tcp_conn *c = tcp_conn(conn);

	if (c->tls)
		tcp_tls_identity(c, id);
}

static void conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu)
{
	fab_mtu_of_socket(tcp_conn(conn)->fd, mtu);
}

static bool conn_trusted(const struct fab_conn *conn)
{
	const struct tcp_conn *c = tcp_conn(conn);

	return !c->tls || tcp_tls_trusts(c);
}

static bool conn_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN])
{
	const struct tcp_conn *c = tcp_conn(conn);

	return c->tls && tcp_tls_binding(c, out);
}

static void conn_disconnect(struct fab_conn *conn, const char *cause)
{
	struct tcp_conn *c = tcp_conn(conn);

	if (tcp_conn_state(c) == TCP_UP)
		tcp_conn_fail(c, 0, "%s", cause);
	else
		tcp_conn_set_cause(c, "%s", cause);
}

const struct fab_provider fab_tcp = {
	.name = "tcp",
	.tls = true,
	.cm_create = tcp_cm_create,
	.cm_destroy = tcp_cm_destroy,
	.cm_get_event = tcp_cm_get_event,
	.listen = tcp_listen,
	.listener_query_device = listener_query_device,
	.listener_destroy = tcp_listen_destroy,
	.conn_create = conn_create,
	.conn_destroy = conn_destroy,
	.resolve = tcp_cm_resolve,
	.query_device = query_device,
	.create_qp = qp_create,
	.qp_memory = qp_memory,
	.connect = tcp_cm_connect,
	.accept = tcp_cm_accept,
	.reject = conn_reject,
	.unheard = tcp_cm_unheard,
	.identity = conn_identity,
	.mtu = conn_mtu,
	.trusted = conn_trusted,
	.binding = conn_binding,
	.pd_create = tcp_pd_create,
	.pd_destroy = tcp_pd_destroy,
	.mr_iova = true,
	.reg_mr = tcp_mr_reg,
	.rereg_mr = tcp_mr_rereg,
	.dereg_mr = tcp_mr_dereg,
	.suspend_mr = tcp_mr_suspend,
	.hold_mr = tcp_mr_hold,
	.release_mr = tcp_mr_release,
	.sends_left = tcp_tx_left,
	.mw_zero_based = true,
	.alloc_mw = tcp_mw_alloc,
	.dealloc_mw = tcp_mw_dealloc,
	.post_send = tcp_tx_post,
	.post_recv = tcp_rx_post,
	.poll = qp_poll,
	.arm = qp_arm,
	.need_rearm = qp_need_rearm,
	.disconnect = conn_disconnect,
};
