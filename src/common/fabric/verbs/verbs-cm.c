/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns event channels, listeners, and the ids of connections from creation to destruction:
 * librdmacm.
 *
 * Thread of the cm, but any thread may destroy a connection.  A step of the set-up that fails at
 * once returns an error; a later failure is an event (verbs-event.c). */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "verbs-priv.h"

#define BACKLOG 256

static int epoll_add(int epoll, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

static void cm_free(struct verbs_cm *cm)
{
	struct verbs_dev *dev, *tmp;

	list_for_each_safe(dev, tmp, &cm->devs, link) {
		if (dev->id)
			rdma_destroy_id(dev->id);
		free(dev);
	}
	if (cm->fab.fd >= 0)
		close(cm->fab.fd);
	if (cm->timer_fd >= 0)
		close(cm->timer_fd);
	if (cm->channel)
		rdma_destroy_event_channel(cm->channel);
	pthread_mutex_destroy(&cm->lock);
	free(cm);
}

static int verbs_cm_create(struct fab_cm **out)
{
	struct verbs_cm *cm = calloc(1, sizeof(*cm));
	int err;

	if (!cm)
		return -ENOMEM;
	list_init(&cm->listeners);
	list_init(&cm->devs);
	pthread_mutex_init(&cm->lock, NULL);
	cm->fab.fd = cm->timer_fd = -1;
	cm->channel = rdma_create_event_channel();
	if (!cm->channel || verbs_nonblock(cm->channel->fd))
		goto err_free;
	cm->fab.fd = epoll_create1(EPOLL_CLOEXEC);
	cm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cm->fab.fd < 0 || cm->timer_fd < 0 || epoll_add(cm->fab.fd, cm->channel->fd) ||
	    epoll_add(cm->fab.fd, cm->timer_fd))
		goto err_free;
	*out = &cm->fab;
	return 0;

err_free:
	err = verbs_neg_errno();
	cm_free(cm);
	return err;
}

static void verbs_cm_destroy(struct fab_cm *fab)
{
	struct verbs_cm *cm = verbs_cm(fab);
	bool reaps;

	pthread_mutex_lock(&cm->lock);
	reaps = cm->nreapers;
	if (reaps)
		cm->free = cm_free;
	pthread_mutex_unlock(&cm->lock);
	if (!reaps)
		cm_free(cm);
}

/* ---- listeners ---- */

static int verbs_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **out)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage ss = addr->ss;
	int one = 1, err;

	if (!l)
		return -ENOMEM;
	l->fab.ops = cm->ops;
	l->fab.cm = cm;
	if (rdma_create_id(verbs_cm(cm)->channel, &l->id, l, RDMA_PS_TCP))
		goto err_free;
	/* An IPv6 wildcard leaves IPv4 to a listener of its own, as on tcp. */
	if (ss.ss_family == AF_INET6)
		rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one));
	if (rdma_bind_addr(l->id, (struct sockaddr *)&ss))
		goto err_id;
	/* A listener there would take the TCP port of the same number. */
	errno = EOPNOTSUPP;
	if (verbs_dev_lacks_imm(l->id->verbs) || rdma_listen(l->id, BACKLOG))
		goto err_id;
	verbs_addr(cm->ops, rdma_get_local_addr(l->id), &l->fab.addr);
	list_add_tail(&verbs_cm(cm)->listeners, &l->link);
	*out = &l->fab;
	return 0;

err_id:
	err = verbs_neg_errno();
	rdma_destroy_id(l->id);
	errno = -err;
err_free:
	err = verbs_neg_errno();
	free(l);
	return err;
}

static void verbs_listen_destroy(struct fab_listener *fab)
{
	struct verbs_listener *l = container_of(fab, struct verbs_listener, fab);

	list_del(&l->link);
	rdma_destroy_id(l->id);
	free(l);
}

/* ---- connections ---- */

static int verbs_conn_create(struct fab_cm *cm, struct fab_conn **out)
{
	struct verbs_conn *c = verbs_conn_alloc(cm);
	int err;

	if (!c)
		return -ENOMEM;
	if (rdma_create_id(verbs_cm(cm)->channel, &c->id, c, RDMA_PS_TCP)) {
		err = verbs_neg_errno();
		verbs_conn_fini(c);
		free(c);
		return err;
	}
	*out = &c->fab;
	return 0;
}

/* True if the peer waits for us, or we for the peer. */
static bool is_pending(const struct verbs_conn *c)
{
	unsigned setup = atomic_load(&c->setup);

	return setup == VERBS_SETUP_ASKS || setup == VERBS_SETUP_ASKED;
}

/* Keep @c's id for its device, if the device's record has none.  An id whose peer waits for its end
 * is not kept.  True: kept.  cm->lock held. */
static bool keep_id(struct verbs_cm *cm, struct verbs_conn *c)
{
	struct verbs_dev *dev;

	if (!c->id->verbs || is_pending(c))
		return false;
	dev = verbs_dev_get(cm, c->id->verbs);
	if (!dev || dev->id)
		return false;
	dev->gone |= atomic_load(&c->setup) == VERBS_SETUP_REMOVED;
	if (dev->gone && !dev->npds) {
		verbs_dev_release(dev);
		return false;
	}
	dev->id = c->id;
	return true;
}

static void conn_destroy(struct verbs_reap *job)
{
	struct verbs_conn *c = container_of(job, struct verbs_conn, reap);
	struct verbs_cm *cm = verbs_cm(c->fab.cm);
	bool keep;

	verbs_conn_fini(c);
	pthread_mutex_lock(&cm->lock);
	keep = keep_id(cm, c);
	pthread_mutex_unlock(&cm->lock);
	if (!keep)
		rdma_destroy_id(c->id);
	free(c);
}

/* A connection that has not drained may still have its buffers written, and is destroyed at once,
 * unless the reaper has its queue pair already. */
static void verbs_conn_destroy(struct fab_conn *conn)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct verbs_pd *pd = c->pd;

	/* RACE: the cm's thread may be handling an event of @c. */
	pthread_mutex_lock(&verbs_cm(conn->cm)->lock);
	c->id->context = NULL;
	verbs_conn_take_qp(c);
	pthread_mutex_unlock(&verbs_cm(conn->cm)->lock);
	c->reap = (struct verbs_reap){ .destroy = conn_destroy, .pd = pd };
	if (pd && atomic_load(&c->state) >= VERBS_CONN_STUCK)
		verbs_reap(pd, &c->reap);
	else
		conn_destroy(&c->reap);
	if (pd)
		atomic_fetch_sub(&pd->nconns, 1);
}

static int verbs_resolve(struct fab_conn *conn, const struct fab_addr *src,
			 const struct fab_addr *dst)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct sockaddr_storage from, to = dst->ss;

	if (src)
		from = src->ss;
	conn->peer = *dst;
	if (rdma_resolve_addr(c->id, src ? (struct sockaddr *)&from : NULL, (struct sockaddr *)&to,
			      VERBS_RESOLVE_MS)) {
		int err = verbs_neg_errno();

		verbs_conn_fail(c, "no RDMA device reaches the address: %s", strerror(-err));
		return err;
	}
	return 0;
}

/* The parameters of the kernel's modules (doc/protocol.md 1.2): no RDMA READ or atomics, and
 * endless retries to a peer that has no receive posted. */
static struct rdma_conn_param conn_param(const void *private_data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = (uint8_t)len,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static int verbs_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct rdma_conn_param param = conn_param(private_data, len);

	if (rdma_connect(verbs_conn(conn)->id, &param))
		return verbs_neg_errno();
	verbs_event_step(verbs_conn(conn), VERBS_SETUP_EV_ASK);
	return 0;
}

static int verbs_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct rdma_conn_param param = conn_param(private_data, len);

	if (rdma_accept(verbs_conn(conn)->id, &param))
		return verbs_neg_errno();
	verbs_event_step(verbs_conn(conn), VERBS_SETUP_EV_ANSWER);
	verbs_conn_step(verbs_conn(conn), VERBS_CONN_EV_CONNECTED);
	return 0;
}

static void verbs_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	verbs_event_step(verbs_conn(conn), VERBS_SETUP_EV_ANSWER);
	rdma_reject(verbs_conn(conn)->id, private_data, (uint8_t)len);
	verbs_conn_destroy(conn);
}

/* Counts like the drivers' queues: an entry has 64 bytes for itself, for each element of a list and
 * for its completion. */
static size_t verbs_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr)
{
	return sizeof(struct verbs_conn) +
	       (size_t)attr->max_send_wr * (sizeof(struct verbs_sqe) + (size_t)128 +
		MAX((size_t)16 * attr->max_send_sge, (size_t)VERBS_INLINE)) +
	       (size_t)attr->max_recv_wr * 64 * (2 + FAB_RECV_SGE_MAX);
}

const struct fab_provider fab_verbs = {
	.name = "rdma",
	.cm_create = verbs_cm_create,
	.cm_destroy = verbs_cm_destroy,
	.cm_get_event = verbs_event_get,
	.listen = verbs_listen,
	.listener_query_device = verbs_dev_query_listener,
	.listener_destroy = verbs_listen_destroy,
	.conn_create = verbs_conn_create,
	.conn_destroy = verbs_conn_destroy,
	.resolve = verbs_resolve,
	.query_device = verbs_dev_query,
	.create_qp = verbs_conn_create_qp,
	.qp_memory = verbs_qp_memory,
	.connect = verbs_connect,
	.accept = verbs_accept,
	.reject = verbs_reject,
	.mtu = verbs_conn_mtu,
	.pd_create = verbs_pd_create,
	.pd_destroy = verbs_pd_destroy,
	.mr_iova = true,
	.reg_mr = verbs_mr_reg,
	/* No .rereg_mr: ibv_rereg_mr() cannot change the translation on rxe, and is no fast path
	 * anywhere. */
	.dereg_mr = verbs_mr_dereg,
	.alloc_mw = verbs_mw_alloc,
	.dealloc_mw = verbs_mw_dealloc,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
	.poll = verbs_poll,
	.arm_is_dear = true,
	.arm = verbs_poll_arm,
	.need_rearm = verbs_poll_need_rearm,
	.disconnect = verbs_conn_disconnect,
};
