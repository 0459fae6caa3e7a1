/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of all loops: listed for the command "clients", and ended when their credentials are
 * revoked.  Clients live on their loops, so each loop lists or judges its own, on its thread, and
 * the service thread puts the lists together. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "clt-ctl-json.h"
#include "ctl-call.h"
#include "ctl-json.h"
#include "gate-tls.h"
#include "gate.h"
#include "log.h"

#define CHECKS 8u			/* in a pass: 1 or 2 ms, with certificates */

static struct log_limit trust_limit = LOG_LIMIT_INIT(10, 10000);

/* ---- a round ----
 * Each loop of the gateway runs a function on its thread, between its other work, and the service
 * loop hears when all loops have.  Several rounds may be under way: each loop takes them in the
 * order of their begin.  A message goes from the service loop to its loop and back, and the last
 * one to come back ends the round.  Loops end after the last message (gate.h), so none is lost:
 * a loop whose server has stopped answers, too. */

struct gate_round_ops {
	/* Thread of the loop of @l, number @i of the gateway.  l->server is NULL if the loop has
	 * stopped to serve. */
	void (*ask)(struct gate_loop *l, unsigned i, void *arg);
	/* All loops have run ask(), and what they wrote is seen.  Service thread. */
	void (*done)(void *arg);
};

struct round_part {
	struct gate_round *round;
	struct gate_loop *to;
	struct loop_msg msg;
};

struct gate_round {
	const struct gate_round_ops *ops;
	void *arg;
	struct loop *home;		/* the service loop */
	unsigned left;			/* parts that are not back; service thread */
	struct round_part parts[];
};

static void part_back_msg(struct loop_msg *msg)
{
	struct gate_round *r = container_of(msg, struct round_part, msg)->round;

	if (--r->left)
		return;
	r->ops->done(r->arg);
	free(r);
}

static void part_ask_msg(struct loop_msg *msg)
{
	struct round_part *part = container_of(msg, struct round_part, msg);
	struct gate_round *r = part->round;

	r->ops->ask(part->to, (unsigned)(part - r->parts), r->arg);
	loop_msg_init(msg, part_back_msg);
	loop_post(r->home, msg);
}

/* Begin a round through the loops of @g, which serves; @ops and @arg live until done().  0, or
 * -ENOMEM and neither function runs.  Service thread; done() does not run inside this call. */
static int gate_round_start(struct gate *g, const struct gate_round_ops *ops, void *arg)
{
	struct gate_round *r = calloc(1, sizeof(*r) + g->nloops * sizeof(r->parts[0]));

	if (!r)
		return -ENOMEM;
	r->ops = ops;
	r->arg = arg;
	r->home = g->loops[0].loop;
	r->left = g->nloops;
	for (unsigned i = 0; i < g->nloops; i++) {
		r->parts[i].round = r;
		r->parts[i].to = &g->loops[i];
		loop_msg_init(&r->parts[i].msg, part_ask_msg);
		loop_post(g->loops[i].loop, &r->parts[i].msg);
	}
	return 0;
}

/* ---- the list ---- */

/* An answer that is being made. */
struct listing_all {
	struct ctl_client *client;
	struct gate *gate;
	json_t *lists[CLT_RUN_LOOPS];	/* of each loop; NULL: no memory */
};

/* ---- thread of a loop ---- */

/* "key_age_ns", if a key has proven who the client is; "export" and "mode", if the client has one
 * open. */
static bool client_add_rest(json_t *object, const struct nbd_client *c,
			    const struct fab_identity *id)
{
	int64_t age_s = MAX(time(NULL) - id->key_since_s, 0);

	if (id->key && json_object_set_new(object, "key_age_ns",
					   json_integer((json_int_t)age_s * 1000000000)))
		return false;
	return !c->handle ||
	       (!json_object_set_new(object, "export",
				     ctl_json_text(gate_export_name(c->handle))) &&
		!json_object_set_new(object, "mode",
				     ctl_json_text(gate_export_mode(c->handle))));
}

static json_t *client_json(const struct nbd_client *c, uint64_t now_ms)
{
	static const char *const states[] = {
		[NBD_CLIENT_NEGOTIATES] = "negotiating", [NBD_CLIENT_OPEN] = "open",
		[NBD_CLIENT_LEAVES] = "leaving",
	};
	static const struct fab_identity none;
	const struct fab_identity *id = c->stream ? gate_stream_identity(c->stream) : &none;
	struct fab_addr addr;
	char peer[FAB_ADDR_STRLEN] = "";
	bool known = gate_listen_peer(c->fd, &addr) == 0;
	json_t *object;

	if (known)
		fab_addr_format(&addr, peer, sizeof(peer));
	object = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
			   "name", ctl_json_text(c->name),
			   "peer", ctl_json_text(peer),
			   "transport", ctl_json_text(known ? fab_addr_transport(&addr) : ""),
			   "identity", ctl_json_text(id->name),
			   "cipher", ctl_json_text(id->cipher),
			   "state", ctl_json_text(states[c->state]),
			   "up_ns", (json_int_t)(now_ms - c->since_ms) * 1000000,
			   "reads", (json_int_t)c->counts.reads,
			   "read_bytes", (json_int_t)c->counts.read_bytes,
			   "writes", (json_int_t)c->counts.writes,
			   "write_bytes", (json_int_t)c->counts.write_bytes,
			   "others", (json_int_t)c->counts.others,
			   "inflight", (json_int_t)c->inflight);
	return ctl_json_whole(object, object && client_add_rest(object, c, id));
}

/* The clients of a loop. */
struct loop_list {
	json_t *array;
	bool whole;
	uint64_t now_ms;
};

static enum nbd_visit list_client(void *arg, const struct nbd_client *c)
{
	struct loop_list *list = arg;

	list->whole = list->whole && ctl_json_add(list->array, client_json(c, list->now_ms));
	return NBD_VISIT_KEEP;
}

static void list_loop(struct gate_loop *l, unsigned i, void *arg)
{
	struct listing_all *all = arg;
	struct loop_list list = { .array = json_array(), .whole = true,
				  .now_ms = clock_now_ms() };

	if (l->server)
		nbd_server_visit(l->server, list_client, &list);
	all->lists[i] = ctl_json_whole(list.array, list.whole);
}

/* ---- service thread ---- */

/* One list of all clients; NULL: no memory. */
static json_t *lists_join(struct listing_all *all)
{
	json_t *array = json_array();
	bool whole = array;

	for (unsigned i = 0; i < all->gate->nloops; i++) {
		whole = whole && all->lists[i] && !json_array_extend(array, all->lists[i]);
		json_decref(all->lists[i]);
	}
	return ctl_json_whole(array, whole);
}

static void list_done(void *arg)
{
	struct listing_all *all = arg;
	const struct gate_exports *g = &all->gate->loops[0].exports;
	json_t *answer = clt_ctl_json(g->clt, g->conf, CLT_CTL_NAMES);

	ctl_answer(all->client,
		   ctl_json_with(answer, json_pack("{s:I,s:o}",
						   "now_ns", (json_int_t)clock_now_ns(),
						   "clients", lists_join(all))));
	free(all);
}

static const struct gate_round_ops list_round = { .ask = list_loop, .done = list_done };

void gate_clients_call(struct ctl_client *client, const char *value, void *arg)
{
	const struct gate_now *now = arg;
	struct listing_all *all;

	if (!now->gate) {
		ctl_refuse(client, "clients: the gateway serves no NBD clients now: it starts, or "
			   "stops");
		return;
	}
	all = calloc(1, sizeof(*all));
	if (!all)
		goto no_memory;
	all->client = client;
	all->gate = now->gate;
	if (gate_round_start(now->gate, &list_round, all) == 0)
		return;
	free(all);
no_memory:
	ctl_answer(client, NULL);
}

/* ---- revoked credentials ----
 * A loop looks at CHECKS clients in a pass, because each may cost the verification
 * of a certificate, and IO goes on in between. */

/* A pass of a loop over its clients. */
struct trust_look {
	uint64_t epoch;
	unsigned left;			/* checks */
	enum { LOOK_WHOLE, LOOK_CUT } result;
};

static enum nbd_visit look_at(void *arg, const struct nbd_client *c)
{
	struct trust_look *look = arg;
	char why[FAB_TLS_WHY_LEN];

	if (!c->stream || gate_stream_is_checked(c->stream, look->epoch))
		return NBD_VISIT_KEEP;
	if (!look->left) {
		look->result = LOOK_CUT;
		return NBD_VISIT_KEEP;
	}
	look->left--;
	if (gate_stream_check(c->stream, look->epoch, why))
		return NBD_VISIT_KEEP;
	log_event_limited(&trust_limit, LOG_LEVEL_WARN,
			  LOG_FIELDS(CLIENT_DROPPED, .peer = c->name,
				     .identity = gate_stream_identity(c->stream)->name),
			  c->name, "connection ends: %s", why);
	return NBD_VISIT_END;
}

void gate_clients_revoke_msg(struct loop_msg *msg)
{
	struct gate_loop *l = container_of(msg, struct gate_loop, revoke_msg);
	struct trust_look look = { .epoch = atomic_load(&l->gate->tls.epoch), .left = CHECKS };

	if (!l->server)
		return;
	nbd_server_visit(l->server, look_at, &look);
	if (look.result == LOOK_CUT)
		loop_post(l->loop, &l->revoke_msg);
}

void gate_clients_revoke(const struct gate_now *now)
{
	struct gate *g = now->gate;

	if (!g)
		return;
	/* ORDER: behind the change, and in front of the messages. */
	atomic_fetch_add(&g->tls.epoch, 1);
	for (unsigned i = 0; i < g->nloops; i++)
		loop_post(g->loops[i].loop, &g->loops[i].revoke_msg);
}
