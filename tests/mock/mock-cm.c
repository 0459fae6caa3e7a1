/* SPDX-License-Identifier: BSD-3-Clause */
/* Managers of the mock HCA, and the provider as a whole.  Every address resolves, and whatever asks
 * is accepted by mock.peer. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mock-priv.h"

struct mock_cm {
	struct fab_cm fab;
	struct list events;		/* mock_conn.event_link */
};

static struct list conns = LIST_INIT(conns);	/* of all managers; with the lock */

static struct mock_cm *to_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct mock_cm, fab);
}

/* ---- managers ---- */

static int mock_cm_create(struct fab_cm **out)
{
	struct mock_cm *cm = calloc(1, sizeof(*cm));

	cm->fab.ops = &fab_mock;
	cm->fab.fd = eventfd(0, EFD_NONBLOCK);
	list_init(&cm->events);
	*out = &cm->fab;
	return 0;
}

static void mock_cm_destroy(struct fab_cm *fab)
{
	struct mock_cm *cm = to_cm(fab);

	if (!list_empty(&cm->events))
		mock_die("manager destroyed with events that nobody took");
	close(cm->fab.fd);
	free(cm);
}

static void event(struct mock_conn *c, enum fab_event_type type)
{
	struct mock_cm *cm = to_cm(c->fab.cm);

	LOCK_SCOPE(&mock_lock);
	c->event = type;
	list_add_tail(&cm->events, &c->event_link);
	eventfd_write(cm->fab.fd, 1);
}

static void take_event(struct mock_conn *c, struct fab_event *ev)
{
	list_del(&c->event_link);
	*ev = (struct fab_event){ .type = c->event, .conn = &c->fab };
	if (c->event == FAB_EVENT_ESTABLISHED) {
		ev->private_data_len = mock.peer->accept(ev->private_data);
		c->up = true;
	}
}

static int mock_cm_get_event(struct fab_cm *fab, struct fab_event *ev)
{
	struct mock_cm *cm = to_cm(fab);
	eventfd_t ignored;

	LOCK_SCOPE(&mock_lock);
	if (list_empty(&cm->events)) {
		eventfd_read(cm->fab.fd, &ignored);
		return 0;
	}
	take_event(list_entry(cm->events.next, struct mock_conn, event_link), ev);
	return 1;
}

/* ---- connections ---- */

static int cm_conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	struct mock_conn *c = calloc(1, sizeof(*c));

	c->fab.ops = &fab_mock;
	c->fab.cm = cm;
	c->fd = eventfd(0, EFD_NONBLOCK);
	list_init(&c->event_link);
	LOCK_SCOPE(&mock_lock);
	list_add_tail(&conns, &c->link);
	*conn = &c->fab;
	return 0;
}

static void cm_conn_destroy(struct fab_conn *conn)
{
	struct mock_conn *c = to_conn(conn);

	LOCK_SCOPE(&mock_lock);
	if (c->up && !c->drained)
		mock_die("connection destroyed before it was drained");
	if (c->pd)
		mock_qp_fini(c);
	list_del(&c->link);
	list_del(&c->event_link);
	close(c->fd);
	free(c);
}

static int mock_resolve(struct fab_conn *conn, const struct fab_addr *src,
			const struct fab_addr *dst)
{
	conn->local = conn->peer = *dst;
	event(to_conn(conn), FAB_EVENT_ROUTE_RESOLVED);
	return 0;
}

static int mock_connect(struct fab_conn *conn, const void *data, size_t len)
{
	event(to_conn(conn), FAB_EVENT_ESTABLISHED);
	return 0;
}

static int mock_query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = mock.attr;
	return 0;
}

static int mock_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	LOCK_SCOPE(&mock_lock);
	mock_qp_init(to_conn(conn), pd, attr->max_send_wr);
	conn->fd = to_conn(conn)->fd;
	return 0;
}

static int cm_pd_create(struct fab_conn *conn, struct fab_pd **pd)
{
	*pd = mock_pd_create();
	(*pd)->ops = conn->ops;
	return 0;
}

/* The queue pair is the same one for all that post. */
static int mock_need_rearm(const struct fab_conn *conn)
{
	return 0;
}

static void mock_disconnect(struct fab_conn *conn, const char *cause)
{
	struct mock_conn *c = to_conn(conn);

	if (!conn->cm)
		mock_die("the fabric refused a post: %s", cause);
	LOCK_SCOPE(&mock_lock);
	if (c->up)
		mock_conn_fail(c);
}

void mock_cut(void)
{
	struct mock_conn *c;

	LOCK_SCOPE(&mock_lock);
	list_for_each(c, &conns, link)
		mock_disconnect(&c->fab, "cut");
}

const struct fab_provider fab_mock = {
	.name = "mock",
	.cm_create = mock_cm_create,
	.cm_destroy = mock_cm_destroy,
	.cm_get_event = mock_cm_get_event,
	.conn_create = cm_conn_create,
	.conn_destroy = cm_conn_destroy,
	.resolve = mock_resolve,
	.query_device = mock_query_device,
	.create_qp = mock_create_qp,
	.connect = mock_connect,
	.pd_create = cm_pd_create,
	.pd_destroy = mock_pd_destroy,
	.reg_mr = mock_reg_mr,
	.rereg_mr = mock_rereg_mr,
	.dereg_mr = mock_dereg_mr,
	.suspend_mr = mock_suspend_mr,
	.mw_zero_based = true,
	.alloc_mw = mock_alloc_mw,
	.dealloc_mw = mock_dealloc_mw,
	.post_send = mock_post_send,
	.post_recv = mock_post_recv,
	.poll = mock_poll,
	.arm = mock_arm,
	.need_rearm = mock_need_rearm,
	.disconnect = mock_disconnect,
};
