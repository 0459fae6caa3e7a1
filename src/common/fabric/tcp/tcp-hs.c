/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake: CONNECT, and ACCEPT or REJECT, as rtrs-protocol(7) defines them; the table of a
 * connection's set-up.  Runs under cm->lock on the cm's thread, when a socket in its set-up is
 * ready.
 *
 * The happy path, active: look_connected() ends connect(2); begin_tls(), unless TLS is off;
 * send_connect(); read_reply() takes the ACCEPT, and the event is ESTABLISHED.  Passive:
 * look_first() sees whether the peer speaks TLS; begin_tls() if so; read_connect(), and the event
 * is CONNECT_REQUEST, which the user answers.
 *
 * Possible failures: silence, a close, a frame that is none, TLS that one end requires and the
 * other one has not: fail() reports UNREACHABLE, and frees an unproven peer, with a line in the
 * log.  An action does not touch a connection behind an event or fail(). */
#define FSM_PREFIX TCP_

#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "log.h"
#include "tcp-cm.h"
#include "tcp-tls.h"

static struct log_limit garbage_limit = LOG_LIMIT_INIT(10, 10000);
static struct log_limit plain_limit = LOG_LIMIT_INIT(1, 60000);

#define PASSIVE \
	(IN(TAKEN) | IN(TAKES_TLS) | IN(REFUSES_HELLO) | IN(SKIPS_HELLO) | IN(WAIT_PLAIN) | \
	 IN(REFUSES_PLAIN) | IN(WAIT_CONNECT))
#define ACTIVE (IN(CONNECTING) | IN(SECURING) | IN(ANSWERED_PLAIN) | IN(WAIT_REPLY))

static bool is_in(const struct tcp_conn *c, unsigned states)
{
	return states >> tcp_conn_state(c) & 1;
}

void tcp_hs_event(struct tcp_conn *c, enum tcp_event event)
{
	char name[FAB_ADDR_STRLEN];

	fsm_run(&tcp_hs_fsm, fab_addr_log_name(&c->base.peer, name), &c->state, event, c);
}

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
	bool spoke = c->hs_len || c->tls || is_in(c, IN(SKIPS_HELLO) | IN(WAIT_PLAIN));
	char addr[FAB_ADDR_STRLEN];

	fab_addr_format(&c->base.peer, addr, sizeof(addr));
	/* A peer that connects and closes without a byte is a monitor, not an attack. */
	if (spoke && cm->refused)
		cm->refused(cm->admit_arg, &c->base.peer, tls, why);
	else if (spoke)
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

void tcp_hs_tell_pushed_out(struct tcp_conn *c)
{
	struct tcp_cm *cm = tcp_cm(c->base.cm);

	/* A step that is under way takes the session and the socket. */
	tcp_aside_leave(&cm->aside, c);
	if (cm->base.tells_pushed_out && c->fd >= 0 && !(c->tls && tcp_tls_heard(c)))
		tcp_hs_send_refusal(c->fd, cm->base.pushed_out, cm->base.refusal_len);
}

/* End the set-up of the active side, and report @type. */
static void end_active(struct tcp_conn *c, enum fab_event_type type, int rc, const char *why)
{
	tcp_cm_conn_unwatch(c);
	tcp_hs_event(c, TCP_EV_END);
	tcp_conn_set_cause(c, "%s", why);
	tcp_cm_report(c, type, rc);
}

/* True if @rc ends the set-up of the active side by a close behind the hello of the server's TLS,
 * without an alert: the server has our key, and too many in set-up. */
static bool is_closed_behind_hello(const struct tcp_conn *c, int rc)
{
	return (rc == -ECONNRESET || rc == -EPIPE) && is_in(c, IN(SECURING) | IN(WAIT_REPLY)) &&
	       c->tls && tcp_tls_heard(c);
}

/* End the set-up of @c by -errno @rc, for the reason @why, "": @rc says it.  An unproven peer is
 * freed, the active side gets UNREACHABLE. */
static void fail(struct tcp_conn *c, int rc, const char *why)
{
	if (is_closed_behind_hello(c, rc)) {
		rc = -EUSERS;
		why = "the server closed the connection behind its TLS hello: too many connect at "
		      "once, or the server ended";
	}
	if (!*why)
		why = rc == -ECONNRESET ? tcp_hs_why_closed(c) : strerror(-rc);
	if (is_in(c, PASSIVE))
		refuse(c, is_in(c, IN(TAKES_TLS) | IN(SKIPS_HELLO) | IN(WAIT_PLAIN)) ||
		       (c->tls && *tcp_stream_why(c)), why);
	else
		end_active(c, FAB_EVENT_UNREACHABLE, rc, why);
}

/* fail(), but -EAGAIN: the socket will be ready again. */
static void stop(struct tcp_conn *c, int rc, const char *why)
{
	if (rc != -EAGAIN)
		fail(c, rc, why);
}

void tcp_hs_expire(struct tcp_conn *c)
{
	fail(c, -ETIMEDOUT, tcp_hs_why_silent(c));
}

/* ---- frames ---- */

static void connect_frame(struct tcp_conn *c, const struct tcp_frame *f)
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
	if (tcp_conn_state(c) == TCP_REFUSES_PLAIN) {
		tcp_hs_send(c, TCP_FRAME_REJECT, TCP_FRAME_F_TLS, NULL, 0);
		refuse(c, true, "the peer does not speak TLS, which is required here");
		return;
	}
	c->pdata_len = f->length;
	tcp_hs_event(c, TCP_EV_REQUEST);
}

/* The server has no TLS, or requires TLS. */
static void reply_about_tls(struct tcp_conn *c)
{
	enum fab_tls_mode mode = fab_tls_mode(c->base.cm->tls);
	bool answered = tcp_conn_state(c) == TCP_ANSWERED_PLAIN;
	char addr[FAB_ADDR_STRLEN];

	if (mode == FAB_TLS_OFF) {
		fail(c, -EPROTO, "the server requires TLS: expected tls=require and tls-psk=FILE "
		     "or tls-certificates=DIR");
		return;
	}
	if (mode == FAB_TLS_REQUIRE || !answered) {
		fail(c, -EPROTO, "the server has no TLS (tls=off there), which is required here");
		return;
	}
	log_limited(&plain_limit, LOG_LEVEL_WARN, NULL,
		    "tcp %s: the server has no TLS: continuing without (tls=require refuses this)",
		    fab_addr_format(&c->base.peer, addr, sizeof(addr)));
	c->hs_len = 0;
	tcp_hs_event(c, TCP_EV_PLAIN);
}

static void reply_frame(struct tcp_conn *c, const struct tcp_frame *f)
{
	if (f->op == TCP_FRAME_REJECT && (f->flags & TCP_FRAME_F_TLS) && !c->tls) {
		reply_about_tls(c);
		return;
	}
	if (f->op == TCP_FRAME_REJECT && (f->flags & TCP_FRAME_F_VERSION)) {
		fail(c, -EPROTONOSUPPORT, "peer speaks another version of the tcp framing");
		return;
	}
	if (f->op == TCP_FRAME_CONNECT || f->rkey != TCP_FRAME_VERSION) {
		fail(c, -EPROTO, "peer answered with a frame that is no answer");
		return;
	}
	c->pdata_len = f->length;
	if (f->op == TCP_FRAME_REJECT)
		end_active(c, FAB_EVENT_REJECTED, -ECONNREFUSED, "rejected by the peer");
	else
		tcp_hs_event(c, TCP_EV_UP);
}

/* ---- actions: frames ---- */

static void read_frame(struct tcp_conn *c,
		       void (*take)(struct tcp_conn *c, const struct tcp_frame *f))
{
	struct tcp_frame f = { 0 };
	char said[FAB_TLS_WHY_LEN];
	const char *why;
	int rc = tcp_hs_read(c, &f, &why);

	if (!why) {
		tcp_hs_why_said(c, said);
		why = said;
	}
	if (rc)
		stop(c, rc, why);
	else
		take(c, &f);
}

static void read_connect(void *object)
{
	read_frame(object, connect_frame);
}

static void read_reply(void *object)
{
	read_frame(object, reply_frame);
}

/* Watch for the frame that @read reads.  Bytes of it may have come with the end of TLS's
 * handshake, and then the socket does not show them. */
static void expect(struct tcp_conn *c, void (*read)(void *object))
{
	int rc = tcp_cm_conn_watch(c, EPOLLIN);

	if (rc)
		fail(c, rc, "");
	else
		read(c);
}

static void expect_connect(void *object)
{
	expect(object, read_connect);
}

/* The server has no TLS, or refuses the address. */
static void expect_refusal(void *object)
{
	tcp_tls_destroy(object);
	expect(object, read_reply);
}

static void send_connect(void *object)
{
	struct tcp_conn *c = object;
	int rc = fab_conn_seal(&c->base, c->connect_data, c->connect_len);

	if (!rc)
		rc = tcp_hs_send(c, TCP_FRAME_CONNECT, 0, c->connect_data, c->connect_len);
	/* A server that refuses an address, or a key, sends its answer and closes without reading.
	 * The answer is read later. */
	if (rc && rc != -EPIPE && rc != -ECONNRESET)
		fail(c, rc, "");
	else
		expect(c, read_reply);
}

static void tell_request(void *object)
{
	struct tcp_conn *c = object;

	tcp_cm_conn_unwatch(c);
	tcp_cm_report(c, FAB_EVENT_CONNECT_REQUEST, 0);
}

static void tell_established(void *object)
{
	struct tcp_conn *c = object;

	tcp_cm_conn_unwatch(c);
	tcp_cm_report(c, FAB_EVENT_ESTABLISHED, 0);
}

/* ---- actions: TLS ---- */

/* True if the peer has answered our hello in plain, and the set-up goes on with that. */
static bool is_answered(struct tcp_conn *c)
{
	if (tcp_conn_state(c) != TCP_SECURING || !tcp_hs_tls_answered(c))
		return false;
	tcp_aside_leave(&tcp_cm(c->base.cm)->aside, c);
	tcp_hs_event(c, TCP_EV_ANSWERED);
	return true;
}

/* The thread of handshakes has @c, until tcp_hs_step_done(). */
static void secure(void *object)
{
	struct tcp_conn *c = object;
	struct tcp_cm *cm = tcp_cm(c->base.cm);
	int rc;

	if (is_answered(c))
		return;
	tcp_cm_conn_pause(c);
	rc = tcp_aside_lend(&cm->aside, c, cm->base.fd, tcp_hs_step_done);
	if (rc)
		fail(c, rc, "");
}

void tcp_hs_step_done(struct tcp_conn *c)
{
	char why[FAB_TLS_WHY_LEN];
	int rc;

	/* The set-up may be over, because its time was: of the active side the connection stays. */
	if (tcp_conn_state(c) == TCP_DEAD)
		return;
	rc = c->step->rc;
	/* The step may have failed because the peer does not read what it refuses. */
	if (rc && is_answered(c))
		return;
	snprintf(why, sizeof(why), "%s", c->step->why);
	if (rc == -EAGAIN) {
		rc = tcp_cm_conn_watch(c, c->step->events);
		if (!rc)
			return;
	} else if (!rc) {
		rc = tcp_hs_tls_done(c, why);
	}
	if (rc) {
		fail(c, rc, why);
		return;
	}
	tcp_aside_leave(&tcp_cm(c->base.cm)->aside, c);
	tcp_hs_event(c, TCP_EV_SECURED);
}

static void begin_tls(void *object)
{
	struct tcp_conn *c = object;
	int rc = tcp_tls_create(c, c->base.cm->tls);

	if (rc)
		fail(c, rc, "");
	else
		secure(c);
}

/* ---- actions: the first bytes of an unproven peer ---- */

static void look_first(void *object)
{
	struct tcp_conn *c = object;
	int rc = tcp_hs_tls_look(c);

	if (rc >= 0)
		tcp_hs_event(c, (enum tcp_event)rc);
	else
		stop(c, rc, "");
}

static void read_hello(void *object)
{
	struct tcp_conn *c = object;
	int rc = tcp_hs_tls_hello(c);

	if (rc >= 0)
		tcp_hs_event(c, rc ? TCP_EV_HELLO : TCP_EV_PLAIN);
	else
		stop(c, rc, "");
}

static void skip_hello(void *object)
{
	struct tcp_conn *c = object;
	int rc = tcp_hs_tls_skip(c);

	if (!rc)
		tcp_hs_event(c, TCP_EV_PLAIN);
	else
		stop(c, rc, "");
}

/* ---- actions: connect(2) ---- */

static void look_connected(void *object)
{
	struct tcp_conn *c = object;
	char why[FAB_TLS_WHY_LEN];
	int rc = tcp_hs_connected(c, why);

	if (rc)
		fail(c, rc, why);
	else if (fab_tls_mode(c->base.cm->tls) == FAB_TLS_OFF)
		tcp_hs_event(c, TCP_EV_PLAIN);
	else
		tcp_hs_event(c, TCP_EV_TLS);
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	ROW(IN(IDLE), CONNECT, CONNECTING, NULL),
	ROW(IN(CONNECTING), READY, CONNECTING, look_connected),
	ROW(IN(CONNECTING), PLAIN, WAIT_REPLY, send_connect),
	ROW(IN(CONNECTING), TLS, SECURING, begin_tls),
	ROW(IN(SECURING), READY, SECURING, secure),
	ROW(IN(SECURING), SECURED, WAIT_REPLY, send_connect),
	ROW(IN(SECURING), ANSWERED, ANSWERED_PLAIN, expect_refusal),
	ROW(IN(ANSWERED_PLAIN), READY, ANSWERED_PLAIN, read_reply),
	ROW(IN(ANSWERED_PLAIN), PLAIN, WAIT_REPLY, send_connect),
	ROW(IN(WAIT_REPLY), READY, WAIT_REPLY, read_reply),
	ROW(IN(WAIT_REPLY), UP, UP, tell_established),
	ROW(ACTIVE, END, DEAD, NULL),

	ROW(IN(IDLE), ACCEPTED, TAKEN, NULL),
	ROW(IN(TAKEN), READY, TAKEN, look_first),
	ROW(IN(TAKEN), PLAIN, WAIT_CONNECT, read_connect),
	ROW(IN(TAKEN), NO_PLAIN, REFUSES_PLAIN, read_connect),
	ROW(IN(REFUSES_PLAIN), READY, REFUSES_PLAIN, read_connect),
	ROW(IN(TAKEN), TLS, TAKES_TLS, begin_tls),
	ROW(IN(TAKES_TLS), READY, TAKES_TLS, secure),
	ROW(IN(TAKES_TLS), SECURED, WAIT_CONNECT, expect_connect),
	ROW(IN(TAKEN), NO_TLS, REFUSES_HELLO, read_hello),
	ROW(IN(REFUSES_HELLO), READY, REFUSES_HELLO, read_hello),
	ROW(IN(REFUSES_HELLO), PLAIN, WAIT_CONNECT, read_connect),
	ROW(IN(REFUSES_HELLO), HELLO, SKIPS_HELLO, skip_hello),
	ROW(IN(SKIPS_HELLO), READY, SKIPS_HELLO, skip_hello),
	ROW(IN(SKIPS_HELLO), PLAIN, WAIT_PLAIN, read_connect),
	ROW(IN(WAIT_PLAIN), READY, WAIT_PLAIN, read_connect),
	ROW(IN(WAIT_CONNECT), READY, WAIT_CONNECT, read_connect),
	ROW(IN(WAIT_PLAIN) | IN(WAIT_CONNECT), REQUEST, REQUESTED, tell_request),
	ROW(IN(REQUESTED), UP, UP, tell_established),
};

static const char *const states[TCP_NSTATES] = {
	"idle", "connecting", "securing", "answered-plain", "wait-reply", "taken", "takes-tls",
	"refuses-hello", "skips-hello", "wait-plain", "refuses-plain", "wait-connect", "requested",
	"up", "dead",
};

static const char *const events[TCP_NEVENTS] = {
	"connect", "accepted", "ready", "tls", "no-tls", "hello", "plain", "no-plain", "answered",
	"secured", "request", "up", "end",
};

const struct fsm tcp_hs_fsm = FSM("handshake", rows, states, events);

void tcp_hs_begin(struct tcp_conn *c, int rc)
{
	c->source.ready = tcp_hs_ready;
	tcp_hs_event(c, TCP_EV_CONNECT);
	tcp_cm_start_deadline(c);
	if (!rc)
		rc = tcp_cm_conn_watch(c, EPOLLOUT);
	if (rc)
		fail(c, rc, "");
}

void tcp_hs_ready(struct tcp_source *src, uint32_t what)
{
	tcp_hs_event(container_of(src, struct tcp_conn, source), TCP_EV_READY);
}
