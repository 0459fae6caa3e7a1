/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the handshakes that are under way.  A handshake watches its socket on the loop of its
 * connection, and lends its stream to the worker for a step at a time.
 *
 * A handshake that fails while a step runs ends when the step does.  Its socket is not watched
 * until then, because a hang-up would wake the loop again and again. */
#define FSM_PREFIX HANDSHAKE_

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "fsm.h"
#include "gate.h"
#include "log.h"
#include "util.h"

#define HANDSHAKES_MAX 256u		/* at once */
#define HANDSHAKES_NET_MAX 64u		/* of a host, or of a user of this machine */
#define HANDSHAKE_MS 10000		/* for the whole handshake */

enum handshake_state {
	HANDSHAKE_WATCHES,		/* waits for its client */
	HANDSHAKE_STEPS,		/* a step waits or runs */
	HANDSHAKE_FAILS,		/* has failed while its step runs; the watch is to go */
	HANDSHAKE_FAILED,		/* the watch has gone, and the step runs */
	HANDSHAKE_ENDS,			/* the watch is to go */
	HANDSHAKE_OVER,
	HANDSHAKE_NSTATES
};

enum handshake_event {
	HANDSHAKE_EV_READY,		/* the client has sent something, or takes something */
	HANDSHAKE_EV_AGAIN,		/* a step is done, and another one is to follow */
	HANDSHAKE_EV_DONE,		/* the last step is done, well or not */
	HANDSHAKE_EV_FAIL,		/* there is a reason to end it, and no step runs */
	HANDSHAKE_EV_FAIL_LATER,	/* likewise, and a step runs */
	HANDSHAKE_EV_UNWATCHED,
	HANDSHAKE_NEVENTS
};

struct handshake {
	atomic_uint state;		/* enum handshake_state */
	struct gate_tls_port *port;
	struct nbd_conn *conn;
	struct unproven_place place;	/* in port->unproven */
	struct loop_watch watch;
	const char *failed;		/* why it ends early, unless a step fails, too; NULL: it
					 * does not */
	char name[96];
	/* the worker's while a step waits or runs */
	struct worker_job step;
	struct gate_stream *stream;
	int rc;				/* of the last step */
	short events;			/* what the next step waits for */
	char why[FAB_TLS_WHY_LEN];	/* of @rc */
};

static const struct fsm handshake_fsm;

static void handshake_event(struct handshake *s, enum handshake_event event)
{
	fsm_run(&handshake_fsm, s->name, &s->state, event, s);
}

/* ---- the end ---- */

/* True if the handshake has succeeded, by credentials that are still those of the gateway.
 * RACE: a change that this check does not see is told to this loop behind it (gate.h), and
 * finds the connection with its stream. */
static bool handshake_holds(struct handshake *s)
{
	uint64_t epoch = atomic_load(&s->port->tls->epoch);
	struct nbd_stream *stream = gate_stream_nbd(s->stream);

	if (s->failed || s->rc)
		return false;
	return gate_stream_is_checked(stream, epoch) || gate_stream_check(stream, epoch, s->why);
}

static void give_back(void *object)
{
	struct handshake *s = object;
	bool holds = handshake_holds(s);
	/* A client that hears of a failure closes its connection before the step is known here. */
	bool by_step = !s->failed || (s->rc && s->rc != -EAGAIN);

	if (!holds)
		gate_stream_destroy(s->stream);
	nbd_tls_done(s->conn, holds ? gate_stream_nbd(s->stream) : NULL,
		     by_step ? s->why : s->failed);
	free(s);
}

static void unwatched(struct loop_watch *watch)
{
	handshake_event(container_of(watch, struct handshake, watch), HANDSHAKE_EV_UNWATCHED);
}

static void leave(void *object)
{
	struct handshake *s = object;

	unproven_leave(&s->place);
	loop_unwatch(&s->watch);
}

static void handshake_fail(struct handshake *s, const char *why)
{
	bool runs = atomic_load(&s->state) == HANDSHAKE_STEPS &&
		    !worker_cancel(&s->port->worker, &s->step);

	s->failed = why;
	handshake_event(s, runs ? HANDSHAKE_EV_FAIL_LATER : HANDSHAKE_EV_FAIL);
}

static void handshake_pushed_out(struct unproven_place *place, enum unproven_why why)
{
	handshake_fail(container_of(place, struct handshake, place), why == UNPROVEN_LATE ?
		       "TLS: the handshake has taken 10 s" :
		       "TLS: too many handshakes at once, and a newcomer took its place");
}

/* ---- steps ---- */

/* Thread of the worker. */
static void step_work(struct worker_job *job)
{
	struct handshake *s = container_of(job, struct handshake, step);

	s->events = POLLIN;
	s->rc = gate_stream_handshake(s->stream, &s->events, s->why);
}

static void step_done(struct worker_job *job)
{
	struct handshake *s = container_of(job, struct handshake, step);
	char text[FAB_TLS_WHY_LEN];

	if (!s->rc) {
		gate_stream_describe(s->stream, text, sizeof(text));
		log_dbg(s->name, "%s", text);
	}
	handshake_event(s, s->rc == -EAGAIN ? HANDSHAKE_EV_AGAIN : HANDSHAKE_EV_DONE);
}

/* The socket shows hang-up and error all the same: no step is spent on a client that went, or whose
 * connection was ended, as all are when the program ends. */
static void make_step(void *object)
{
	struct handshake *s = object;

	loop_watch_events(&s->watch, 0);
	if (!worker_run(&s->port->worker, &s->step))
		return;
	s->failed = "TLS: no thread for handshakes";
	handshake_event(s, HANDSHAKE_EV_FAIL);
}

static void wait_for_client(void *object)
{
	struct handshake *s = object;

	loop_watch_events(&s->watch, s->events);
}

static bool ready(struct loop_watch *watch)
{
	struct handshake *s = container_of(watch, struct handshake, watch);

	if (atomic_load(&s->state) == HANDSHAKE_STEPS)
		handshake_fail(s, "TLS: peer closed");
	else
		handshake_event(s, HANDSHAKE_EV_READY);
	return false;
}

static const struct fsm_row rows[] = {
	ROW(IN(WATCHES), READY, STEPS, make_step),
	ROW(IN(STEPS), AGAIN, WATCHES, wait_for_client),
	ROW(IN(STEPS), DONE, ENDS, leave),
	ROW(IN(ENDS), UNWATCHED, OVER, give_back),

	ROW(IN(WATCHES) | IN(STEPS), FAIL, ENDS, leave),
	ROW(IN(STEPS), FAIL_LATER, FAILS, leave),
	ROW(IN(FAILS), AGAIN, ENDS, NULL),
	ROW(IN(FAILS), DONE, ENDS, NULL),
	ROW(IN(FAILS), UNWATCHED, FAILED, NULL),
	ROW(IN(FAILED), AGAIN, OVER, give_back),
	ROW(IN(FAILED), DONE, OVER, give_back),
};

static const char *const states[HANDSHAKE_NSTATES] = {
	"watches", "steps", "fails", "failed", "ends", "over",
};

static const char *const events[HANDSHAKE_NEVENTS] = {
	"ready", "again", "done", "fail", "fail later", "unwatched",
};

static const struct fsm handshake_fsm = FSM("TLS handshake", rows, states, events);

/* ---- the begin ---- */

static void handshake_start(const struct nbd_tls *nbd, struct nbd_conn *conn, int fd,
			    const char *name)
{
	struct gate_tls_port *port = container_of(nbd, struct gate_tls_port, nbd);
	struct gate_tls *t = port->tls;
	struct handshake *s;
	struct fab_addr peer;

	if (gate_listen_peer(fd, &peer)) {
		nbd_tls_done(conn, NULL, "TLS: peer closed");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (s)
		s->stream = gate_stream_create(t->creds, fd, atomic_load(&t->epoch));
	if (!s || !s->stream)
		goto err;
	s->port = port;
	s->conn = conn;
	s->watch = (struct loop_watch){ .fd = fd, .events = POLLIN, .ready = ready,
					.closed = unwatched };
	s->step.work = step_work;
	s->step.done = step_done;
	s->step.net = fab_addr_net(&peer);
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (loop_watch(port->loop, &s->watch) < 0)
		goto err;
	unproven_enter(&port->unproven, &s->place, s->step.net, HANDSHAKE_MS);
	return;
err:
	if (s)
		gate_stream_destroy(s->stream);
	free(s);
	nbd_tls_done(conn, NULL, "TLS: no memory for a handshake");
}

const struct nbd_tls *gate_tls_port_init(struct gate_tls_port *port, struct gate_tls *tls,
					 struct loop *loop, unsigned nloops)
{
	if (!tls->creds)
		return NULL;
	port->nbd.mode = fab_tls_mode(tls->creds) == FAB_TLS_REQUIRE ? NBD_TLS_REQUIRE : NBD_TLS_ON;
	port->nbd.start = handshake_start;
	port->tls = tls;
	port->loop = loop;
	worker_init(&port->worker, loop);
	port->worker.name = "nbd-tls";
	unproven_init(&port->unproven, loop, HANDSHAKES_MAX / nloops, HANDSHAKES_NET_MAX / nloops,
		      handshake_pushed_out);
	return &port->nbd;
}

void gate_tls_port_fini(struct gate_tls_port *port)
{
	if (port->tls)
		worker_fini(&port->worker);
}
