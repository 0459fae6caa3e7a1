/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns event channels, listeners and the setting up of connections: librdmacm.
 *
 * Thread of the cm.  An event is copied and acknowledged before it is acted on or handed on, because
 * rdma_destroy_id() waits for unacknowledged ones; what happens to a connection that another thread
 * may destroy happens before that, while the destroyer still waits.  A connection that fails while
 * it is set up is told as UNREACHABLE, once; later its queues fail (verbs-conn.c) and no event says so. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "verbs-priv.h"

#define RESOLVE_MS 5000
#define BACKLOG 256
#define LOOK_S 1
#define REJ_INVALID_SERVICE_ID 8	/* IBTA: nobody listens */
#define REJ_CONSUMER_DEFINED 28

static int neg_errno(void)
{
	return errno ? -errno : -EIO;
}

static struct verbs_cm *verbs_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct verbs_cm, fab);
}

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
	if (cm->fd >= 0)
		close(cm->fd);
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
	int flags, err;

	if (!cm)
		return -ENOMEM;
	cm->fab.ops = &fab_verbs;
	list_init(&cm->listeners);
	list_init(&cm->devs);
	pthread_mutex_init(&cm->lock, NULL);
	cm->fd = cm->timer_fd = -1;
	cm->channel = rdma_create_event_channel();
	if (!cm->channel)
		goto err_free;
	flags = fcntl(cm->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		goto err_free;
	cm->fd = epoll_create1(EPOLL_CLOEXEC);
	cm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cm->fd < 0 || cm->timer_fd < 0 || epoll_add(cm->fd, cm->channel->fd) ||
	    epoll_add(cm->fd, cm->timer_fd))
		goto err_free;
	*out = &cm->fab;
	return 0;

err_free:
	err = neg_errno();
	cm_free(cm);
	return err;
}

static void verbs_cm_destroy(struct fab_cm *fab)
{
	cm_free(verbs_cm(fab));
}

static int verbs_cm_fd(const struct fab_cm *cm)
{
	return verbs_cm(cm)->fd;
}

static void look_later(struct verbs_cm *cm)
{
	const struct itimerspec at = { .it_value = { .tv_sec = LOOK_S } };

	timerfd_settime(cm->timer_fd, 0, &at, NULL);
}

static void look_if_due(struct verbs_cm *cm)
{
	uint64_t n;

	if (read(cm->timer_fd, &n, sizeof(n)) == (ssize_t)sizeof(n) && verbs_devices_look())
		look_later(cm);
}

static void addr_from(struct fab_addr *addr, const struct sockaddr *sa)
{
	addr->provider = &fab_verbs;
	addr->len = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
	memcpy(&addr->ss, sa, addr->len);
}

/* ---- listeners ---- */

static int verbs_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **out)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage ss = addr->ss;
	int one = 1, err;

	if (!l)
		return -ENOMEM;
	l->fab.ops = &fab_verbs;
	l->fab.cm = cm;
	if (rdma_create_id(verbs_cm(cm)->channel, &l->id, l, RDMA_PS_TCP))
		goto err_free;
	/* An IPv6 wildcard leaves IPv4 to a listener of its own, as on tcp. */
	if (ss.ss_family == AF_INET6)
		rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one));
	if (rdma_bind_addr(l->id, (struct sockaddr *)&ss) || rdma_listen(l->id, BACKLOG))
		goto err_id;
	addr_from(&l->fab.addr, rdma_get_local_addr(l->id));
	list_add_tail(&verbs_cm(cm)->listeners, &l->link);
	*out = &l->fab;
	return 0;

err_id:
	err = neg_errno();
	rdma_destroy_id(l->id);
	errno = -err;
err_free:
	err = neg_errno();
	free(l);
	return err;
}

static void verbs_listener_destroy(struct fab_listener *fab)
{
	struct verbs_listener *l = container_of(fab, struct verbs_listener, fab);

	list_del(&l->link);
	rdma_destroy_id(l->id);
	free(l);
}

static struct verbs_listener *listener_of(const struct verbs_cm *cm, const struct rdma_cm_id *id)
{
	struct verbs_listener *l;

	list_for_each(l, &cm->listeners, link) {
		if (l->id == id)
			return l;
	}
	return NULL;
}

/* ---- connections ---- */

static struct verbs_conn *conn_alloc(struct fab_cm *cm)
{
	struct verbs_conn *c = aligned_alloc(_Alignof(struct verbs_conn), sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->fab.ops = &fab_verbs;
	c->fab.cm = cm;
	verbs_conn_init(c);
	return c;
}

static int verbs_conn_create(struct fab_cm *cm, struct fab_conn **out)
{
	struct verbs_conn *c = conn_alloc(cm);
	int err;

	if (!c)
		return -ENOMEM;
	if (rdma_create_id(verbs_cm(cm)->channel, &c->id, c, RDMA_PS_TCP)) {
		err = neg_errno();
		verbs_conn_fini(c);
		free(c);
		return err;
	}
	*out = &c->fab;
	return 0;
}

/* Keep @c's id for the sake of its device?  Not one that somebody waits to be destroyed.  cm->lock held. */
static bool keep_id(struct verbs_cm *cm, struct verbs_conn *c)
{
	struct verbs_dev *dev;

	if (!c->id->verbs || c->pending)
		return false;
	dev = verbs_dev_get(cm, c->id->verbs);
	if (!dev || dev->id)
		return false;
	dev->gone |= c->removed;
	if (dev->gone && !dev->npds) {
		verbs_dev_release(dev);
		return false;
	}
	dev->id = c->id;
	return true;
}

static void verbs_conn_destroy(struct fab_conn *conn)
{
	struct verbs_cm *cm = verbs_cm(conn->cm);
	struct verbs_conn *c = verbs_conn(conn);
	bool keep;

	verbs_conn_fini(c);
	/* RACE: the cm's thread may be looking at an event of it. */
	pthread_mutex_lock(&cm->lock);
	c->id->context = NULL;
	keep = keep_id(cm, c);
	pthread_mutex_unlock(&cm->lock);
	if (!keep)
		rdma_destroy_id(c->id);
	free(c);
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
			      RESOLVE_MS)) {
		int err = neg_errno();

		verbs_conn_fail(c, "no RDMA device reaches the address: %s", strerror(-err));
		return err;
	}
	return 0;
}

/* As the kernel's modules (protocol.md 1.2): no RDMA READ or atomics, and endless patience with a
 * peer that has no receive posted. */
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
		return neg_errno();
	verbs_conn(conn)->pending = true;
	return 0;
}

static int verbs_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct rdma_conn_param param = conn_param(private_data, len);

	if (rdma_accept(verbs_conn(conn)->id, &param))
		return neg_errno();
	verbs_conn(conn)->pending = false;
	atomic_store(&verbs_conn(conn)->connected, true);
	return 0;
}

static void verbs_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	verbs_conn(conn)->pending = false;
	rdma_reject(verbs_conn(conn)->id, private_data, (uint8_t)len);
	verbs_conn_destroy(conn);
}

/* ---- events ---- */

static int status_errno(int status)
{
	return status < 0 ? status : status > 0 ? -status : -EIO;
}

/* @c will not be used, or not any longer.  Tells so while it is set up by us; else its queues do. */
static int conn_lost(struct verbs_conn *c, struct fab_event *ev, int err, const char *what)
{
	if (err)
		verbs_conn_fail(c, "%s: %s", what, strerror(-err));
	else
		verbs_conn_fail(c, "%s", what);
	if (c->established || c->passive)
		return 0;
	ev->type = FAB_EVENT_UNREACHABLE;
	ev->status = err ? err : -ECONNRESET;
	return 1;
}

static int conn_rejected(struct verbs_conn *c, const struct rdma_cm_event *event,
			 struct fab_event *ev)
{
	/* The peer left when our answer to its acceptance had not reached it yet. */
	if (c->established)
		return conn_lost(c, ev, 0, "peer disconnected");
	if (event->status == REJ_INVALID_SERVICE_ID)
		return conn_lost(c, ev, -ECONNREFUSED, "nobody listens there");
	if (c->passive || event->status != REJ_CONSUMER_DEFINED)
		return conn_lost(c, ev, -ECONNRESET, "the connection request was refused");
	ev->type = FAB_EVENT_REJECTED;
	return 1;
}

/* Its queues will not say so by themselves. */
static int conn_device_gone(struct verbs_conn *c, struct fab_event *ev)
{
	static const char what[] = "the RDMA device was removed";
	bool tell = c->established || c->passive;

	verbs_conn_fail(c, "%s", what);
	c->removed = true;
	ev->type = FAB_EVENT_DISCONNECTED;
	ev->status = -ENODEV;
	return tell ? 1 : conn_lost(c, ev, -ENODEV, what);
}

/* cm->lock held, so the connection is there whoever destroys it. */
static int conn_event(struct verbs_conn *c, const struct rdma_cm_event *event, struct fab_event *ev)
{
	ev->conn = &c->fab;
	if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED &&
	    event->event != RDMA_CM_EVENT_ROUTE_RESOLVED)
		c->pending = false;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(c->id, RESOLVE_MS))
			return conn_lost(c, ev, neg_errno(), "cannot resolve the route");
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		addr_from(&c->fab.local, rdma_get_local_addr(c->id));
		ev->type = FAB_EVENT_ROUTE_RESOLVED;
		return 1;
	case RDMA_CM_EVENT_ESTABLISHED:
		c->established = true;
		atomic_store(&c->connected, true);
		ev->type = FAB_EVENT_ESTABLISHED;
		return 1;
	case RDMA_CM_EVENT_REJECTED:
		return conn_rejected(c, event, ev);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return conn_lost(c, ev, status_errno(event->status),
				 "no RDMA device reaches the address");
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return conn_lost(c, ev, status_errno(event->status), "no route");
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return conn_lost(c, ev, status_errno(event->status), "cannot connect");
	case RDMA_CM_EVENT_DISCONNECTED:
		return conn_lost(c, ev, 0, "peer disconnected");
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return conn_device_gone(c, ev);
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return conn_lost(c, ev, 0, "the address moved to another device");
	default:
		return 0;
	}
}

/* Returns 1 when @ev is to be reported.  The event has been acknowledged: @id may be destroyed. */
static int connect_request(struct rdma_cm_id *id, struct verbs_listener *l, struct fab_event *ev)
{
	struct verbs_conn *c = conn_alloc(l->fab.cm);

	if (!c) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return 0;
	}
	c->id = id;
	c->id->context = c;
	c->passive = c->pending = true;
	addr_from(&c->fab.local, rdma_get_local_addr(id));
	addr_from(&c->fab.peer, rdma_get_peer_addr(id));
	ev->type = FAB_EVENT_CONNECT_REQUEST;
	ev->conn = &c->fab;
	ev->listener = &l->fab;
	return 1;
}

static void copy_private_data(const struct rdma_cm_event *event, struct fab_event *ev)
{
	const struct rdma_conn_param *param = &event->param.conn;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST &&
	    event->event != RDMA_CM_EVENT_ESTABLISHED && event->event != RDMA_CM_EVENT_REJECTED)
		return;
	ev->private_data_len = MIN((size_t)param->private_data_len, sizeof(ev->private_data));
	if (ev->private_data_len)
		memcpy(ev->private_data, param->private_data, ev->private_data_len);
}

static int listener_event(struct verbs_listener *l, const struct rdma_cm_event *event,
			  struct fab_event *ev)
{
	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	ev->type = FAB_EVENT_LISTENER_GONE;
	ev->listener = &l->fab;
	return 1;
}

/* cm->lock held.  Returns the id that is not needed any more: that of the event, so not before it is
 * acknowledged. */
static struct rdma_cm_id *device_gone(struct verbs_cm *cm, const struct rdma_cm_id *id)
{
	struct verbs_dev *dev;

	list_for_each(dev, &cm->devs, link) {
		if (dev->verbs != id->verbs)
			continue;
		dev->gone = true;
		return dev->id == id ? verbs_dev_release(dev) : NULL;
	}
	return NULL;
}

/* Of a listener or a connection; not acknowledged yet.  @unused is to be destroyed when it is. */
static int id_event(struct verbs_cm *cm, const struct rdma_cm_event *event, struct fab_event *ev,
		    struct rdma_cm_id **unused)
{
	struct verbs_listener *l = listener_of(cm, event->id);
	struct verbs_conn *c;
	int report;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		verbs_device_removed(event->id->verbs);
		look_later(cm);
	}
	if (l)
		return listener_event(l, event, ev);
	pthread_mutex_lock(&cm->lock);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		*unused = device_gone(cm, event->id);
	c = event->id->context;		/* NULL: kept for its device only */
	report = c ? conn_event(c, event, ev) : 0;
	pthread_mutex_unlock(&cm->lock);
	return report;
}

static int verbs_cm_get_event(struct fab_cm *cm, struct fab_event *ev)
{
	int report = 0;

	look_if_due(verbs_cm(cm));
	while (!report) {
		struct rdma_cm_id *id, *unused = NULL;
		struct verbs_listener *l = NULL;
		struct rdma_cm_event *event;

		memset(ev, 0, sizeof(*ev));
		if (rdma_get_cm_event(verbs_cm(cm)->channel, &event)) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? 0 : neg_errno();
		}
		id = event->id;
		copy_private_data(event, ev);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			l = listener_of(verbs_cm(cm), event->listen_id);
		else
			report = id_event(verbs_cm(cm), event, ev, &unused);
		rdma_ack_cm_event(event);
		if (unused)
			rdma_destroy_id(unused);
		if (l)
			report = connect_request(id, l, ev);
	}
	return report;
}

const struct fab_provider fab_verbs = {
	.name = "rdma",
	.cm_create = verbs_cm_create,
	.cm_destroy = verbs_cm_destroy,
	.cm_fd = verbs_cm_fd,
	.cm_get_event = verbs_cm_get_event,
	.listen = verbs_listen,
	.listener_query_device = verbs_listener_query_device,
	.listener_destroy = verbs_listener_destroy,
	.conn_create = verbs_conn_create,
	.conn_destroy = verbs_conn_destroy,
	.resolve = verbs_resolve,
	.query_device = verbs_query_device,
	.create_qp = verbs_create_qp,
	.connect = verbs_connect,
	.accept = verbs_accept,
	.reject = verbs_reject,
	.pd_create = verbs_pd_create,
	.pd_destroy = verbs_pd_destroy,
	.pd_local_dma_lkey = verbs_pd_local_dma_lkey,
	.reg_mr = verbs_reg_mr,
	.rereg_mr = verbs_rereg_mr,
	.dereg_mr = verbs_dereg_mr,
	.alloc_mw = verbs_alloc_mw,
	.dealloc_mw = verbs_dealloc_mw,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
	.poll = verbs_poll,
	.conn_fd = verbs_conn_fd,
	.arm = verbs_arm,
	.need_rearm = verbs_need_rearm,
	.disconnect = verbs_disconnect,
	.conn_cause = verbs_conn_cause,
};
