/* SPDX-License-Identifier: BSD-3-Clause */
/* The event channel and the calls that set connections up.
 *
 * Owns an epoll descriptor, on which users wait.  The epoll holds the listeners (tcp-listen.c), the
 * sockets in the middle of a handshake (tcp-hs.c), a timer, and the results of the thread for steps
 * of TLS (tcp-aside.c).  The timer also makes the descriptor readable while an event waits.
 *
 * A single thread at a time, but any thread calls tcp_cm_forget(), hence cm->lock.  A socket leaves
 * the epoll when its connection is reported or up, and while a step has it.  Errors are events. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "tcp-cm.h"
#include "tcp-conn.h"

#define CM_ROUND 256			/* sources served in one call, for fairness to the caller */

static void set_timer(struct tcp_cm *cm, uint64_t when_ms)
{
	struct itimerspec it = { 0 };
	uint64_t now, in;

	if (when_ms == cm->timer_ms)
		return;
	cm->timer_ms = when_ms;
	if (when_ms != CLOCK_NEVER) {
		now = clock_now_ms();
		in = when_ms > now ? when_ms - now : 0;
		it.it_value.tv_sec = (time_t)(in / 1000);
		it.it_value.tv_nsec = in ? (long)(in % 1000) * 1000000 : 1;
	}
	timerfd_settime(cm->timerfd, 0, &it, NULL);
}

/* Make the descriptor readable at the next deadline, or at once when an event waits. */
static void update_timer(struct tcp_cm *cm, bool at_once)
{
	uint64_t when = CLOCK_NEVER;
	struct tcp_listener *l;

	if (!list_empty(&cm->handshakes))
		when = list_entry(cm->handshakes.next, struct tcp_conn, hs_link)->deadline_ms;
	list_for_each(l, &cm->listeners, link) {
		if (l->retry_ms)
			when = MIN(when, l->retry_ms);
	}
	/* Again, also if the timer has fired and was not served: a loop that takes edges waits for
	 * an edge. */
	if (at_once)
		cm->timer_ms = CLOCK_NEVER;
	set_timer(cm, at_once || !list_empty(&cm->events) ? 0 : when);
}

static void timer_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_cm *cm = container_of(src, struct tcp_cm, timer);
	uint64_t ticks;

	if (read(cm->timerfd, &ticks, sizeof(ticks)) == sizeof(ticks))
		cm->timer_ms = CLOCK_NEVER;
}

int tcp_cm_watch(struct tcp_cm *cm, int op, int fd, uint32_t events, struct tcp_source *src)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	return epoll_ctl(cm->base.fd, op, fd, &ev) ? -errno : 0;
}

/* ---- a connection in the cm; all with cm->lock held ---- */

int tcp_cm_conn_watch(struct tcp_conn *c, uint32_t events)
{
	struct tcp_cm *cm = tcp_cm(c->base.cm);
	int rc = tcp_cm_watch(cm, EPOLL_CTL_MOD, c->fd, events, &c->source);

	return rc == -ENOENT ? tcp_cm_watch(cm, EPOLL_CTL_ADD, c->fd, events, &c->source) : rc;
}

void tcp_cm_conn_pause(struct tcp_conn *c)
{
	epoll_ctl(c->base.cm->fd, EPOLL_CTL_DEL, c->fd, NULL);
}

void tcp_cm_conn_unwatch(struct tcp_conn *c)
{
	tcp_cm_conn_pause(c);
	list_del(&c->hs_link);
	unproven_leave(&c->place);
}

void tcp_cm_report(struct tcp_conn *c, enum fab_event_type type, int status)
{
	struct tcp_cm *cm = tcp_cm(c->base.cm);

	assert(list_empty(&c->ev_link));
	c->ev_type = type;
	c->ev_status = status;
	list_add_tail(&cm->events, &c->ev_link);
}

void tcp_cm_start_deadline(struct tcp_conn *c)
{
	c->deadline_ms = clock_now_ms() + CM_HANDSHAKE_MS;
	list_add_tail(&tcp_cm(c->base.cm)->handshakes, &c->hs_link);
}

static void cm_expire(struct tcp_cm *cm)
{
	uint64_t now = clock_now_ms();
	struct tcp_listener *l;
	struct tcp_conn *c;

	while (!list_empty(&cm->handshakes)) {
		c = list_entry(cm->handshakes.next, struct tcp_conn, hs_link);
		if (c->deadline_ms > now)
			break;
		tcp_hs_expire(c);
	}
	list_for_each(l, &cm->listeners, link) {
		if (l->retry_ms && l->retry_ms <= now &&
		    !tcp_cm_watch(cm, EPOLL_CTL_MOD, l->fd, EPOLLIN, &l->source))
			l->retry_ms = 0;
	}
}

/* ---- the cm ---- */

int tcp_cm_create(struct fab_cm **out)
{
	struct tcp_cm *cm = calloc(1, sizeof(*cm));
	int rc;

	if (!cm)
		return -ENOMEM;
	pthread_mutex_init(&cm->lock, NULL);
	list_init(&cm->listeners);
	list_init(&cm->handshakes);
	list_init(&cm->events);
	tcp_aside_init(&cm->aside);
	cm->timer.ready = timer_ready;
	cm->timer_ms = CLOCK_NEVER;
	cm->base.fd = epoll_create1(EPOLL_CLOEXEC);
	if (cm->base.fd < 0) {
		rc = -errno;
		goto err_free;
	}
	cm->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cm->timerfd < 0) {
		rc = -errno;
		goto err_epoll;
	}
	rc = tcp_cm_watch(cm, EPOLL_CTL_ADD, cm->timerfd, EPOLLIN, &cm->timer);
	if (rc)
		goto err_timer;
	*out = &cm->base;
	return 0;

err_timer:
	close(cm->timerfd);
err_epoll:
	close(cm->base.fd);
err_free:
	tcp_aside_fini(&cm->aside);
	pthread_mutex_destroy(&cm->lock);
	free(cm);
	return rc;
}

void tcp_cm_destroy(struct fab_cm *fcm)
{
	struct tcp_cm *cm = tcp_cm(fcm);

	assert(list_empty(&cm->listeners) && list_empty(&cm->handshakes) &&
	       list_empty(&cm->events));
	tcp_aside_fini(&cm->aside);
	close(cm->timerfd);
	close(cm->base.fd);
	pthread_mutex_destroy(&cm->lock);
	free(cm);
}

static int take_event(struct tcp_cm *cm, struct fab_event *ev)
{
	struct tcp_conn *c = list_pop_entry(&cm->events, struct tcp_conn, ev_link);

	if (!c)
		return 0;
	ev->type = c->ev_type;
	ev->status = c->ev_status;
	ev->conn = &c->base;
	ev->listener = c->listener ? &c->listener->base : NULL;
	ev->private_data_len = c->pdata_len;
	memcpy(ev->private_data, c->hs_buf + TCP_FRAME_HDR_LEN, c->pdata_len);
	c->listener = NULL;
	c->pdata_len = 0;
	return 1;
}

/* Serve a single source, because serving it may free another.  Returns the number of sources, 0 or
 * 1, or -errno. */
static int cm_serve_source(struct tcp_cm *cm)
{
	struct epoll_event e;
	int n;

	do {
		n = epoll_wait(cm->base.fd, &e, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n)
		((struct tcp_source *)e.data.ptr)->ready(e.data.ptr, e.events);
	return n;
}

int tcp_cm_get_event(struct fab_cm *fcm, struct fab_event *ev)
{
	struct tcp_cm *cm = tcp_cm(fcm);
	int round = 0, n = 1, rc;

	LOCK_SCOPE(&cm->lock);
	cm_expire(cm);
	while (!(rc = take_event(cm, ev)) && n > 0 && round++ < CM_ROUND)
		n = cm_serve_source(cm);
	if (n < 0)
		rc = n;
	update_timer(cm, round > CM_ROUND);
	return rc;
}

void tcp_cm_forget(struct tcp_conn *c)
{
	struct tcp_cm *cm = tcp_cm(c->base.cm);

	LOCK_SCOPE(&cm->lock);
	tcp_cm_conn_unwatch(c);
	tcp_aside_leave(&cm->aside, c);
	list_del(&c->ev_link);
}

/* ---- set-up calls of the user ---- */

int tcp_cm_socket(const struct fab_addr *addr)
{
	int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static void set_tcp(int fd, int option, unsigned value)
{
	setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

void tcp_cm_set_options(const struct tcp_cm *cm, int fd, const struct fab_addr *peer,
			bool accepted)
{
	unsigned silence = cm->base.silence_ms;
	int one = 1;

	if (fab_addr_is_unix(peer))
		return;
	set_tcp(fd, TCP_NODELAY, 1);
	if (accepted)
		set_tcp(fd, TCP_USER_TIMEOUT, silence);
	/* Probes begin after half of the time, and the third without an answer is the last. */
	set_tcp(fd, TCP_KEEPIDLE, MAX(silence / 2000, 1u));
	set_tcp(fd, TCP_KEEPINTVL, MAX(silence / 6000, 1u));
	set_tcp(fd, TCP_KEEPCNT, 3);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

bool tcp_cm_unheard(const struct fab_conn *conn)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	/* Of a unix socket an error. */
	if (getsockopt(tcp_conn(conn)->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	return (info.tcpi_retransmits || info.tcpi_probes > 1) &&
	       info.tcpi_last_ack_recv >= conn->cm->silence_ms;
}

int tcp_cm_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = tcp_cm(conn->cm);
	int one = 1, rc;

	if (c->fd >= 0 || tcp_conn_state(c) != TCP_IDLE)
		return -EINVAL;
	c->fd = tcp_cm_socket(dst);
	if (c->fd < 0)
		return c->fd;
	if (src) {
		/* connect() chooses the port, which then need not be free towards every peer. */
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(c->fd, (const struct sockaddr *)&src->ss, src->len)) {
			rc = -errno;
			close(c->fd);
			c->fd = -1;
			return rc;
		}
	}
	tcp_cm_set_options(cm, c->fd, dst, false);
	c->base.peer = *dst;
	c->base.local = src ? *src : (struct fab_addr){ .provider = conn->ops };
	LOCK_SCOPE(&cm->lock);
	tcp_cm_report(c, FAB_EVENT_ROUTE_RESOLVED, 0);
	update_timer(cm, false);
	return 0;
}

/* The -errno of a connect that failed with @err.  The kernel also refuses files that are no socket,
 * even directories.  EAGAIN: more connect to a unix socket than wait in its line (unix(7)). */
static int connect_errno(const struct fab_addr *peer, int err)
{
	struct stat st;

	if (err == ECONNREFUSED && fab_addr_is_unix(peer) &&
	    !stat(((const struct sockaddr_un *)&peer->ss)->sun_path, &st) && !S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	return err == EAGAIN ? -EUSERS : -err;
}

int tcp_cm_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = tcp_cm(conn->cm);
	int rc = 0;

	if (!c->pd || tcp_conn_state(c) != TCP_IDLE || !list_empty(&c->ev_link))
		return -EINVAL;
	if (len)
		memcpy(c->connect_data, private_data, len);
	c->connect_len = (uint32_t)len;
	if (connect(c->fd, (const struct sockaddr *)&c->base.peer.ss, c->base.peer.len) &&
	    errno != EINPROGRESS)
		rc = connect_errno(&c->base.peer, errno);
	LOCK_SCOPE(&cm->lock);
	tcp_hs_begin(c, rc);
	update_timer(cm, false);
	return 0;
}

int tcp_cm_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = tcp_cm(conn->cm);
	int rc;

	if (!c->pd || tcp_conn_state(c) != TCP_REQUESTED)
		return -EINVAL;
	rc = tcp_hs_send(c, TCP_FRAME_ACCEPT, 0, private_data, len);
	if (rc)
		return rc;
	LOCK_SCOPE(&cm->lock);
	tcp_hs_event(c, TCP_EV_UP);
	update_timer(cm, false);
	return 0;
}
