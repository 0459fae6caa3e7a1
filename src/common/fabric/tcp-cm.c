/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting connections up: listeners, the handshake, the event channel.
 *
 * Owns an epoll descriptor (the one users wait on) with the listeners, the sockets in the middle of
 * a handshake and one timer; owns accepted connections until their CONNECT_REQUEST is reported.
 * One thread at a time, but tcp_cm_forget() comes from any, hence cm->lock.  A socket leaves the
 * epoll when its connection is reported or up.  Strangers are bounded: the oldest makes room for
 * the newest, and silence costs the connection. */
#include <config.h>

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "tcp-priv.h"
#include "util.h"

#define CM_STRANGERS_MAX 256u
#define CM_HANDSHAKE_MS 10000u		/* either side, from connect or accept to the last byte */
#define CM_ACCEPT_RETRY_MS 100u		/* after accept() ran out of descriptors or memory */
#define CM_ROUND 256			/* sources served in one call, for fairness to the caller */
#define CM_ACCEPT_ROUND 16		/* connections taken from a listener in one turn */
#define CM_BACKLOG 512
#define CM_USER_TIMEOUT_MS 30000	/* bytes unacknowledged for so long mean a dead peer */

struct tcp_cm {
	struct fab_cm base;
	int epfd, timerfd;
	pthread_mutex_t lock;
	struct list listeners;
	struct list handshakes;		/* tcp_conn.hs_link, earliest deadline first */
	struct list events;		/* tcp_conn.ev_link */
	struct tcp_source timer;
	unsigned strangers;
	uint64_t timer_ms;		/* what the timer is set to, CLOCK_NEVER: off */
};

struct tcp_listener {
	struct fab_listener base;
	struct tcp_source source;
	struct list link;
	int fd;
	uint64_t retry_ms;		/* out of the epoll until then; 0: in it */
};

static struct log_limit garbage_limit = LOG_LIMIT_INIT(10, 10000);
static struct log_limit accept_limit = LOG_LIMIT_INIT(1, 10000);

static struct tcp_cm *to_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct tcp_cm, base);
}

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

/* Make the descriptor readable at the next deadline, or at once when something waits. */
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
	set_timer(cm, at_once || !list_empty(&cm->events) ? 0 : when);
}

static void timer_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_cm *cm = container_of(src, struct tcp_cm, timer);
	uint64_t ticks;

	if (read(cm->timerfd, &ticks, sizeof(ticks)) == sizeof(ticks))
		cm->timer_ms = CLOCK_NEVER;
}

static int watch(struct tcp_cm *cm, int op, int fd, uint32_t events, struct tcp_source *src)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	return epoll_ctl(cm->epfd, op, fd, &ev) ? -errno : 0;
}

/* ---- a connection in the cm; all with cm->lock held ---- */

static int conn_watch(struct tcp_conn *c, uint32_t events)
{
	int rc = watch(to_cm(c->base.cm), c->in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd,
		       events, &c->source);

	c->in_epoll |= rc == 0;
	return rc;
}

static void conn_set_state(struct tcp_conn *c, enum tcp_state state)
{
	atomic_store_explicit(&c->state, (int)state, memory_order_release);
}

static enum tcp_state conn_state(const struct tcp_conn *c)
{
	return (enum tcp_state)atomic_load_explicit(&c->state, memory_order_relaxed);
}

/* Out of epoll and deadlines. */
static void conn_unwatch(struct tcp_conn *c)
{
	struct tcp_cm *cm = to_cm(c->base.cm);

	if (c->in_epoll)
		epoll_ctl(cm->epfd, EPOLL_CTL_DEL, c->fd, NULL);
	c->in_epoll = false;
	list_del(&c->hs_link);
	if (conn_state(c) == TCP_STRANGER)
		cm->strangers--;
}

static void conn_report(struct tcp_conn *c, enum fab_event_type type, int status)
{
	struct tcp_cm *cm = to_cm(c->base.cm);

	assert(list_empty(&c->ev_link));
	c->ev_type = type;
	c->ev_status = status;
	list_add_tail(&cm->events, &c->ev_link);
}

static void stranger_drop(struct tcp_conn *c)
{
	conn_unwatch(c);
	tcp_conn_free(c);
}

static void stranger_refuse(struct tcp_conn *c, const char *why)
{
	char addr[FAB_ADDR_STRLEN];

	fab_addr_format(&c->base.peer, addr, sizeof(addr));
	/* Who comes and goes without a word is a monitor, not an attack. */
	if (c->hs_len)
		log_limited(&garbage_limit, LOG_LEVEL_WARN, NULL,
			    "tcp %s: closed during the handshake: %s", addr, why);
	else
		log_dbg(NULL, "tcp %s: closed before the handshake: %s", addr, why);
	stranger_drop(c);
}

/* The active side's set-up is over without a connection. */
static void active_fail(struct tcp_conn *c, int err, const char *why)
{
	conn_unwatch(c);
	conn_set_state(c, TCP_DEAD);
	tcp_conn_set_cause(c, "%s", why);
	conn_report(c, FAB_EVENT_UNREACHABLE, err);
}

static void conn_fail_setup(struct tcp_conn *c, int err, const char *why)
{
	if (conn_state(c) == TCP_STRANGER)
		stranger_refuse(c, why);
	else
		active_fail(c, err, why);
}

static void start_deadline(struct tcp_conn *c)
{
	c->deadline_ms = clock_now_ms() + CM_HANDSHAKE_MS;
	list_add_tail(&to_cm(c->base.cm)->handshakes, &c->hs_link);
}

/* One handshake frame with @len bytes of private data; a fresh socket takes it whole. */
static int send_frame(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		      size_t len)
{
	struct tcp_frame f = { .op = (uint8_t)op, .flags = flags, .length = (uint32_t)len,
			       .rkey = TCP_FRAME_VERSION, .addr = TCP_FRAME_MAGIC };
	uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	ssize_t n;

	tcp_frame_encode(buf, &f);
	if (len)
		memcpy(buf + TCP_FRAME_HDR_LEN, data, len);
	n = send(c->fd, buf, TCP_FRAME_HDR_LEN + len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == TCP_FRAME_HDR_LEN + len ? 0 : -ENOBUFS;
}

/* ---- reading the handshake frame ---- */

/* Read exactly one frame and not a byte more: what follows belongs to fab_poll().
 * Returns 1 with @f, 0 when bytes are missing, or -errno with @why. */
static int read_frame(struct tcp_conn *c, struct tcp_frame *f, const char **why)
{
	uint32_t need;
	ssize_t n;

	for (;;) {
		need = TCP_FRAME_HDR_LEN;
		if (c->hs_len >= TCP_FRAME_HDR_LEN) {
			*why = tcp_frame_decode(c->hs_buf, f);
			if (*why)
				return -EPROTO;
			if (f->op < TCP_FRAME_CONNECT || f->op == TCP_FRAME_DISCONNECT) {
				*why = "not a handshake frame";
				return -EPROTO;
			}
			need += f->length;
			if (c->hs_len == need)
				return 1;
		}
		n = recv(c->fd, c->hs_buf + c->hs_len, need - c->hs_len, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			*why = n ? strerror(errno) : "peer closed";
			return n ? -errno : -ECONNRESET;
		}
		c->hs_len += (uint32_t)n;
	}
}

static void stranger_frame(struct tcp_conn *c, const struct tcp_frame *f)
{
	if (f->op != TCP_FRAME_CONNECT) {
		stranger_refuse(c, "expected CONNECT");
		return;
	}
	if (f->rkey != TCP_FRAME_VERSION) {
		send_frame(c, TCP_FRAME_REJECT, TCP_FRAME_F_VERSION, NULL, 0);
		stranger_refuse(c, "unknown version of the tcp framing");
		return;
	}
	conn_unwatch(c);
	conn_set_state(c, TCP_REQUESTED);
	c->pdata_len = f->length;
	conn_report(c, FAB_EVENT_CONNECT_REQUEST, 0);
}

static void reply_frame(struct tcp_conn *c, const struct tcp_frame *f)
{
	if (f->op == TCP_FRAME_REJECT && (f->flags & TCP_FRAME_F_VERSION)) {
		active_fail(c, -EPROTONOSUPPORT, "peer speaks another version of the tcp framing");
		return;
	}
	if (f->op == TCP_FRAME_CONNECT || f->rkey != TCP_FRAME_VERSION) {
		active_fail(c, -EPROTO, "peer answered with a frame that is no answer");
		return;
	}
	conn_unwatch(c);
	c->pdata_len = f->length;
	if (f->op == TCP_FRAME_REJECT) {
		conn_set_state(c, TCP_DEAD);
		tcp_conn_set_cause(c, "rejected by the peer");
		conn_report(c, FAB_EVENT_REJECTED, -ECONNREFUSED);
	} else {
		conn_set_state(c, TCP_UP);
		conn_report(c, FAB_EVENT_ESTABLISHED, 0);
	}
}

static void handshake_ready(struct tcp_conn *c)
{
	struct tcp_frame f;
	const char *why;
	int rc = read_frame(c, &f, &why);

	if (rc < 0)
		conn_fail_setup(c, rc, why);
	else if (rc > 0 && conn_state(c) == TCP_STRANGER)
		stranger_frame(c, &f);
	else if (rc > 0)
		reply_frame(c, &f);
}

static void connect_ready(struct tcp_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err)
		err = -send_frame(c, TCP_FRAME_CONNECT, 0, c->hs_buf, c->hs_len);
	c->hs_len = 0;
	if (!err) {
		c->base.local.len = sizeof(c->base.local.ss);
		if (getsockname(c->fd, (struct sockaddr *)&c->base.local.ss, &c->base.local.len))
			err = errno;
	}
	conn_set_state(c, TCP_WAIT_REPLY);
	if (!err)
		err = -conn_watch(c, EPOLLIN);
	if (err)
		active_fail(c, -err, strerror(err));
}

static void conn_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_conn *c = container_of(src, struct tcp_conn, source);

	if (conn_state(c) == TCP_CONNECTING)
		connect_ready(c);
	else
		handshake_ready(c);
}

static void expire(struct tcp_cm *cm)
{
	uint64_t now = clock_now_ms();
	struct tcp_listener *l;
	struct tcp_conn *c;

	while (!list_empty(&cm->handshakes)) {
		c = list_entry(cm->handshakes.next, struct tcp_conn, hs_link);
		if (c->deadline_ms > now)
			break;
		conn_fail_setup(c, -ETIMEDOUT, "no handshake in time");
	}
	list_for_each(l, &cm->listeners, link) {
		if (l->retry_ms && l->retry_ms <= now &&
		    !watch(cm, EPOLL_CTL_MOD, l->fd, EPOLLIN, &l->source))
			l->retry_ms = 0;
	}
}

/* ---- listeners ---- */

static void set_options(int fd)
{
	int one = 1, timeout = CM_USER_TIMEOUT_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

static void stranger_add(struct tcp_listener *l, int fd, const struct fab_addr *peer)
{
	struct tcp_cm *cm = to_cm(l->base.cm);
	struct tcp_conn *c;

	if (tcp_conn_new(&cm->base, fd, &c)) {
		close(fd);
		return;
	}
	set_options(fd);
	c->listener = l;
	c->source.ready = conn_ready;
	c->base.peer = *peer;
	c->base.local = (struct fab_addr){ .provider = &fab_tcp, .len = sizeof(c->base.local.ss) };
	getsockname(fd, (struct sockaddr *)&c->base.local.ss, &c->base.local.len);
	conn_set_state(c, TCP_STRANGER);
	cm->strangers++;
	start_deadline(c);
	if (conn_watch(c, EPOLLIN))
		stranger_drop(c);
}

/* The oldest makes room: an honest peer sends its CONNECT at once, so it is never among the oldest
 * for long, however many say nothing. */
static void stranger_make_room(struct tcp_cm *cm)
{
	struct tcp_conn *c;

	if (cm->strangers < CM_STRANGERS_MAX)
		return;
	list_for_each(c, &cm->handshakes, hs_link) {
		if (conn_state(c) == TCP_STRANGER) {
			stranger_refuse(c, "too many connections say nothing");
			return;
		}
	}
}

static void listener_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_listener *l = container_of(src, struct tcp_listener, source);
	struct tcp_cm *cm = to_cm(l->base.cm);

	for (int i = 0; i < CM_ACCEPT_ROUND; i++) {
		struct fab_addr peer = { .provider = &fab_tcp, .len = sizeof(peer.ss) };
		int fd = accept4(l->fd, (struct sockaddr *)&peer.ss, &peer.len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			stranger_make_room(cm);
			stranger_add(l, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_limited(&accept_limit, LOG_LEVEL_ERROR, NULL,
				    "tcp: cannot accept connections: %s", strerror(errno));
			l->retry_ms = clock_now_ms() + CM_ACCEPT_RETRY_MS;
			watch(cm, EPOLL_CTL_MOD, l->fd, 0, &l->source);
		}
		/* EAGAIN, or an error of the connection that is gone already (accept(2)). */
		return;
	}
}

static int open_socket(const struct fab_addr *addr)
{
	int fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int bind_listener(struct tcp_listener *l, const struct fab_addr *addr)
{
	int one = 1;

	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* So that [::]:PORT and 0.0.0.0:PORT are two addresses, as they are written. */
	if (addr->ss.ss_family == AF_INET6)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(l->fd, (const struct sockaddr *)&addr->ss, addr->len) ||
	    listen(l->fd, CM_BACKLOG))
		return -errno;
	l->base.addr = (struct fab_addr){ .provider = &fab_tcp, .len = sizeof(addr->ss) };
	if (getsockname(l->fd, (struct sockaddr *)&l->base.addr.ss, &l->base.addr.len))
		return -errno;
	return 0;
}

int tcp_listen(struct fab_cm *fcm, const struct fab_addr *addr, struct fab_listener **out)
{
	struct tcp_cm *cm = to_cm(fcm);
	struct tcp_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->base.ops = &fab_tcp;
	l->base.cm = fcm;
	l->source.ready = listener_ready;
	rc = l->fd = open_socket(addr);
	if (rc < 0)
		goto err_free;
	rc = bind_listener(l, addr);
	if (rc)
		goto err_close;
	rc = watch(cm, EPOLL_CTL_ADD, l->fd, EPOLLIN, &l->source);
	if (rc)
		goto err_close;
	pthread_mutex_lock(&cm->lock);
	list_add_tail(&cm->listeners, &l->link);
	pthread_mutex_unlock(&cm->lock);
	*out = &l->base;
	return 0;

err_close:
	close(l->fd);
err_free:
	free(l);
	return rc;
}

void tcp_listener_destroy(struct fab_listener *fl)
{
	struct tcp_listener *l = container_of(fl, struct tcp_listener, base);
	struct tcp_cm *cm = to_cm(fl->cm);
	struct tcp_conn *c, *tmp;

	pthread_mutex_lock(&cm->lock);
	list_for_each_safe(c, tmp, &cm->handshakes, hs_link) {
		if (c->listener == l)
			stranger_drop(c);
	}
	/* Requests nobody has seen yet. */
	list_for_each_safe(c, tmp, &cm->events, ev_link) {
		if (c->listener == l) {
			list_del(&c->ev_link);
			tcp_conn_free(c);
		}
	}
	list_del(&l->link);
	pthread_mutex_unlock(&cm->lock);
	close(l->fd);
	free(l);
}

/* ---- the cm ---- */

int tcp_cm_create(struct fab_cm **out)
{
	struct tcp_cm *cm = calloc(1, sizeof(*cm));
	int rc;

	if (!cm)
		return -ENOMEM;
	cm->base.ops = &fab_tcp;
	pthread_mutex_init(&cm->lock, NULL);
	list_init(&cm->listeners);
	list_init(&cm->handshakes);
	list_init(&cm->events);
	cm->timer.ready = timer_ready;
	cm->timer_ms = CLOCK_NEVER;
	cm->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (cm->epfd < 0) {
		rc = -errno;
		goto err_free;
	}
	cm->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cm->timerfd < 0) {
		rc = -errno;
		goto err_epoll;
	}
	rc = watch(cm, EPOLL_CTL_ADD, cm->timerfd, EPOLLIN, &cm->timer);
	if (rc)
		goto err_timer;
	*out = &cm->base;
	return 0;

err_timer:
	close(cm->timerfd);
err_epoll:
	close(cm->epfd);
err_free:
	pthread_mutex_destroy(&cm->lock);
	free(cm);
	return rc;
}

void tcp_cm_destroy(struct fab_cm *fcm)
{
	struct tcp_cm *cm = to_cm(fcm);

	assert(list_empty(&cm->listeners) && list_empty(&cm->handshakes) &&
	       list_empty(&cm->events));
	close(cm->timerfd);
	close(cm->epfd);
	pthread_mutex_destroy(&cm->lock);
	free(cm);
}

int tcp_cm_fd(const struct fab_cm *cm)
{
	return to_cm(cm)->epfd;
}

static int take_event(struct tcp_cm *cm, struct fab_event *ev)
{
	struct list *e = list_pop(&cm->events);
	struct tcp_conn *c;

	if (!e)
		return 0;
	c = list_entry(e, struct tcp_conn, ev_link);
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

/* One source at a time, because serving one may free another. */
static int serve(struct tcp_cm *cm)
{
	struct epoll_event e;
	int n;

	do {
		n = epoll_wait(cm->epfd, &e, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n)
		((struct tcp_source *)e.data.ptr)->ready(e.data.ptr, e.events);
	return n;
}

int tcp_cm_get_event(struct fab_cm *fcm, struct fab_event *ev)
{
	struct tcp_cm *cm = to_cm(fcm);
	int round = 0, n = 1, rc;

	pthread_mutex_lock(&cm->lock);
	expire(cm);
	while (!(rc = take_event(cm, ev)) && n > 0 && round++ < CM_ROUND)
		n = serve(cm);
	if (n < 0)
		rc = n;
	update_timer(cm, round > CM_ROUND);
	pthread_mutex_unlock(&cm->lock);
	return rc;
}

void tcp_cm_forget(struct tcp_conn *c)
{
	struct tcp_cm *cm = to_cm(c->base.cm);

	pthread_mutex_lock(&cm->lock);
	conn_unwatch(c);
	list_del(&c->ev_link);
	pthread_mutex_unlock(&cm->lock);
}

/* ---- set-up calls of the user ---- */

int tcp_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = to_cm(conn->cm);
	int one = 1, rc = 0;

	if (c->fd >= 0 || conn_state(c) != TCP_IDLE)
		return -EINVAL;
	c->fd = open_socket(dst);
	if (c->fd < 0)
		return c->fd;
	if (src) {
		/* The port is chosen by connect(), where it need not be free towards everybody. */
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(c->fd, (const struct sockaddr *)&src->ss, src->len))
			rc = -errno;
	}
	if (rc) {
		close(c->fd);
		c->fd = -1;
		return rc;
	}
	set_options(c->fd);
	c->base.peer = *dst;
	c->base.local = src ? *src : (struct fab_addr){ .provider = &fab_tcp };
	c->source.ready = conn_ready;
	pthread_mutex_lock(&cm->lock);
	conn_report(c, FAB_EVENT_ROUTE_RESOLVED, 0);
	update_timer(cm, false);
	pthread_mutex_unlock(&cm->lock);
	return 0;
}

int tcp_connect(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = to_cm(conn->cm);
	int err = 0;

	if (!c->pd || conn_state(c) != TCP_IDLE || !list_empty(&c->ev_link))
		return -EINVAL;
	if (len)
		memcpy(c->hs_buf, private_data, len);
	c->hs_len = (uint32_t)len;
	if (connect(c->fd, (const struct sockaddr *)&c->base.peer.ss, c->base.peer.len) &&
	    errno != EINPROGRESS)
		err = errno;
	pthread_mutex_lock(&cm->lock);
	conn_set_state(c, TCP_CONNECTING);
	start_deadline(c);
	if (!err)
		err = -conn_watch(c, EPOLLOUT);
	if (err)
		active_fail(c, -err, strerror(err));
	update_timer(cm, false);
	pthread_mutex_unlock(&cm->lock);
	return 0;
}

int tcp_accept(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);
	struct tcp_cm *cm = to_cm(conn->cm);
	int rc;

	if (!c->pd || conn_state(c) != TCP_REQUESTED)
		return -EINVAL;
	rc = send_frame(c, TCP_FRAME_ACCEPT, 0, private_data, len);
	if (rc)
		return rc;
	pthread_mutex_lock(&cm->lock);
	conn_set_state(c, TCP_UP);
	conn_report(c, FAB_EVENT_ESTABLISHED, 0);
	update_timer(cm, false);
	pthread_mutex_unlock(&cm->lock);
	return 0;
}

void tcp_reject(struct fab_conn *conn, const void *private_data, size_t len)
{
	struct tcp_conn *c = tcp_conn(conn);

	assert(conn_state(c) == TCP_REQUESTED);
	/* If it cannot be sent the peer sees the connection closed, which refuses it as well. */
	send_frame(c, TCP_FRAME_REJECT, 0, private_data, len);
	tcp_cm_forget(c);
	tcp_conn_free(c);
}
