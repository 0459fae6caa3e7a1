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
#define FSM_PREFIX VERBS_SETUP_

#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "log.h"
#include "verbs-priv.h"

#define LOOK_S 1
#define REJ_INVALID_SERVICE_ID 8	/* IBTA: no listener */
#define REJ_CONSUMER_DEFINED 28

static struct log_limit imm_limit = LOG_LIMIT_INIT(1, 10000);

static int status_errno(int status)
{
	return status < 0 ? status : status > 0 ? -status : -EIO;
}

/* An event of librdmacm, for the actions. */
struct report {
	struct verbs_conn *c;
	struct fab_event *ev;		/* to be filled */
	const char *what;		/* a failure in words */
	int err;			/* -errno for the words, or 0 */
	int status;			/* -errno for @ev */
	bool due;			/* @ev is to be reported */
};

static void setup_run(struct verbs_conn *c, enum verbs_setup_event event, struct report *report)
{
	char name[FAB_ADDR_STRLEN];

	fsm_run(&verbs_setup_fsm, fab_addr_log_name(&c->fab.peer, name), &c->setup, event, report);
}

void verbs_event_step(struct verbs_conn *c, enum verbs_setup_event event)
{
	setup_run(c, event, NULL);
}

/* Note a failure: its words, with -errno @err if not 0. */
static enum verbs_setup_event failed(struct report *report, int err, const char *what)
{
	report->what = what;
	report->err = err;
	report->status = err ? err : -ECONNRESET;
	return VERBS_SETUP_EV_LOST;
}

/* ---- actions ---- */

static void tell(struct report *report, enum fab_event_type type)
{
	report->ev->type = type;
	report->ev->status = report->status;
	report->due = true;
}

static void resolve_route(void *object)
{
	struct report *report = object;

	if (!rdma_resolve_route(report->c->id, VERBS_RESOLVE_MS))
		return;
	setup_run(report->c, failed(report, verbs_neg_errno(), "cannot resolve the route"), report);
}

static void tell_route(void *object)
{
	struct report *report = object;
	struct verbs_conn *c = report->c;

	verbs_addr(c->fab.ops, rdma_get_local_addr(c->id), &c->fab.local);
	tell(report, FAB_EVENT_ROUTE_RESOLVED);
}

static void tell_established(void *object)
{
	struct report *report = object;

	verbs_conn_step(report->c, VERBS_CONN_EV_CONNECTED);
	tell(report, FAB_EVENT_ESTABLISHED);
}

static void fail_queues(void *object)
{
	const struct report *report = object;

	if (report->err)
		verbs_conn_fail(report->c, "%s: %s", report->what, strerror(-report->err));
	else
		verbs_conn_fail(report->c, "%s", report->what);
}

/* The peer left before our answer to its accept arrived. */
static void fail_left(void *object)
{
	struct report *report = object;

	verbs_conn_fail(report->c, "peer disconnected");
}

static void tell_unreachable(void *object)
{
	struct report *report = object;

	fail_queues(report);
	tell(report, FAB_EVENT_UNREACHABLE);
}

static void tell_refused(void *object)
{
	struct report *report = object;

	report->status = 0;
	tell(report, FAB_EVENT_REJECTED);
}

/* The queues of a device that is gone wake no poller. */
static void tell_removed(void *object)
{
	fail_queues(object);
	tell(object, FAB_EVENT_DISCONNECTED);
}

/* ---- the table ---- */

#define ACTIVE (IN(NEW) | IN(ASKS))
#define PASSIVE (IN(ASKED) | IN(ANSWERED))

static const struct fsm_row rows[] = {
	ROW(IN(NEW), ADDRESS, NEW, resolve_route),
	ROW(IN(NEW), ROUTE, NEW, tell_route),
	ROW(IN(NEW), ASK, ASKS, NULL),
	ROW(IN(NEW), REQUEST, ASKED, NULL),
	ROW(IN(ASKED), ANSWER, ANSWERED, NULL),
	ROW(IN(ASKS) | PASSIVE, ESTABLISHED, DONE, tell_established),

	ROW(ACTIVE, REFUSED, FAILED, tell_refused),
	ROW(ACTIVE, REJECTED, FAILED, tell_unreachable),
	ROW(ACTIVE, LOST, FAILED, tell_unreachable),
	ROW(PASSIVE, REFUSED, ANSWERED, fail_queues),
	ROW(PASSIVE, REJECTED, ANSWERED, fail_queues),
	ROW(PASSIVE, LOST, ANSWERED, fail_queues),
	ROW(IN(DONE), REFUSED, DONE, fail_left),
	ROW(IN(DONE), REJECTED, DONE, fail_left),
	ROW(IN(DONE), LOST, DONE, fail_queues),
	ROW(ACTIVE, REMOVED, REMOVED, tell_unreachable),
	ROW(PASSIVE | IN(DONE), REMOVED, REMOVED, tell_removed),
	ROW(IN(FAILED), REMOVED, REMOVED, fail_queues),

	/* too late to matter */
	STAY(ALL & ~IN(NEW), ADDRESS),
	STAY(ALL & ~IN(NEW), ROUTE),
	STAY(ALL & ~IN(NEW), ASK),
	STAY(ALL & ~IN(ASKED), ANSWER),
	STAY(ALL & ~(IN(ASKS) | PASSIVE), ESTABLISHED),
	STAY(IN(FAILED) | IN(REMOVED), REFUSED),
	STAY(IN(FAILED) | IN(REMOVED), REJECTED),
	STAY(IN(FAILED) | IN(REMOVED), LOST),
	STAY(IN(REMOVED), REMOVED),
};

static const char *const states[VERBS_SETUP_NSTATES] = {
	"new", "asks", "asked", "answered", "done", "failed", "removed",
};

static const char *const events[VERBS_SETUP_NEVENTS] = {
	"address", "route", "ask", "request", "answer", "established", "refused", "rejected",
	"lost", "removed",
};

const struct fsm verbs_setup_fsm = FSM("set-up", rows, states, events);

/* ---- events of connections ---- */

static enum verbs_setup_event address_resolved(struct report *report)
{
	if (!verbs_dev_lacks_imm(report->c->id->verbs))
		return VERBS_SETUP_EV_ADDRESS;
	failed(report, 0, "the RDMA device there " VERBS_LACKS_IMM ": use TCP");
	report->status = -EOPNOTSUPP;
	return VERBS_SETUP_EV_LOST;
}

/* What librdmacm says, in the words of the table; VERBS_SETUP_NEVENTS: nothing. */
static enum verbs_setup_event translate(const struct rdma_cm_event *event, struct report *report)
{
	int err = status_errno(event->status);

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return address_resolved(report);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return VERBS_SETUP_EV_ROUTE;
	case RDMA_CM_EVENT_ESTABLISHED:
		return VERBS_SETUP_EV_ESTABLISHED;
	case RDMA_CM_EVENT_REJECTED:
		if (event->status == REJ_INVALID_SERVICE_ID)
			failed(report, -ECONNREFUSED, "no server listens there");
		else
			failed(report, -ECONNRESET, "the connection request was refused");
		return event->status == REJ_CONSUMER_DEFINED ? VERBS_SETUP_EV_REFUSED :
			VERBS_SETUP_EV_REJECTED;
	case RDMA_CM_EVENT_ADDR_ERROR:
		return failed(report, err, "no RDMA device reaches the address");
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return failed(report, err, "no route");
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return failed(report, err, "cannot connect");
	case RDMA_CM_EVENT_DISCONNECTED:
		return failed(report, 0, "peer disconnected");
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return failed(report, 0, "the address moved to another device");
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		failed(report, 0, "the RDMA device was removed");
		report->status = -ENODEV;
		return VERBS_SETUP_EV_REMOVED;
	default:
		return VERBS_SETUP_NEVENTS;
	}
}

/* Handle an event of @c.  Returns 1 when @ev is to be reported.  cm->lock held, so no thread frees
 * @c. */
static int conn_event(struct verbs_conn *c, const struct rdma_cm_event *event, struct fab_event *ev)
{
	struct report report = { .c = c, .ev = ev };
	enum verbs_setup_event of_table = translate(event, &report);

	ev->conn = &c->fab;
	if (of_table != VERBS_SETUP_NEVENTS)
		setup_run(c, of_table, &report);
	return report.due;
}

/* A listener of all addresses gets connections of any device. */
static bool lacks_imm(const struct rdma_cm_id *id, const struct fab_addr *peer)
{
	char name[FAB_ADDR_STRLEN];

	if (!verbs_dev_lacks_imm(id->verbs))
		return false;
	log_limited(&imm_limit, LOG_LEVEL_WARN, fab_addr_log_name(peer, name),
		    "connection refused: the RDMA device %s " VERBS_LACKS_IMM,
		    ibv_get_device_name(id->verbs->device));
	return true;
}

/* Make a connection of @id, or refuse the peer.  Returns 1 when @ev is to be reported.  The event
 * has been acknowledged, so @id may be destroyed. */
static int connect_request(struct rdma_cm_id *id, struct verbs_listener *l, struct fab_event *ev)
{
	const struct fab_cm *cm = l->fab.cm;
	struct verbs_conn *c;
	struct fab_addr peer;

	verbs_addr(cm->ops, rdma_get_peer_addr(id), &peer);
	if (!fab_cm_admits(cm, &peer) || lacks_imm(id, &peer)) {
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
	verbs_addr(cm->ops, rdma_get_local_addr(id), &c->fab.local);
	c->fab.peer = peer;
	verbs_event_step(c, VERBS_SETUP_EV_REQUEST);
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

/* The listener with @id, or NULL. */
static struct verbs_listener *listener_of(const struct verbs_cm *cm,
					  const struct rdma_cm_id *id)
{
	struct verbs_listener *l;

	list_for_each(l, &cm->listeners, link) {
		if (l->id == id)
			return l;
	}
	return NULL;
}

/* Handle an event of a listener or a connection, before the acknowledgement.  Returns 1 when @ev is
 * to be reported.  Destroy @unused, if set, after the acknowledgement. */
static int id_event(struct verbs_cm *cm, const struct rdma_cm_event *event, struct fab_event *ev,
		    struct rdma_cm_id **unused)
{
	struct verbs_listener *l = listener_of(cm, event->id);
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
