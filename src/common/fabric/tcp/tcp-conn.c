/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection as a whole: its life, its failure, and the poll that drives both directions.
 *
 * Owns the socket.  Posts come from any thread, the poll from one at a time.  It ends in one way:
 * something fails it (the first cause is kept), the socket is shut down so that a sleeper wakes up,
 * the poller flushes what is posted and says -ENOTCONN from then on.  Errors of the socket are
 * causes, never return values of a post. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp-priv.h"

static struct tcp_conn *to_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct tcp_conn, base);
}

int tcp_conn_new(struct fab_cm *cm, int fd, struct tcp_conn **out)
{
	static _Atomic uint64_t next_id = 1;
	struct tcp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->base.ops = &fab_tcp;
	c->base.cm = cm;
	c->fd = fd;
	c->id = atomic_fetch_add(&next_id, 1);
	c->qp_num = (uint32_t)c->id & 0xffffff;
	list_init(&c->pd_link);
	list_init(&c->hs_link);
	list_init(&c->ev_link);
	pthread_mutex_init(&c->tx.lock, NULL);
	pthread_mutex_init(&c->rx.lock, NULL);
	pthread_mutex_init(&c->rx.post_lock, NULL);
	*out = c;
	return 0;
}

void tcp_conn_free(struct tcp_conn *c)
{
	if (c->pd) {
		pthread_mutex_lock(&c->pd->lock);
		list_del(&c->pd_link);
		pthread_mutex_unlock(&c->pd->lock);
		tcp_rx_fini(c);
		tcp_tx_fini(c);
	}
	if (c->fd >= 0)
		close(c->fd);
	pthread_mutex_destroy(&c->tx.lock);
	pthread_mutex_destroy(&c->rx.lock);
	pthread_mutex_destroy(&c->rx.post_lock);
	free(c);
}

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
	struct tcp_conn *c = to_conn(conn);

	tcp_cm_forget(c);
	tcp_conn_free(c);
}

static const struct fab_device_attr device = {
	.max_qp_wr = TCP_MAX_QP_WR, .max_sge = TCP_MAX_SGE, .local_dma_lkey = true, .rereg_mr = true,
	.mw_type_1 = true, .mw_type_2b = true, .max_mw = TCP_MAX_MW,
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

static int create_qp(struct fab_conn *conn, struct fab_pd *fpd, const struct fab_qp_attr *attr)
{
	struct tcp_conn *c = to_conn(conn);
	struct tcp_pd *pd = container_of(fpd, struct tcp_pd, base);
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
	c->pd = pd;
	pthread_mutex_lock(&pd->lock);
	list_add_tail(&pd->conns, &c->pd_link);
	pthread_mutex_unlock(&pd->lock);
	return 0;
}

static size_t qp_memory(const struct fab_qp_attr *attr)
{
	return sizeof(struct tcp_conn) + tcp_tx_memory(attr) + tcp_rx_memory(attr);
}

/* ---- failure ---- */

/* Returns true if this is the first cause; the caller then says publish(). */
__attribute__((format(printf, 2, 0)))
static bool claim(struct tcp_conn *c, const char *fmt, va_list ap)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&c->failed, &none, 1))
		return false;
	vsnprintf(c->cause, sizeof(c->cause), fmt, ap);
	return true;
}

static void publish(struct tcp_conn *c)
{
	atomic_store_explicit(&c->failed, 2, memory_order_release);
}

void tcp_conn_set_cause(struct tcp_conn *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (claim(c, fmt, ap))
		publish(c);
	va_end(ap);
}

/* tx->lock held.
 * ORDER: the poller says drained only after it saw the publication and then had tx->lock, so a
 * connection is not destroyed under the one that fails it. */
static void hang_up(struct tcp_conn *c, int status)
{
	tcp_tx_goodbye(c, status);
	shutdown(c->fd, SHUT_RDWR);
	publish(c);
}

void tcp_conn_fail_tx_locked(struct tcp_conn *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (claim(c, fmt, ap))
		hang_up(c, status);
	va_end(ap);
}

void tcp_conn_fail(struct tcp_conn *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (claim(c, fmt, ap)) {
		pthread_mutex_lock(&c->tx.lock);
		hang_up(c, status);
		pthread_mutex_unlock(&c->tx.lock);
	}
	va_end(ap);
}

static void disconnect(struct fab_conn *conn, const char *cause)
{
	struct tcp_conn *c = to_conn(conn);

	if (atomic_load_explicit(&c->state, memory_order_acquire) == TCP_UP)
		tcp_conn_fail(c, 0, "%s", cause);
	else
		tcp_conn_set_cause(c, "%s", cause);
}

static const char *conn_cause(const struct fab_conn *conn)
{
	const struct tcp_conn *c = to_conn(conn);

	return atomic_load_explicit(&c->failed, memory_order_acquire) == 2 ? c->cause : "";
}

/* ---- poll ---- */

/* RACE: a post on another thread may slip in until both rings are closed; it is flushed by the next
 * round.  A closed send ring alone is harmless: posts to a failed connection may be refused. */
static int drain(struct tcp_conn *c, struct ibv_wc *wc, int n, int got)
{
	got += tcp_tx_flush(c, wc + got, n - got);
	got += tcp_rq_flush(c, wc + got, n - got);
	if (got)
		return got;
	if (n > 0 && atomic_load_explicit(&c->failed, memory_order_acquire) == 2 &&
	    tcp_tx_close(c) && tcp_rq_close(c)) {
		c->drained = true;
		return -ENOTCONN;
	}
	return 0;
}

static int poll_conn(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct tcp_conn *c = to_conn(conn);
	struct tcp_tx *tx = &c->tx;
	int got, err;

	if (c->drained)
		return -ENOTCONN;
	/* Until then the bytes of the socket are the handshake's. */
	if (atomic_load_explicit(&c->state, memory_order_acquire) != TCP_UP)
		return tcp_conn_failed(c) ? drain(c, wc, n, 0) : 0;
	if (atomic_load_explicit(&tx->armed, memory_order_relaxed))
		atomic_store(&tx->armed, 0);
	got = tcp_tx_poll(c, wc, n);
	err = atomic_load_explicit(&tx->error, memory_order_relaxed);
	if (!tcp_conn_failed(c)) {
		pthread_mutex_lock(&c->rx.lock);
		if (err)
			c->rx.readable = true;
		got += tcp_rx_run(c, wc + got, n - got);
		pthread_mutex_unlock(&c->rx.lock);
		/* What the peer still had to say may name the cause better than our write error. */
		if (err && !c->rx.more)
			tcp_conn_fail(c, 0, "%s", strerror(err));
	}
	if (__builtin_expect(tcp_conn_failed(c), 0))
		return drain(c, wc, n, got);
	return got;
}

static int conn_fd(const struct fab_conn *conn)
{
	return to_conn(conn)->fd;
}

/* RACE: a post that fills the socket after we looked sees armed (need_rearm), one before is seen
 * here; both sides use sequentially consistent accesses. */
static int arm(struct fab_conn *conn, short *events)
{
	struct tcp_conn *c = to_conn(conn);
	struct tcp_tx *tx = &c->tx;
	short ev = POLLIN;

	if (atomic_load(&tx->blocked))
		ev |= POLLOUT;
	atomic_store(&tx->armed, ev);
	if (c->rx.more || atomic_load(&tx->ndone) || atomic_load(&tx->error) ||
	    (atomic_load(&tx->blocked) && !(ev & POLLOUT)) || tcp_conn_failed(c)) {
		atomic_store(&tx->armed, 0);
		return 1;
	}
	c->rx.readable = true;
	*events = ev;
	return 0;
}

static int need_rearm(const struct fab_conn *conn)
{
	const struct tcp_tx *tx = &to_conn(conn)->tx;
	int armed = atomic_load(&tx->armed), need = 0;

	if (!armed)
		return 0;
	if ((atomic_load(&tx->blocked) && !(armed & POLLOUT)) || atomic_load(&tx->error))
		need |= FAB_REARM_EVENTS;
	if (atomic_load(&tx->ndone))
		need |= FAB_REARM_DONE;
	return need;
}

const struct fab_provider fab_tcp = {
	.name = "tcp",
	.cm_create = tcp_cm_create,
	.cm_destroy = tcp_cm_destroy,
	.cm_fd = tcp_cm_fd,
	.cm_get_event = tcp_cm_get_event,
	.listen = tcp_listen,
	.listener_query_device = listener_query_device,
	.listener_destroy = tcp_listener_destroy,
	.conn_create = conn_create,
	.conn_destroy = conn_destroy,
	.resolve = tcp_resolve,
	.query_device = query_device,
	.create_qp = create_qp,
	.qp_memory = qp_memory,
	.connect = tcp_connect,
	.accept = tcp_accept,
	.reject = tcp_reject,
	.pd_create = tcp_pd_create,
	.pd_destroy = tcp_pd_destroy,
	.pd_local_dma_lkey = tcp_pd_local_dma_lkey,
	.reg_mr = tcp_reg_mr,
	.reg_mr_iova = tcp_reg_mr_iova,
	.rereg_mr = tcp_rereg_mr,
	.rereg_mr_iova = tcp_rereg_mr_iova,
	.dereg_mr = tcp_dereg_mr,
	.mw_zero_based = true,
	.alloc_mw = tcp_alloc_mw,
	.dealloc_mw = tcp_dealloc_mw,
	.post_send = tcp_tx_post,
	.post_recv = tcp_rq_post,
	.poll = poll_conn,
	.conn_fd = conn_fd,
	.arm = arm,
	.need_rearm = need_rearm,
	.disconnect = disconnect,
	.conn_cause = conn_cause,
};
