/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of librdmacm, as events of fabric.h.
 *
 * Thread of the cm.  An event is copied and acknowledged before fab_cm_get_event() returns it,
 * because rdma_destroy_id() waits for unacknowledged events.  Another thread may destroy a
 * connection: changes to the connection come before the acknowledgement, while the destroyer still
 * waits.
 *
 * A connection that fails in its set-up is reported as UNREACHABLE, once; later its queues fail
 * (verbs-conn.c) without an event. */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "verbs-priv.h"

#define LOOK_S 1
#define REJ_INVALID_SERVICE_ID 8	/* IBTA: no listener */
#define REJ_CONSUMER_DEFINED 28

static int status_errno(int status)
{
	return status < 0 ? status : status > 0 ? -status : -EIO;
}

/* Fail @c.  Returns 1, with UNREACHABLE in @ev, in the set-up of an active @c; otherwise 0, and the
 * queues fail. */
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
	/* The peer left before our answer to its accept arrived. */
	if (c->established)
		return conn_lost(c, ev, 0, "peer disconnected");
	if (event->status == REJ_INVALID_SERVICE_ID)
		return conn_lost(c, ev, -ECONNREFUSED, "no server listens there");
	if (c->passive || event->status != REJ_CONSUMER_DEFINED)
		return conn_lost(c, ev, -ECONNRESET, "the connection request was refused");
	ev->type = FAB_EVENT_REJECTED;
	return 1;
}

/* Fail @c, whose device is gone, and report that: its queues wake no poller. */
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

/* Handle an event of @c.  Returns 1 when @ev is to be reported.  cm->lock held, so no thread frees
 * @c. */
static int conn_event(struct verbs_conn *c, const struct rdma_cm_event *event, struct fab_event *ev)
{
	ev->conn = &c->fab;
	if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED &&
	    event->event != RDMA_CM_EVENT_ROUTE_RESOLVED)
		c->pending = false;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(c->id, VERBS_RESOLVE_MS))
			return conn_lost(c, ev, verbs_neg_errno(), "cannot resolve the route");
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		verbs_addr(c->fab.ops, rdma_get_local_addr(c->id), &c->fab.local);
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

/* Make a connection of @id, or refuse the peer.  Returns 1 when @ev is to be reported.  The event
 * has been acknowledged, so @id may be destroyed. */
static int connect_request(struct rdma_cm_id *id, struct verbs_listener *l, struct fab_event *ev)
{
	const struct fab_cm *cm = l->fab.cm;
	struct verbs_conn *c;
	struct fab_addr peer;

	verbs_addr(cm->ops, rdma_get_peer_addr(id), &peer);
	if (!fab_cm_admits(cm, &peer)) {
		rdma_reject(id, cm->refusal, (uint8_t)cm->refusal_len);
		rdma_destroy_id(id);
		return 0;
	}
	c = verbs_conn_alloc(l->fab.cm);
	if (!c) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return 0;
	}
	c->id = id;
	c->id->context = c;
	c->passive = c->pending = true;
	verbs_addr(cm->ops, rdma_get_local_addr(id), &c->fab.local);
	c->fab.peer = peer;
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

/* ---- devices that are gone ---- */

static void look_later(struct verbs_cm *cm)
{
	const struct itimerspec at = { .it_value = { .tv_sec = LOOK_S } };

	timerfd_settime(cm->timer_fd, 0, &at, NULL);
}

static void look_if_due(struct verbs_cm *cm)
{
	uint64_t n;

	if (read(cm->timer_fd, &n, sizeof(n)) == (ssize_t)sizeof(n) && verbs_dev_look())
		look_later(cm);
}

/* Note that the device of @id is gone.  Returns @id, if nothing needs @id any more: destroy @id
 * after the acknowledgement.  cm->lock held. */
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

/* ---- the channel ---- */

/* Handle an event of a listener or a connection, before the acknowledgement.  Returns 1 when @ev is
 * to be reported.  Destroy @unused, if set, after the acknowledgement. */
static int id_event(struct verbs_cm *cm, const struct rdma_cm_event *event, struct fab_event *ev,
		    struct rdma_cm_id **unused)
{
	struct verbs_listener *l = verbs_listen_of(cm, event->id);
	struct verbs_conn *c;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		verbs_dev_removed(event->id->verbs);
		look_later(cm);
	}
	if (l)
		return listener_event(l, event, ev);
	LOCK_SCOPE(&cm->lock);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		*unused = device_gone(cm, event->id);
	c = event->id->context;		/* NULL: kept only for the device */
	return c ? conn_event(c, event, ev) : 0;
}

int verbs_event_get(struct fab_cm *cm, struct fab_event *ev)
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
			return errno == EAGAIN ? 0 : verbs_neg_errno();
		}
		id = event->id;
		copy_private_data(event, ev);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			l = verbs_listen_of(verbs_cm(cm), event->listen_id);
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
