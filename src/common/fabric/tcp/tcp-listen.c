/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the unproven peers: accepted connections that have not sent a CONNECT.
 *
 * Owns the listening sockets, and accepted connections until their CONNECT_REQUEST is reported.
 * The cm's thread, under cm->lock; making and closing a listener take the lock themselves.
 * Unproven peers are bounded (unproven.h).  Silence costs the connection (the cm's
 * deadlines). */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "process.h"
#include "tcp-cm.h"

#define CM_BACKLOG 512
#define CM_WHY_LEN 256

static void accepted_begins(struct tcp_listener *l, int fd, const struct fab_addr *peer)
{
	struct tcp_cm *cm = tcp_cm(l->base.cm);
	struct tcp_conn *c;

	if (tcp_conn_new(&cm->base, fd, &c)) {
		close(fd);
		return;
	}
	tcp_cm_set_options(cm, fd, peer, true);
	c->listener = l;
	c->source.ready = tcp_hs_ready;
	c->base.peer = *peer;
	c->base.local = (struct fab_addr){ .provider = cm->base.ops,
					   .len = sizeof(c->base.local.ss) };
	getsockname(fd, (struct sockaddr *)&c->base.local.ss, &c->base.local.len);
	tcp_hs_event(c, TCP_EV_ACCEPTED);
	unproven_enter(&cm->unproven, &c->place, fab_addr_net(&c->base.peer), 0);
	tcp_cm_start_deadline(c);
	if (tcp_cm_conn_watch(c, EPOLLIN))
		tcp_hs_drop(c);
}

/* Send the peer a refusal, although nothing of the peer is read. */
static void accepted_refuse(const struct tcp_cm *cm, int fd)
{
	tcp_hs_send_refusal(fd, cm->base.refusal, cm->base.refusal_len);
	close(fd);
}

/* Under TLS an honest peer is unproven for a round trip, in which another host can connect a
 * thousand times: so hosts push out their own. */
static void accepted_pushed_out(struct unproven_place *place, enum unproven_why why)
{
	struct tcp_conn *c = container_of(place, struct tcp_conn, place);

	tcp_hs_tell_pushed_out(c);
	tcp_hs_refuse(c, UNPROVEN_TOO_MANY);
}

static void listener_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_listener *l = container_of(src, struct tcp_listener, source);
	struct tcp_cm *cm = tcp_cm(l->base.cm);

	for (unsigned i = 0; i < FDS_ACCEPT_ROUND; i++) {
		struct fab_addr peer = { .provider = cm->base.ops };
		int fd = fds_accept(l->fd, &peer.ss, &peer.len);

		if (fd == -EAGAIN)
			return;
		if (fd < 0) {
			l->retry_ms = clock_now_ms() + FDS_PAUSE_MS;
			tcp_cm_watch(cm, EPOLL_CTL_MOD, l->fd, 0, &l->source);
			return;
		}
		fab_addr_unix_peer(fd, &peer);
		if (!fab_cm_admits(&cm->base, &peer)) {
			accepted_refuse(cm, fd);
			continue;
		}
		accepted_begins(l, fd, &peer);
	}
}

/* The umask decides which users may connect (unix(7)), as with NBD servers. */
static int listen_unix(struct tcp_listener *l, const struct fab_addr *addr)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&addr->ss;
	char why[CM_WHY_LEN];
	int rc = unix_sock_listen(&l->name, un->sun_path, 0777, CM_BACKLOG, why, sizeof(why));

	if (rc)
		log_dbg(NULL, "tcp: %s", why);
	else
		l->fd = l->name.fd;
	return rc;
}

static int listen_inet(struct tcp_listener *l, const struct fab_addr *addr)
{
	int one = 1;

	l->fd = tcp_cm_socket(addr);
	if (l->fd < 0)
		return l->fd;
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* [::]:PORT and 0.0.0.0:PORT are two addresses, as their texts are. */
	if (addr->ss.ss_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(l->fd, (const struct sockaddr *)&addr->ss, addr->len) ||
	    listen(l->fd, CM_BACKLOG))
		return -errno;
	return 0;
}

static void listener_close(struct tcp_listener *l)
{
	if (l->name.path)
		unix_sock_remove(&l->name);
	if (l->fd >= 0)
		close(l->fd);
}

int tcp_listen(struct fab_cm *fcm, const struct fab_addr *addr, struct fab_listener **out)
{
	struct tcp_cm *cm = tcp_cm(fcm);
	struct tcp_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->base.ops = fcm->ops;
	l->base.cm = fcm;
	l->source.ready = listener_ready;
	l->fd = -1;
	rc = fab_addr_is_unix(addr) ? listen_unix(l, addr) : listen_inet(l, addr);
	if (rc)
		goto err_close;
	l->base.addr = (struct fab_addr){ .provider = addr->provider, .len = sizeof(addr->ss) };
	if (getsockname(l->fd, (struct sockaddr *)&l->base.addr.ss, &l->base.addr.len)) {
		rc = -errno;
		goto err_close;
	}
	rc = tcp_cm_watch(cm, EPOLL_CTL_ADD, l->fd, EPOLLIN, &l->source);
	if (rc)
		goto err_close;
	pthread_mutex_lock(&cm->lock);
	/* The cm has deadlines of its own, of both sides. */
	if (list_empty(&cm->listeners))
		unproven_init(&cm->unproven, NULL, CM_UNPROVEN_MAX, CM_UNPROVEN_NET_MAX,
			      accepted_pushed_out);
	list_add_tail(&cm->listeners, &l->link);
	pthread_mutex_unlock(&cm->lock);
	*out = &l->base;
	return 0;

err_close:
	listener_close(l);
	free(l);
	return rc;
}

void tcp_listen_destroy(struct fab_listener *fl)
{
	struct tcp_listener *l = container_of(fl, struct tcp_listener, base);
	struct tcp_cm *cm = tcp_cm(fl->cm);
	struct tcp_conn *c, *tmp;

	pthread_mutex_lock(&cm->lock);
	list_for_each_safe(c, tmp, &cm->handshakes, hs_link) {
		if (c->listener == l)
			tcp_hs_drop(c);
	}
	/* Requests that were not reported. */
	list_for_each_safe(c, tmp, &cm->events, ev_link) {
		if (c->listener == l) {
			list_del(&c->ev_link);
			tcp_conn_free(c);
		}
	}
	list_del(&l->link);
	pthread_mutex_unlock(&cm->lock);
	listener_close(l);
	free(l);
}
