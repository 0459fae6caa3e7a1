/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of all loops: listed for the command "clients", and ended when their credentials
 * are revoked.  Clients live on their loops, so each loop lists or judges its own, on its
 * thread, between its other work; the service thread puts the lists together. */
#include <config.h>

#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "ctl-json.h"
#include "ctl.h"
#include "gate.h"
#include "log.h"

#define CHECKS 8u			/* in a pass: 1 or 2 ms, with certificates */

static struct log_limit trust_limit = LOG_LIMIT_INIT(10, 10000);

/* ---- the list ----
 * A message goes from the service loop to each loop and back, and the last one to come back makes
 * the answer.  Loops end after the last message (gate_stop()), so none is lost: a loop whose server
 * has stopped answers, too.  Several answers may be under way. */

struct answer_part {
	struct clients_answer *all;
	struct gate_loop *of;
	struct loop_msg msg;
	json_t *array;			/* NULL: no memory */
};

/* An answer that is being made. */
struct clients_answer {
	struct ctl_client *client;
	struct gate *gate;
	unsigned left;			/* parts that are not back; service thread */
	struct answer_part parts[];	/* [gate->nloops] */
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
				     ctl_json_text(relay_name(c->handle))) &&
		!json_object_set_new(object, "mode",
				     ctl_json_text(relay_mode(c->handle))));
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

static void list_back_msg(struct loop_msg *msg);

static void list_loop_msg(struct loop_msg *msg)
{
	struct answer_part *part = container_of(msg, struct answer_part, msg);
	struct loop_list list = { .array = json_array(), .whole = true,
				  .now_ms = clock_now_ms() };

	if (part->of->server)
		nbd_server_visit(part->of->server, list_client, &list);
	part->array = ctl_json_whole(list.array, list.whole);
	loop_msg_init(msg, list_back_msg);
	loop_post(part->all->gate->loops[0].loop, msg);
}

/* ---- service thread ---- */

/* One list of all clients; NULL: no memory. */
static json_t *lists_join(struct clients_answer *all)
{
	json_t *array = json_array();
	bool whole = array;

	for (unsigned i = 0; i < all->gate->nloops; i++) {
		json_t *part = all->parts[i].array;

		whole = whole && part && !json_array_extend(array, part);
		json_decref(part);
	}
	return ctl_json_whole(array, whole);
}

static void list_back_msg(struct loop_msg *msg)
{
	struct clients_answer *all = container_of(msg, struct answer_part, msg)->all;
	const struct relay *g = &all->gate->loops[0].relay;

	if (--all->left)
		return;
	ctl_answer(all->client,
		   ctl_json_with(clt_ctl_json(g->clt, g->conf, CLT_CTL_NAMES),
				 json_pack("{s:I,s:o}", "now_ns", (json_int_t)clock_now_ns(),
					   "clients", lists_join(all))));
	free(all);
}

void gate_clients_call(struct ctl_client *client, const char *value, void *arg)
{
	struct gate *g = ((const struct gate_now *)arg)->gate;
	struct clients_answer *all;

	if (!g) {
		ctl_refuse(client, "clients: the gateway serves no NBD clients now: it starts, or "
			   "stops");
		return;
	}
	all = calloc(1, sizeof(*all) + g->nloops * sizeof(all->parts[0]));
	if (!all) {
		ctl_answer(client, NULL);
		return;
	}
	all->client = client;
	all->gate = g;
	all->left = g->nloops;
	for (unsigned i = 0; i < g->nloops; i++) {
		all->parts[i].all = all;
		all->parts[i].of = &g->loops[i];
		loop_msg_init(&all->parts[i].msg, list_loop_msg);
		loop_post(g->loops[i].loop, &all->parts[i].msg);
	}
}

/* ---- revoked credentials ----
 * A loop looks at CHECKS clients in a pass, because each may cost the verification of a
 * certificate, and IO goes on in between. */

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
