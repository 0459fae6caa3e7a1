/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake: CONNECT, and ACCEPT or REJECT, as rtrs-protocol(7) defines them.
 *
 * Owns nothing; runs under cm->lock on the cm's thread, when a socket in its set-up is ready.  A
 * handshake ends with an event or, for a stranger, with the connection gone and a log line. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "tcp-cm.h"
#include "tcp-hs-frame.h"
#include "tcp-hs-tls.h"
#include "tcp-hs-why.h"
#include "tcp-stream.h"

static struct log_limit garbage_limit = LOG_LIMIT_INIT(10, 10000);
static struct log_limit plain_limit = LOG_LIMIT_INIT(1, 60000);

#define HS_WHY_LEN FAB_TLS_WHY_LEN

/* ---- the end of a handshake ---- */

void tcp_hs_drop(struct tcp_conn *c)
{
	tcp_cm_conn_unwatch(c);
	tcp_aside_leave(&tcp_cm(c->base.cm)->aside, c);
	tcp_conn_free(c);
}

/* tcp_hs_refuse(); @tls: because of TLS. */
static void refuse(struct tcp_conn *c, bool tls, const char *why)
{
	const struct fab_cm *cm = c->base.cm;
	char addr[FAB_ADDR_STRLEN];

	fab_addr_format(&c->base.peer, addr, sizeof(addr));
	/* A peer that connects and closes without a byte is a monitor, not an attack. */
	if ((c->hs_len || c->tls || c->tls_refused) && cm->refused)
		cm->refused(cm->admit_arg, &c->base.peer, tls, why);
	else if (c->hs_len || c->tls || c->tls_refused)
		log_event_limited(&garbage_limit, LOG_LEVEL_WARN,
				  LOG_FIELDS(PEER_GARBAGE, .peer = addr), NULL,
				  "tcp %s: closed during the handshake: %s", addr, why);
	else
		log_dbg(NULL, "tcp %s: closed before the handshake: %s", addr, why);
	tcp_hs_drop(c);
}

void tcp_hs_refuse(struct tcp_conn *c, const char *why)
{
	refuse(c, false, why);
}

void tcp_hs_fail_active(struct tcp_conn *c, int err, const char *why)
{
	tcp_cm_conn_unwatch(c);
	tcp_conn_set_state(c, TCP_DEAD);
	tcp_conn_set_cause(c, "%s", why);
	tcp_cm_report(c, FAB_EVENT_UNREACHABLE, err);
}

/* End a set-up without a connection: a stranger is refused, the active side gets an event. */
static void setup_failed(struct tcp_conn *c, int err, const char *why)
{
	if (tcp_conn_state(c) == TCP_STRANGER)
		refuse(c, c->hs == TCP_HS_TLS || c->tls_refused ||
		       (c->tls && *tcp_stream_why(c)), why);
	else
		tcp_hs_fail_active(c, err, why);
}

void tcp_hs_expire(struct tcp_conn *c)
{
	setup_failed(c, -ETIMEDOUT, tcp_hs_why_silent(c));
}

/* ---- frames ---- */

static bool first_byte_ok(uint8_t op)
{
	return op == TCP_FRAME_CONNECT || op == TCP_FRAME_ACCEPT || op == TCP_FRAME_REJECT;
}

/* Read exactly a frame and not a byte more: the bytes behind belong to fab_poll().  Returns 1 with
 * @f, 0 when bytes are missing, or -errno with @why; NULL: the first byte is of another
 * protocol. */
static int read_frame(struct tcp_conn *c, struct tcp_frame *f, const char **why)
{
	uint32_t need;
	ssize_t n;

	for (;;) {
		need = TCP_FRAME_HDR_LEN;
		/* Checked before a whole header: a peer of another protocol may send less, and
		 * wait. */
		if (c->hs_len && !first_byte_ok(c->hs_buf[0])) {
			*why = NULL;
			return -EPROTO;
		}
		if (c->hs_len >= TCP_FRAME_HDR_LEN) {
			*why = tcp_frame_decode(c->hs_buf, f);
			if (*why)
				return -EPROTO;
			need += f->length;
			if (c->hs_len == need)
				return 1;
		}
		n = tcp_stream_recv(c, &(struct iovec){ c->hs_buf + c->hs_len,
							need - c->hs_len }, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			*why = n && *tcp_stream_why(c) ? tcp_stream_why(c) :
			       n && errno != ECONNRESET ? strerror(errno) : tcp_hs_why_closed(c);
			return n ? -errno : -ECONNRESET;
		}
		c->hs_len += (uint32_t)n;
	}
}

static void stranger_frame(struct tcp_conn *c, const struct tcp_frame *f)
{
	if (f->op != TCP_FRAME_CONNECT) {
		tcp_hs_refuse(c, "expected CONNECT");
		return;
	}
	if (f->rkey != TCP_FRAME_VERSION) {
		tcp_hs_send(c, TCP_FRAME_REJECT, TCP_FRAME_F_VERSION, NULL, 0);
		tcp_hs_refuse(c, "unknown version of the tcp framing");
		return;
	}
	if (c->hs == TCP_HS_PLAIN_REFUSED) {
		tcp_hs_send(c, TCP_FRAME_REJECT, TCP_FRAME_F_TLS, NULL, 0);
		refuse(c, true, "the peer does not speak TLS, which is required here");
		return;
	}
	tcp_cm_conn_unwatch(c);
	tcp_conn_set_state(c, TCP_REQUESTED);
	c->pdata_len = f->length;
	tcp_cm_report(c, FAB_EVENT_CONNECT_REQUEST, 0);
}

static int send_connect(struct tcp_conn *c)
{
	int rc = fab_conn_seal(&c->base, c->connect_data, c->connect_len);

	if (rc)
		return rc;
	rc = tcp_hs_send(c, TCP_FRAME_CONNECT, 0, c->connect_data, c->connect_len);
	/* A server that refuses an address sends its answer and closes without reading.  The answer
	 * is read later. */
	return rc == -EPIPE ? 0 : rc;
}

/* The server has no TLS, or requires TLS. */
static void reply_about_tls(struct tcp_conn *c)
{
	enum fab_tls_mode mode = fab_tls_mode(c->base.cm->tls);
	char addr[FAB_ADDR_STRLEN];
	int rc;

	if (mode == FAB_TLS_OFF) {
		tcp_hs_fail_active(c, -EPROTO, "the server requires TLS: expected tls=require and "
				   "tls-psk=FILE or tls-certificates=DIR");
		return;
	}
	if (mode == FAB_TLS_REQUIRE || !c->tls_refused) {
		tcp_hs_fail_active(c, -EPROTO, "the server has no TLS (tls=off there), which is "
				   "required here");
		return;
	}
	c->tls_refused = false;
	c->hs_len = 0;
	rc = send_connect(c);
	if (rc) {
		tcp_hs_fail_active(c, rc, strerror(-rc));
		return;
	}
	log_limited(&plain_limit, LOG_LEVEL_WARN, NULL,
		    "tcp %s: the server has no TLS: going on without (tls=require refuses this)",
		    fab_addr_format(&c->base.peer, addr, sizeof(addr)));
}

static void reply_frame(struct tcp_conn *c, const struct tcp_frame *f)
{
	if (f->op == TCP_FRAME_REJECT && (f->flags & TCP_FRAME_F_TLS) && !c->tls) {
		reply_about_tls(c);
		return;
	}
	if (f->op == TCP_FRAME_REJECT && (f->flags & TCP_FRAME_F_VERSION)) {
		tcp_hs_fail_active(c, -EPROTONOSUPPORT,
				   "peer speaks another version of the tcp framing");
		return;
	}
	if (f->op == TCP_FRAME_CONNECT || f->rkey != TCP_FRAME_VERSION) {
		tcp_hs_fail_active(c, -EPROTO, "peer answered with a frame that is no answer");
		return;
	}
	tcp_cm_conn_unwatch(c);
	c->pdata_len = f->length;
	if (f->op == TCP_FRAME_REJECT) {
		tcp_conn_set_state(c, TCP_DEAD);
		tcp_conn_set_cause(c, "rejected by the peer");
		tcp_cm_report(c, FAB_EVENT_REJECTED, -ECONNREFUSED);
	} else {
		tcp_conn_set_state(c, TCP_UP);
		tcp_cm_report(c, FAB_EVENT_ESTABLISHED, 0);
	}
}

static void frame_ready(struct tcp_conn *c)
{
	struct tcp_frame f = { 0 };
	char said[HS_WHY_LEN];
	const char *why;
	int rc = read_frame(c, &f, &why);

	if (rc < 0 && !why) {
		tcp_hs_why_said(c, said);
		why = said;
	}
	if (rc < 0)
		setup_failed(c, rc, why);
	else if (rc > 0 && tcp_conn_state(c) == TCP_STRANGER)
		stranger_frame(c, &f);
	else if (rc > 0)
		reply_frame(c, &f);
}

/* TLS's handshake is over, by TLS or in plain; the active side sends its CONNECT behind. */
static int secured(struct tcp_conn *c)
{
	int rc = 0;

	tcp_aside_leave(&tcp_cm(c->base.cm)->aside, c);
	if (tcp_conn_state(c) == TCP_SECURING) {
		tcp_conn_set_state(c, TCP_WAIT_REPLY);
		/* In plain the answer has come already. */
		rc = c->tls_refused ? 0 : send_connect(c);
	}
	return rc ? rc : tcp_cm_conn_watch(c, EPOLLIN);
}

/* Go on with TLS's handshake: the thread of handshakes has @c, until tcp_hs_step_done(). */
static int secure(struct tcp_conn *c)
{
	struct tcp_cm *cm = tcp_cm(c->base.cm);
	int rc;

	if (tcp_hs_tls_answered(c))
		return secured(c);
	tcp_cm_conn_pause(c);
	rc = tcp_aside_lend(&cm->aside, c, cm->base.fd, tcp_hs_step_done);
	return rc ? rc : -EAGAIN;
}

/* The handshake of @c has come to @rc, as tcp-hs-tls.h says; @why is the cause, "": @rc says it. */
static void go_on(struct tcp_conn *c, int rc, const char *why)
{
	if (rc == -EAGAIN)
		return;
	if (rc)
		setup_failed(c, rc, *why ? why : rc == -ECONNRESET ? tcp_hs_why_closed(c) :
						 strerror(-rc));
	else
		frame_ready(c);
}

static void handshake_ready(struct tcp_conn *c)
{
	int rc = 0;

	if (c->hs == TCP_HS_BEGIN)
		rc = tcp_hs_tls_begin(c);
	if (!rc && c->hs == TCP_HS_TLS_REFUSED)
		rc = tcp_hs_tls_refuse(c);
	if (!rc && c->hs == TCP_HS_TLS)
		rc = secure(c);
	go_on(c, rc, "");
}

void tcp_hs_step_done(struct tcp_source *src, uint32_t events)
{
	struct tcp_conn *c = tcp_aside_take(container_of(src, struct tcp_aside, source));
	char why[HS_WHY_LEN] = "";
	int rc, err;

	/* The set-up may be over, because its time was: of the active side the connection stays. */
	if (!c || tcp_conn_state(c) == TCP_DEAD)
		return;
	rc = c->step->rc;
	snprintf(why, sizeof(why), "%s", c->step->why);
	if (rc == -EAGAIN) {
		err = tcp_cm_conn_watch(c, c->step->events);
		rc = err ? err : rc;
	} else if (!rc) {
		rc = tcp_hs_tls_done(c, why);
		rc = rc ? rc : secured(c);
	}
	go_on(c, rc, why);
}

/* True if the listener runs as a user that the cm trusts: any user may have taken the name of an
 * AF_UNIX address.  False: the connection has failed. */
static bool peer_is_trusted(struct tcp_conn *c)
{
	const struct fab_users *servers = &c->base.cm->servers;
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);
	char why[HS_WHY_LEN], users[HS_WHY_LEN / 2];

	if (!fab_addr_is_unix(&c->base.peer))
		return true;
	getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (fab_users_have(servers, cred.uid))
		return true;
	snprintf(why, sizeof(why),
		 "user %u listens there (process %d), expected user %s (server-uid)",
		 (unsigned)cred.uid, (int)cred.pid,
		 fab_users_format(servers, users, sizeof(users)));
	tcp_hs_fail_active(c, -ECONNABORTED, why);
	return false;
}

static void connect_ready(struct tcp_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err && !peer_is_trusted(c))
		return;
	if (!err) {
		c->base.local.len = sizeof(c->base.local.ss);
		if (getsockname(c->fd, (struct sockaddr *)&c->base.local.ss, &c->base.local.len))
			err = errno;
		c->base.local.pid = getpid();
		c->base.local.uid = geteuid();
	}
	if (!err && fab_tls_mode(c->base.cm->tls) != FAB_TLS_OFF) {
		tcp_conn_set_state(c, TCP_SECURING);
		err = -tcp_hs_tls_start(c);
	} else if (!err) {
		tcp_conn_set_state(c, TCP_WAIT_REPLY);
		c->hs = TCP_HS_FRAME;
		err = -send_connect(c);
	}
	if (!err && c->hs != TCP_HS_TLS)
		err = -tcp_cm_conn_watch(c, EPOLLIN);
	if (err)
		tcp_hs_fail_active(c, -err, strerror(err));
	else if (c->hs == TCP_HS_TLS)
		handshake_ready(c);
}

void tcp_hs_ready(struct tcp_source *src, uint32_t events)
{
	struct tcp_conn *c = container_of(src, struct tcp_conn, source);

	if (tcp_conn_state(c) == TCP_CONNECTING)
		connect_ready(c);
	else
		handshake_ready(c);
}
