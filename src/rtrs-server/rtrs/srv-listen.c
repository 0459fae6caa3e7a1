/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and one connection manager for each transport; control thread.
 *
 * The happy path: srv_listen_start() makes the managers and opens each listener; an address that no
 * --allow has is refused (cm_admit()); a CONNECT_REQUEST goes to srv-accept.c.  The end has two
 * steps: listeners go when the server stops accepting, the managers when the last connection has
 * gone.
 *
 * Possible failures: an address that cannot be used fails the start, in words.  A broken manager is
 * logged and serves no more events; connections live on.  A listener whose device is removed is
 * opened again when the device is back. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "rtrs-proto.h"
#include "srv-auth.h"
#include "srv-con.h"
#include "srv-listen.h"
#include "srv-path.h"
#include "srv-state.h"
#include "util.h"

#define EVENT_BUDGET 64
#define LISTEN_AGAIN_MS 1000

struct srv_cm {
	struct list link;		/* in srv->cms */
	struct srv *srv;
	const struct fab_provider *provider;
	struct fab_cm *cm;
	struct loop_watch watch;
};

struct srv_listener {
	struct list link;		/* in srv->listeners */
	struct srv_cm *cm;
	struct fab_listener *listener;	/* NULL: the device is gone */
	struct fab_addr asked;		/* of the configuration */
	struct fab_addr addr;		/* with the port that the listener got */
	char name[FAB_ADDR_STRLEN];
	int told;			/* last logged reason of a failure to listen again */
};

static struct log_limit allow_limit = LOG_LIMIT_INIT(20, 10000);
/* Of their own, so that a flood of one kind does not hide the other. */
static struct log_limit tls_limit = LOG_LIMIT_INIT(20, 10000);
static struct log_limit garbage_limit = LOG_LIMIT_INIT(10, 10000);

/* ---- devices that come and go ---- */

static void listen_again_later(struct srv *srv)
{
	loop_timer_set(srv_loop(srv), &srv->listen_timer, clock_now_ms() + LISTEN_AGAIN_MS);
}

static void listener_gone(struct srv *srv, struct fab_listener *gone)
{
	struct srv_listener *l;

	list_for_each(l, &srv->listeners, link) {
		if (l->listener != gone)
			continue;
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(LISTEN_LOST), l->name,
			  "not listening any more: the RDMA device was removed; trying again");
		fab_listener_destroy(gone);
		l->listener = NULL;
		l->told = -ENODEV;
		listen_again_later(srv);
		return;
	}
}

/* Listen again.  A missing device is no news; another program may have taken the port meanwhile. */
static void listen_again(struct srv_listener *l)
{
	int rc = fab_listen(l->cm->cm, &l->addr, &l->listener);

	if (!rc)
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(LISTENING), l->name, "listening again");
	else
		l->listener = NULL;
	if (rc && rc != l->told && rc != -ENODEV && rc != -EADDRNOTAVAIL)
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(LISTEN_LOST), l->name,
			  "cannot listen again: %s; trying again", fds_strerror(rc));
	l->told = rc;
}

static void listen_timer(struct loop_timer *timer)
{
	struct srv *srv = container_of(timer, struct srv, listen_timer);
	struct srv_listener *l;
	bool all = true;

	list_for_each(l, &srv->listeners, link) {
		if (!l->listener)
			listen_again(l);
		all = all && l->listener;
	}
	if (!all)
		listen_again_later(srv);
}

/* ---- events ---- */

/* A host outside the list costs the server only this. */
static bool cm_admit(void *arg, const struct fab_addr *peer)
{
	struct srv *srv = arg;
	char text[FAB_ADDR_STRLEN], line[64];

	if (conf_allow_peer(srv->conf, peer))
		return true;
	srv->refused[SRV_REFUSED_ADDRESS]++;
	srv_log_refusal(srv, peer, "", NULL, "no --allow names it");
	fab_addr_format(peer, text, sizeof(text));
	snprintf(line, sizeof(line), "connection refused: this %s is in no --allow rule",
		 fab_addr_is_unix(peer) ? "user" : "address");
	srv_log_again(&srv->log, peer, &allow_limit, LOG_LEVEL_WARN,
		      LOG_FIELDS(CLIENT_REFUSED, .peer = text,
				 .reason = srv_refusal_names[SRV_REFUSED_ADDRESS]), text, line);
	return false;
}

/* A peer that does not get as far as CONNECT.  Broken bytes are no client that is kept out. */
static void cm_refused(void *arg, const struct fab_addr *peer, bool tls, const char *why)
{
	enum srv_refusal reason = tls ? SRV_REFUSED_TLS : SRV_REFUSED_CONNECT;
	struct srv *srv = arg;
	char text[FAB_ADDR_STRLEN], obj[FAB_ADDR_STRLEN + 4], line[1024];

	srv->refused[reason]++;
	fab_addr_format(peer, text, sizeof(text));
	snprintf(obj, sizeof(obj), "tcp %s", text);
	snprintf(line, sizeof(line), "closed during the handshake: %s", why);
	if (tls)
		srv_log_refusal(srv, peer, "", NULL, why);
	if (tls)
		srv_log_again(&srv->log, peer, &tls_limit, LOG_LEVEL_WARN,
			      LOG_FIELDS(CLIENT_REFUSED, .peer = text,
					 .reason = srv_refusal_names[reason]), obj, line);
	else
		srv_log_again(&srv->log, peer, &garbage_limit, LOG_LEVEL_WARN,
			      LOG_FIELDS(PEER_GARBAGE, .peer = text), obj, line);
}

static void cm_disconnected(struct srv *srv, const struct fab_event *ev)
{
	struct srv_con *con;

	if (srv_accept_forget(srv, ev->conn) || srv_auth_disconnected(srv, ev->conn))
		return;
	con = fab_conn_context(ev->conn);
	if (con)
		srv_path_fail(con->path, "connection %u: %s", con->cid,
			      ev->status ? fab_conn_cause(ev->conn) : "disconnected");
}

/* Whether the listener that was asked for as @asked, NULL: unknown, asks clients who they are. */
static enum auth_mode auth_at(const struct srv *srv, const struct fab_addr *asked)
{
	enum auth_mode mode = asked ? conf_listener_auth(srv->conf, asked) : AUTH_MODES;

	return mode < AUTH_MODES ? mode : auth_mode(srv->auth);
}

static enum auth_mode listener_auth(const struct srv *srv, const struct fab_listener *listener)
{
	const struct fab_addr *asked = NULL;
	struct srv_listener *l;

	list_for_each(l, &srv->listeners, link) {
		if (l->listener == listener)
			asked = &l->asked;
	}
	return auth_at(srv, asked);
}

static bool cm_ready(struct loop_watch *watch)
{
	struct srv_cm *cm = container_of(watch, struct srv_cm, watch);

	for (unsigned i = 0; i < EVENT_BUDGET; i++) {
		struct fab_event ev;
		int rc = fab_cm_get_event(cm->cm, &ev);

		if (rc < 0) {
			log_event(LOG_LEVEL_ERROR, LOG_FIELDS(LISTEN_LOST),
				  fab_provider_name(cm->provider),
				  "connection manager broken, no new connections: %s",
				  fds_strerror(rc));
			return false;
		}
		if (!rc)
			return false;
		if (ev.type == FAB_EVENT_CONNECT_REQUEST)
			srv_accept_request(cm->srv, ev.conn,
					   listener_auth(cm->srv, ev.listener), ev.private_data,
					   ev.private_data_len);
		else if (ev.type == FAB_EVENT_DISCONNECTED)
			cm_disconnected(cm->srv, &ev);
		else if (ev.type == FAB_EVENT_LISTENER_GONE)
			listener_gone(cm->srv, ev.listener);
	}
	return true;
}

/* ---- end ---- */

static void cm_unwatched(struct loop_watch *watch)
{
	struct srv_cm *cm = container_of(watch, struct srv_cm, watch);
	struct srv *srv = cm->srv;

	fab_cm_destroy(cm->cm);
	list_del(&cm->link);
	free(cm);
	srv->part_gone(srv, 0);
}

static void listener_free(struct srv_listener *l)
{
	list_del(&l->link);
	fab_listener_destroy(l->listener);
	free(l);
}

void srv_listen_stop(struct srv *srv)
{
	struct srv_listener *l, *tmp;

	loop_timer_cancel(&srv->listen_timer);
	list_for_each_safe(l, tmp, &srv->listeners, link)
		listener_free(l);
}

void srv_listen_del(struct srv *srv, const struct fab_addr *addr)
{
	struct srv_listener *l, *tmp;

	list_for_each_safe(l, tmp, &srv->listeners, link) {
		if (!conf_same_listener(&l->asked, addr))
			continue;
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(LISTEN_LOST), l->name,
			  "not listening any more");
		listener_free(l);
		return;
	}
}

void srv_listen_close(struct srv *srv)
{
	struct srv_cm *cm, *tmp;

	list_for_each_safe(cm, tmp, &srv->cms, link)
		loop_unwatch(&cm->watch);
}

/* ---- start ---- */

static struct srv_cm *cm_find(struct srv *srv, const struct fab_provider *provider)
{
	struct srv_cm *cm;

	list_for_each(cm, &srv->cms, link) {
		if (cm->provider == provider)
			return cm;
	}
	return NULL;
}

/* Create a manager, not watched yet: the reactors do not run. */
static int cm_create(struct srv *srv, const struct fab_provider *provider, struct srv_cm **ret)
{
	struct srv_cm *cm = calloc(1, sizeof(*cm));
	struct rtrs_msg_conn_rsp refusal, pushed_out;
	const struct rtrs_hb_conf hb = rtrs_hb_conf(srv->conf->hb_interval_ms,
						    srv->conf->hb_missed_max, provider == &fab_tcp);
	const struct fab_cm_conf conf = {
		.provider = provider, .admit = cm_admit, .refused = cm_refused, .admit_arg = srv,
		.refusal = &refusal, .pushed_out = &pushed_out, .refusal_len = sizeof(refusal),
		.tls = srv->tls,
		.silence_ms = rtrs_hb_silence_ms(&hb),
	};
	int rc;

	if (!cm)
		return -ENOMEM;
	srv_con_refusal(&refusal, -ECONNRESET, RTRS_REFUSES_NOT);
	/* Only clients of ours come by tcp, and they read a reason. */
	srv_con_refusal(&pushed_out, -ENOMEM, RTRS_REFUSES_SETUPS);
	rc = fab_cm_create(&conf, &cm->cm);
	if (rc) {
		free(cm);
		return rc;
	}
	cm->srv = srv;
	cm->provider = provider;
	list_add_tail(&srv->cms, &cm->link);
	*ret = cm;
	return 0;
}

static int listen_one(struct srv *srv, const struct fab_addr *addr)
{
	struct srv_cm *cm = cm_find(srv, addr->provider);
	struct srv_listener *l = calloc(1, sizeof(*l));
	int rc = l ? 0 : -ENOMEM;

	if (!rc && !cm)
		rc = cm_create(srv, addr->provider, &cm);
	if (!rc)
		rc = fab_listen(cm->cm, addr, &l->listener);
	if (rc) {
		free(l);
		return rc;
	}
	l->cm = cm;
	l->asked = *addr;
	fab_listener_addr(l->listener, &l->addr);
	fab_addr_url(&l->addr, l->name, sizeof(l->name));
	list_add_tail(&srv->listeners, &l->link);
	return 0;
}

void srv_listen_each(const struct srv *srv,
		     void (*each)(void *arg, const struct srv_listening *l), void *arg)
{
	struct srv_listener *l;

	list_for_each(l, &srv->listeners, link) {
		const struct srv_listening now = { l->name, &l->addr, auth_at(srv, &l->asked) };

		if (l->listener)
			each(arg, &now);
	}
}

/* Watch the managers that are not watched yet. */
static int cms_watch(struct srv *srv, char *err, size_t errlen)
{
	struct srv_cm *cm;

	list_for_each(cm, &srv->cms, link) {
		int rc;

		if (cm->watch.ready)
			continue;
		cm->watch.fd = fab_cm_fd(cm->cm);
		cm->watch.events = POLLIN;
		cm->watch.ready = cm_ready;
		cm->watch.closed = cm_unwatched;
		rc = loop_watch(srv_loop(srv), &cm->watch);
		if (rc) {
			cm->watch.ready = NULL;
			snprintf(err, errlen, "cannot watch the listeners: %s", fds_strerror(rc));
			return rc;
		}
	}
	return 0;
}

static void listen_abort(struct srv *srv)
{
	struct srv_cm *cm, *tmp;

	srv_listen_stop(srv);
	list_for_each_safe(cm, tmp, &srv->cms, link) {
		list_del(&cm->link);
		fab_cm_destroy(cm->cm);
		free(cm);
	}
}

/* For tcp and unix sockets. */
static const char *listen_hint_tcp(const struct fab_addr *addr, int rc)
{
	if (rc == -ENOENT && fab_addr_is_unix(addr))
		return ": the directory is missing";
	if (rc == -EACCES && fab_addr_is_unix(addr))
		return ": no permission to create a socket in the directory";
	if (rc == -EACCES)
		return ": a port this low needs root or CAP_NET_BIND_SERVICE";
	return "";
}

/* A hint, behind the error's own words, for the person who repairs the host. */
static const char *listen_hint(const struct fab_addr *addr, int rc)
{
	if (rc == -EADDRINUSE)
		return ": another program listens there, or another --listen of this server (ss "
		       "-ltxp)";
	if (rc == -EADDRNOTAVAIL)
		return ": no interface of this machine has the address";
	if (rc == -EEXIST)
		return ": the file there is not a socket";
	if (strcmp(fab_provider_name(addr->provider), "rdma"))
		return listen_hint_tcp(addr, rc);
	if (rc == -ENODEV)
		return ": no RDMA device has the address: load rdma_ucm and the driver of the "
		       "device; \"rdma link\" lists the devices and their interfaces";
	if (rc == -EOPNOTSUPP)
		return ": the RDMA device of the address speaks iWARP, which has no "
		       "RDMA_WRITE_WITH_IMM: listen on tcp:// there";
	if (rc == -ENOENT || rc == -EACCES || rc == -EPERM)
		return ": needs /dev/infiniband/rdma_cm and uverbs*, and permission to open them";
	return "";
}

/* Fit the depth to the device of @l, which is open. */
static int listen_fit_device(struct srv *srv, const struct srv_listener *l, char *err,
			     size_t errlen)
{
	char why[192];
	int rc = srv_setup_fit_listener(srv, l->listener, l->name, why, sizeof(why));

	if (rc)
		snprintf(err, errlen, "cannot listen on %s: %s", l->name, why);
	return rc;
}

static int listen_fit_devices(struct srv *srv, char *err, size_t errlen)
{
	struct srv_listener *l;
	int rc = 0;

	list_for_each(l, &srv->listeners, link)
		rc = rc ? rc : listen_fit_device(srv, l, err, errlen);
	return rc;
}

static void tell_cannot_listen(const struct fab_addr *addr, int rc, char *err, size_t errlen)
{
	char text[FAB_ADDR_STRLEN];

	snprintf(err, errlen, "cannot listen on %s: %s%s", fab_addr_url(addr, text, sizeof(text)),
		 fds_strerror(rc), listen_hint(addr, rc));
}

/* 0: listening.  1: this machine lacks the address, one of several.  Or -errno with @err. */
static int listen_at(struct srv *srv, const struct conf_listener *l, char *err, size_t errlen)
{
	char text[FAB_ADDR_STRLEN];
	int rc = listen_one(srv, &l->addr);

	if (conf_listener_is_missing(l, rc)) {
		log_dbg(fab_addr_url(&l->addr, text, sizeof(text)), "not listening there: %s",
			fds_strerror(rc));
		return 1;
	}
	if (rc)
		tell_cannot_listen(&l->addr, rc, err, errlen);
	return rc;
}

static bool listens_at(const struct srv *srv, const struct fab_addr *addr)
{
	struct srv_listener *l;

	list_for_each(l, &srv->listeners, link) {
		if (conf_same_listener(&l->asked, addr))
			return true;
	}
	return false;
}

int srv_listen_check(const struct srv *srv, const struct srv_conf *conf, char *err, size_t errlen)
{
	for (unsigned i = 0; i < conf->nlisteners;) {
		const struct fab_addr *first = &conf->listeners[i].addr;
		bool any = false;

		do
			any = any || listens_at(srv, &conf->listeners[i].addr);
		while (++i < conf->nlisteners && !conf->listeners[i].first);
		if (any)
			continue;
		tell_cannot_listen(first, -EADDRNOTAVAIL, err, errlen);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

int srv_listen_has_keys(const struct srv *srv, const struct srv_conf *conf, char *err,
			size_t errlen)
{
	char text[FAB_ADDR_STRLEN];

	for (unsigned i = 0; !srv->auth && i < conf->nlisteners; i++) {
		if (conf->listeners[i].auth != AUTH_MODE_REQUIRE)
			continue;
		return fmt_error(-EINVAL, err, errlen, "--listen=%s,auth=require: the keys of "
				 "--auth-psk take effect after a restart, and this listener would "
				 "refuse clients until then: restart the server",
				 fab_addr_url(&conf->listeners[i].addr, text, sizeof(text)));
	}
	return 0;
}

void srv_listen_note(const struct srv *srv, struct srv_conf *conf)
{
	for (unsigned i = 0; i < conf->nlisteners; i++)
		conf->listeners[i].missing = !listens_at(srv, &conf->listeners[i].addr);
}

static int listen_all(struct srv *srv, char *err, size_t errlen)
{
	const struct srv_conf *conf = srv->conf;
	int rc;

	for (unsigned i = 0; i < conf->nlisteners; i++) {
		rc = listen_at(srv, &conf->listeners[i], err, errlen);
		if (rc < 0)
			return rc;
	}
	return srv_listen_check(srv, conf, err, errlen);
}

int srv_listen_start(struct srv *srv, char *err, size_t errlen)
{
	int rc;

	loop_timer_init(&srv->listen_timer, listen_timer);
	rc = srv_keys_open(srv->conf, &srv->tls, &srv->auth, err, errlen);
	if (!rc)
		rc = listen_all(srv, err, errlen);
	if (!rc)
		rc = listen_fit_devices(srv, err, errlen);
	if (!rc)
		rc = cms_watch(srv, err, errlen);
	if (rc)
		listen_abort(srv);
	return rc;
}

int srv_listen_add(struct srv *srv, const struct conf_listener *asked, char *err, size_t errlen)
{
	struct srv_listener *l;
	int rc;

	/* ORDER: srv_listen_stop() has been here, and the managers go with the last path. */
	if (srv->life != SRV_RUNNING)
		return fmt_error(-ECANCELED, err, errlen, "the server stops");
	rc = listen_at(srv, asked, err, errlen);
	if (rc)
		return rc < 0 ? rc : 0;
	l = list_entry(srv->listeners.prev, struct srv_listener, link);
	rc = listen_fit_device(srv, l, err, errlen);
	if (!rc)
		rc = cms_watch(srv, err, errlen);
	if (rc)
		listener_free(l);
	else
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(LISTENING), l->name, "listening");
	return rc;
}
