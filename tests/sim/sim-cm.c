/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns event channels, listeners and connections of the sim provider, as their user sees them.  One
 * thread.  A connection ends when its user destroys it.  What travels is in sim-wire.c. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim-fab-priv.h"

struct list sim_all_conns = LIST_INIT(sim_all_conns);
static struct list all_listeners = LIST_INIT(all_listeners);
static uint64_t last_id;
static uint16_t last_port = 20000;

unsigned sim_conns(void)
{
	struct sim_conn *c;
	unsigned n = 0;

	list_for_each(c, &sim_all_conns, all)
		n++;
	return n;
}

/* ---- events ---- */

struct sim_cm_event *sim_cm_event(struct sim_conn *c, enum fab_event_type type, int status,
				  const struct sim_wire *w)
{
	struct sim_cm_event *e = calloc(1, sizeof(*e));

	assert(e);
	e->ev.type = type;
	e->ev.status = status;
	e->ev.conn = &c->base;
	if (w) {
		assert(w->len <= sizeof(e->ev.private_data));
		memcpy(e->ev.private_data, w->data, w->len);
		e->ev.private_data_len = w->len;
	}
	list_add_tail(&to_cm(c->base.cm)->events, &e->link);
	return e;
}

static void cm_forget_conn(struct sim_cm *cm, const struct sim_conn *c)
{
	struct sim_cm_event *e, *tmp;

	list_for_each_safe(e, tmp, &cm->events, link) {
		if (e->ev.conn == &c->base) {
			list_del(&e->link);
			free(e);
		}
	}
}

static short cm_fd_ready(void *arg)
{
	const struct sim_cm *cm = arg;

	return list_empty(&cm->events) ? 0 : POLLIN;
}

static unsigned refuse;
static int refuse_err;

void sim_refuse_cm(unsigned n, int err)
{
	refuse = n;
	refuse_err = err;
}

static int cm_create(struct fab_cm **out)
{
	struct sim_cm *cm;

	if (refuse) {
		refuse--;
		return refuse_err;
	}
	cm = calloc(1, sizeof(*cm));
	if (!cm)
		return -ENOMEM;
	cm->host = sim_host();
	cm->epoch = sim_epoch();
	list_init(&cm->events);
	list_init(&cm->listeners);
	cm->base.fd = sim_fd_open(cm_fd_ready, cm);
	*out = &cm->base;
	return 0;
}

static int cm_get_event(struct fab_cm *base, struct fab_event *ev)
{
	struct list *l = list_pop(&to_cm(base)->events);
	struct sim_cm_event *e;
	struct sim_conn *c;

	if (!l)
		return 0;
	e = list_entry(l, struct sim_cm_event, link);
	*ev = e->ev;
	free(e);
	if (!ev->conn)
		return 1;
	c = to_conn(ev->conn);
	c->internal = false;
	if (ev->type == FAB_EVENT_ESTABLISHED)
		c->must_drain = true;
	return 1;
}

/* ---- connections ---- */

static void conn_timeout(struct sim_event *ev)
{
	struct sim_conn *c = container_of(ev, struct sim_conn, timer);

	if (c->state == SIM_NEW && c->host->no_device) {
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ENODEV, NULL);
		sim_conn_fail(c, false, "no device reaches the address");
		return;
	}
	if (c->state == SIM_NEW) {
		c->state = SIM_RESOLVED;
		sim_cm_event(c, FAB_EVENT_ROUTE_RESOLVED, 0, NULL);
		return;
	}
	sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
	sim_conn_fail(c, true, "no answer to the connect request in %u ms", SIM_CONNECT_TIMEOUT_MS);
}

struct sim_conn *sim_conn_new(struct sim_cm *cm)
{
	struct sim_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->base.ops = &fab_sim;
	c->base.cm = &cm->base;
	c->host = cm->host;
	c->epoch = cm->epoch;
	c->id = ++last_id;
	cm->nconns++;
	sim_event_init(&c->timer, conn_timeout);
	sim_qp_init(c);
	list_add_tail(&sim_all_conns, &c->all);
	return c;
}

static void conn_free(struct sim_conn *c)
{
	struct sim_cm *cm = to_cm(c->base.cm);

	cm_forget_conn(cm, c);
	cm->nconns--;
	/* fabric.h: windows are deallocated first.  A queue pair of rxe would block for 50 s. */
	assert(!sim_mw_on(c));
	sim_event_cancel(&c->timer);
	sim_qp_fini(c);
	list_del(&c->all);
	free(c);
}

void sim_conn_fail(struct sim_conn *c, bool tell, const char *fmt, ...)
{
	va_list ap;

	if (c->state == SIM_FAILED)
		return;
	va_start(ap, fmt);
	fab_conn_note_cause(&c->base, fmt, ap);
	va_end(ap);
	c->state = SIM_FAILED;
	sim_event_cancel(&c->tx);
	sim_event_cancel(&c->timer);
	sim_event_at(&c->flush, sim_now_us() + c->host->flush_ms * 1000ull + 5 + sim_rand(50));
	if (tell)
		sim_wire_disconnect(c);
}

static int conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	struct sim_conn *c = sim_conn_new(to_cm(cm));

	if (!c)
		return -ENOMEM;
	*conn = &c->base;
	return 0;
}

static void conn_destroy(struct fab_conn *conn)
{
	struct sim_conn *c = to_conn(conn);

	/* fabric.h, LIFE: drained, or never open. */
	assert(!c->must_drain || c->drained);
	if (c->state != SIM_FAILED)
		sim_wire_disconnect(c);
	conn_free(c);
}

static int resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst)
{
	struct sim_conn *c = to_conn(conn);

	conn->peer = *dst;
	conn->local = src && src->len ? *src : c->host->addrs[0];
	conn->local.provider = &fab_sim;
	((struct sockaddr_in *)&conn->local.ss)->sin_port = htons(++last_port);
	sim_event_at(&c->timer, sim_now_us() + 1);
	return 0;
}

void sim_offer_limits(const char *host, uint32_t max_qp_wr, uint32_t max_sge)
{
	struct sim_host *h = sim_host_find(host);

	h->max_qp_wr = max_qp_wr;
	h->max_sge = max_sge;
}

void sim_break_windows(const char *host, enum sim_mw_fault fault)
{
	sim_host_find(host)->mw_fault = fault;
}

static void device_of(const struct sim_host *h, struct fab_device_attr *attr)
{
	*attr = (struct fab_device_attr){
		.max_qp_wr = h->max_qp_wr ? h->max_qp_wr : SIM_MAX_QP_WR,
		.max_sge = h->max_sge ? h->max_sge : SIM_MAX_SGE,
		.caps = sim_caps(),
		.max_mw = SIM_MAX_MW,
	};
	snprintf(attr->name, sizeof(attr->name), "%s-nic", h->name);
}

static int query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	device_of(to_conn(conn)->host, attr);
	return 0;
}

static int do_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct sim_conn *c = to_conn(conn);
	uint8_t data[FAB_CONNECT_DATA_MAX];
	struct sim_channel peer;
	struct sim_wire *w;
	int err;

	assert(c->pd && (c->state == SIM_RESOLVED || c->state == SIM_FAILED));
	if (c->state == SIM_FAILED) {
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ECONNRESET, NULL);
		return 0;
	}
	c->state = SIM_CONNECTING;
	c->peer_host = sim_host_by_addr(&conn->peer);
	c->wire = c->peer_host ? sim_host_addr_index(c->peer_host, &conn->peer) : 0;
	sim_event_at(&c->timer, sim_now_us() + SIM_CONNECT_TIMEOUT_MS * 1000ull);
	if (!c->peer_host)
		return 0;	/* no such machine: nobody will answer */
	memcpy(data, private_data, len);
	err = sim_channel_make(c, &peer) ? fab_conn_seal(conn, data, len) : -EPROTO;
	if (err) {
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, err, NULL);
		sim_conn_fail(c, false, "one end requires TLS");
		return 0;
	}
	if (sim_net_duplicates(c->host, c->peer_host)) {
		struct sim_wire *ghost = sim_wire_private(c, SIM_WIRE_REQ, data, len);

		ghost->src = ++last_id;
		ghost->channel = peer;
		sim_wire_send(c, ghost);
	}
	w = sim_wire_private(c, SIM_WIRE_REQ, data, len);
	w->channel = peer;
	sim_wire_send(c, w);
	return 0;
}

static int do_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct sim_conn *c = to_conn(conn);

	assert(c->pd && (c->state == SIM_REQUESTED || c->state == SIM_FAILED));
	c->must_drain = true;
	if (c->state == SIM_FAILED)
		return 0;
	c->state = SIM_UP;
	sim_wire_send(c, sim_wire_private(c, SIM_WIRE_REP, private_data, len));
	return 0;
}

static void do_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct sim_conn *c = to_conn(conn);

	assert(c->state == SIM_REQUESTED || c->state == SIM_FAILED);
	if (c->state == SIM_REQUESTED)
		sim_wire_send(c, sim_wire_private(c, SIM_WIRE_REJ, private_data, len));
	conn_free(c);
}

void sim_identify(const char *host, const char *identity)
{
	struct sim_host *h = sim_host_find(host);

	assert(strlen(identity) < sizeof(h->identity));
	strcpy(h->identity, identity);
}

void sim_identify_key(const char *host, uint64_t key)
{
	sim_host_find(host)->key = key;
}

static void identity(const struct fab_conn *conn, struct fab_identity *id)
{
	const struct sim_conn *c = to_conn(conn);

	id->key = c->key;
	memcpy(id->name, c->identity, sizeof(id->name));
	if (c->channel.tls)
		strcpy(id->cipher, "sim");
}

static void disconnect(struct fab_conn *conn, const char *cause)
{
	sim_conn_fail(to_conn(conn), true, "%s", cause);
}

/* ---- listeners ---- */

struct fab_addr sim_addr(const char *host, uint16_t port)
{
	struct fab_addr addr = sim_host_find(host)->addrs[sim_host_addr_named(host)];

	addr.provider = &fab_sim;
	((struct sockaddr_in *)&addr.ss)->sin_port = htons(port);
	return addr;
}

static bool any_addr(const struct fab_addr *a)
{
	return ((const struct sockaddr_in *)&a->ss)->sin_addr.s_addr == htonl(INADDR_ANY);
}

struct sim_listener *sim_listener_find(const struct sim_host *h, const struct fab_addr *addr)
{
	struct sim_listener *l;

	if (h->no_device)
		return NULL;
	list_for_each(l, &all_listeners, all) {
		if (!l->gone && l->cm->host == h && !sim_is_ghost(h, l->cm->epoch) &&
		    fab_addr_port(&l->base.addr) == fab_addr_port(addr) &&
		    (any_addr(&l->base.addr) || any_addr(addr) ||
		     fab_addr_same_host(&l->base.addr, addr)))
			return l;
	}
	return NULL;
}

static int do_listen(struct fab_cm *base, const struct fab_addr *addr, struct fab_listener **out)
{
	struct sim_cm *cm = to_cm(base);
	struct sim_listener *l;

	if (addr->ss.ss_family != AF_INET)
		return -EAFNOSUPPORT;
	if (!any_addr(addr) && sim_host_by_addr(addr) != cm->host)
		return -EADDRNOTAVAIL;
	if (!any_addr(addr) && cm->host->no_device)
		return -ENODEV;
	if (fab_addr_port(addr) && sim_listener_find(cm->host, addr))
		return -EADDRINUSE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->base.ops = &fab_sim;
	l->base.cm = base;
	l->base.addr = *addr;
	if (!fab_addr_port(addr))
		((struct sockaddr_in *)&l->base.addr.ss)->sin_port = htons(++last_port);
	l->cm = cm;
	list_add_tail(&cm->listeners, &l->link);
	list_add_tail(&all_listeners, &l->all);
	*out = &l->base;
	return 0;
}

static int listener_query_device(const struct fab_listener *base, struct fab_device_attr *attr)
{
	const struct sim_listener *l = container_of(base, struct sim_listener, base);

	if (any_addr(&base->addr))
		return -ENODEV;
	device_of(l->cm->host, attr);
	return 0;
}

/* Connect requests that nobody fetched. */
static void drop_unfetched(struct sim_cm *cm, const struct sim_listener *l)
{
	struct sim_conn *c, *tmp;

	list_for_each_safe(c, tmp, &sim_all_conns, all) {
		if (c->internal && to_cm(c->base.cm) == cm && (!l || c->listener == l)) {
			sim_wire_disconnect(c);
			conn_free(c);
		}
	}
}

static void listener_destroy(struct fab_listener *base)
{
	struct sim_listener *l = container_of(base, struct sim_listener, base);
	struct sim_cm_event *e, *tmp;

	drop_unfetched(l->cm, l);
	list_for_each_safe(e, tmp, &l->cm->events, link) {
		if (e->ev.listener != base)
			continue;
		list_del(&e->link);
		free(e);
	}
	list_del(&l->link);
	list_del(&l->all);
	free(l);
}

/* ---- a device that goes ---- */

static void conn_lose_device(struct sim_conn *c)
{
	if (c->state == SIM_UP)
		sim_cm_event(c, FAB_EVENT_DISCONNECTED, -ENODEV, NULL);
	if (c->state == SIM_CONNECTING || c->state == SIM_RESOLVED)
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ENODEV, NULL);
	if (c->state != SIM_NEW)
		sim_conn_fail(c, false, "the RDMA device was removed");
	sim_qp_vanish(c);
}

static void listener_lose_device(struct sim_listener *l)
{
	struct sim_cm_event *e;

	if (l->gone || any_addr(&l->base.addr))
		return;
	l->gone = true;
	e = calloc(1, sizeof(*e));
	assert(e);
	e->ev.type = FAB_EVENT_LISTENER_GONE;
	e->ev.listener = &l->base;
	list_add_tail(&l->cm->events, &e->link);
}

void sim_lose_device(const char *host)
{
	struct sim_host *h = sim_host_find(host);
	struct sim_listener *l;
	struct sim_conn *c;

	h->no_device = true;
	list_for_each(c, &sim_all_conns, all) {
		if (c->host == h && !sim_conn_is_ghost(c) && c->state != SIM_REQUESTED)
			conn_lose_device(c);
	}
	list_for_each(l, &all_listeners, all) {
		if (l->cm->host == h && !sim_is_ghost(h, l->cm->epoch))
			listener_lose_device(l);
	}
}

void sim_flush_late(const char *host, uint32_t ms)
{
	sim_host_find(host)->flush_ms = ms;
}

void sim_give_device_back(const char *host)
{
	sim_host_find(host)->no_device = false;
}

static void cm_destroy(struct fab_cm *base)
{
	struct sim_cm *cm = to_cm(base);

	drop_unfetched(cm, NULL);
	assert(!cm->nconns && list_empty(&cm->listeners) && list_empty(&cm->events));
	sim_fd_close(cm->base.fd);
	free(cm);
}

const struct fab_provider fab_sim = {
	.name = "sim",
	.tls = true,
	.cm_create = cm_create,
	.cm_destroy = cm_destroy,
	.cm_get_event = cm_get_event,
	.listen = do_listen,
	.listener_query_device = listener_query_device,
	.listener_destroy = listener_destroy,
	.conn_create = conn_create,
	.conn_destroy = conn_destroy,
	.resolve = resolve,
	.query_device = query_device,
	.create_qp = sim_create_qp,
	.connect = do_connect,
	.accept = do_accept,
	.reject = do_reject,
	.identity = identity,
	.binding = sim_channel_binding,
	.pd_create = sim_pd_create,
	.pd_destroy = sim_pd_destroy,
	.mr_iova = true,
	.reg_mr = sim_reg_mr,
	.rereg_mr = sim_rereg_mr,
	.suspend_mr = sim_suspend_mr,
	.hold_mr = sim_hold_mr,
	.release_mr = sim_release_mr,
	.sends_left = sim_sends_left,
	.mw_zero_based = true,
	.dereg_mr = sim_dereg_mr,
	.alloc_mw = sim_alloc_mw,
	.dealloc_mw = sim_dealloc_mw,
	.post_send = sim_post_send,
	.post_recv = sim_post_recv,
	.poll = sim_poll,
	.arm_is_dear = true,
	.arm = sim_arm,
	.need_rearm = sim_need_rearm,
	.disconnect = disconnect,
};
