/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the handshakes that are under way.  A handshake goes as a message from the loop of its
 * connection to the thread of handshakes, and back.  The socket is watched by the loop that has the
 * handshake. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "gate-listen.h"
#include "gate-stream.h"
#include "gate-tls.h"
#include "log.h"
#include "loop-poll.h"
#include "util.h"

#define HANDSHAKES_MAX 256u			/* at once */
#define HANDSHAKES_NET_MAX 64u		/* of a host, or of a user of this machine */
#define HANDSHAKE_MS 10000			/* for the whole handshake */

/* Who waits for whom. */
enum handshake_state {
	HANDSHAKE_WATCHES,			/* the handshake for its client */
	HANDSHAKE_WAITS,			/* the client for a step: in gate_tls.steps */
};

struct handshake {
	uint64_t net;			/* of the client */
	enum handshake_state state;
	struct deal_item turn;		/* in gate_tls.steps */
	struct unproven_place place;	/* in gate_tls.unproven */
	struct gate_tls *tls;
	struct nbd_conn *conn;
	struct loop *home;		/* of @conn */
	struct loop_msg msg;
	struct loop_watch watch;
	struct gate_stream *stream;	/* NULL: it has failed, with @why */
	char name[96];
	char why[FAB_TLS_WHY_LEN];
};

/* ---- loop of the connection ---- */

/* The credentials may have changed since the handshake took its key or its certificates.
 * RACE: a change that this check does not see is told to this loop behind it (gate-trust.h), and
 * finds the connection with its stream. */
static void handshake_check(struct handshake *s)
{
	uint64_t epoch = atomic_load(&s->tls->epoch);

	if (!s->stream || gate_stream_is_checked(gate_stream_nbd(s->stream), epoch) ||
	    gate_stream_check(gate_stream_nbd(s->stream), epoch, s->why))
		return;
	gate_stream_destroy(s->stream);
	s->stream = NULL;
}

static void handshake_done_msg(struct loop_msg *msg)
{
	struct handshake *s = container_of(msg, struct handshake, msg);

	handshake_check(s);
	nbd_tls_done(s->conn, s->stream ? gate_stream_nbd(s->stream) : NULL, s->why);
	free(s);
}

/* ---- thread of handshakes ---- */

/* Hand @s back to its connection. */
static void handshake_return(struct handshake *s)
{
	loop_msg_init(&s->msg, handshake_done_msg);
	loop_post(s->home, &s->msg);
}

static void handshake_unwatched(struct loop_watch *watch)
{
	handshake_return(container_of(watch, struct handshake, watch));
}

/* End @s: with its stream, or as a failure because of @s->why. */
static void handshake_end(struct handshake *s)
{
	if (s->state == HANDSHAKE_WAITS)
		deal_leave(&s->turn);
	s->state = HANDSHAKE_WATCHES;
	unproven_leave(&s->place);
	loop_unwatch(&s->watch);
}

static void handshake_fail(struct handshake *s, const char *why)
{
	if (why)
		snprintf(s->why, sizeof(s->why), "%s", why);
	gate_stream_destroy(s->stream);
	s->stream = NULL;
	handshake_end(s);
}

static void handshake_ends(struct unproven_place *place, enum unproven_why why)
{
	handshake_fail(container_of(place, struct handshake, place), why == UNPROVEN_LATE ?
		   "TLS: the handshake has taken 10 s" :
		   "TLS: too many handshakes at once, and this is the oldest of its host");
}

/* Make the next step of @s. */
static void handshake_step(struct handshake *s)
{
	short events = POLLIN;
	int r = gate_stream_handshake(s->stream, &events, s->why);
	char text[FAB_TLS_WHY_LEN];

	if (r == 0) {
		gate_stream_describe(s->stream, text, sizeof(text));
		log_dbg(s->name, "%s", text);
		handshake_end(s);
	} else if (r != -EAGAIN) {
		handshake_fail(s, NULL);
	} else {
		loop_watch_events(&s->watch, events);
	}
}

/* Make a step: of each host in turn, because a host may have many handshakes. */
static void step_one(struct loop_task *task)
{
	struct gate_tls *t = container_of(task, struct gate_tls, step);
	struct deal_item *turn = deal_take(&t->steps);
	struct handshake *s = turn ? container_of(turn, struct handshake, turn) : NULL;

	if (!s)
		return;
	loop_defer(t->loop, &t->step);
	s->state = HANDSHAKE_WATCHES;
	handshake_step(s);
}

/* The socket shows hang-up and error to a handshake that waits, too: no step is spent on a client
 * that went, or whose connection was ended, as all are when the program ends. */
static bool handshake_ready(struct loop_watch *watch)
{
	struct handshake *s = container_of(watch, struct handshake, watch);

	if (s->state == HANDSHAKE_WAITS) {
		handshake_fail(s, "TLS: peer closed");
		return false;
	}
	s->state = HANDSHAKE_WAITS;
	loop_watch_events(&s->watch, 0);
	deal_add(&s->tls->steps, &s->turn, s->net);
	loop_defer(s->tls->loop, &s->tls->step);
	return false;
}

static void handshake_begin_msg(struct loop_msg *msg)
{
	struct handshake *s = container_of(msg, struct handshake, msg);
	struct gate_tls *t = s->tls;

	s->stream = gate_stream_create(t->creds, s->watch.fd, atomic_load(&t->epoch));
	if (!s->stream || loop_watch(t->loop, &s->watch) < 0) {
		gate_stream_destroy(s->stream);
		s->stream = NULL;
		snprintf(s->why, sizeof(s->why), "TLS: no memory for a handshake");
		handshake_return(s);
		return;
	}
	unproven_enter(&t->unproven, &s->place, s->net, HANDSHAKE_MS);
}

/* ---- the whole ---- */

/* Loop of the connection. */
static void handshake_start(const struct nbd_tls *nbd, struct nbd_conn *conn, int fd,
			    const char *name)
{
	const struct gate_tls_port *port = container_of(nbd, const struct gate_tls_port, nbd);
	struct handshake *s = calloc(1, sizeof(*s));
	struct fab_addr peer;

	if (!s) {
		nbd_tls_done(conn, NULL, "TLS: no memory for a handshake");
		return;
	}
	if (gate_listen_peer(fd, &peer)) {
		free(s);
		nbd_tls_done(conn, NULL, "TLS: peer closed");
		return;
	}
	s->net = fab_addr_net(&peer);
	s->tls = port->tls;
	s->conn = conn;
	s->home = port->loop;
	s->watch = (struct loop_watch){ .fd = fd, .events = POLLIN, .ready = handshake_ready,
					.closed = handshake_unwatched };
	snprintf(s->name, sizeof(s->name), "%s", name);
	loop_msg_init(&s->msg, handshake_begin_msg);
	loop_post(port->tls->loop, &s->msg);
}

int gate_tls_start(struct gate_tls *t, const struct fab_tls *creds)
{
	int r;

	*t = (struct gate_tls){ .creds = creds };
	deal_init(&t->steps);
	loop_task_init(&t->step, step_one);
	r = creds ? loop_poll_create("nbd-tls", &t->loop) : 0;
	unproven_init(&t->unproven, t->loop, HANDSHAKES_MAX, HANDSHAKES_NET_MAX, handshake_ends);
	return r;
}

void gate_tls_stop(struct gate_tls *t)
{
	if (t->loop)
		loop_poll_destroy(t->loop);
	t->loop = NULL;
}

const struct nbd_tls *gate_tls_port_init(struct gate_tls_port *port, struct gate_tls *t,
					 struct loop *loop)
{
	if (!t->loop)
		return NULL;
	port->nbd.mode = fab_tls_mode(t->creds) == FAB_TLS_REQUIRE ? NBD_TLS_REQUIRE : NBD_TLS_ON;
	port->nbd.start = handshake_start;
	port->tls = t;
	port->loop = loop;
	return &port->nbd;
}
