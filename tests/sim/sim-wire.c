/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connections of the sim provider say to each other, and what a message does to the one
 * that it reaches; faults, too, which do it without a message.  One thread.  Owns messages under
 * way.  They name connections by number, so what still arrives for one that was destroyed is thrown
 * away.  A message to a connection that is not there is answered with a disconnect, as a TCP stack
 * does. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim-fab-priv.h"

/* ---- arriving ---- */

static struct sim_conn *conn_find(uint64_t id)
{
	struct sim_conn *c;

	list_for_each(c, &sim_all_conns, all) {
		if (c->id == id)
			return c;
	}
	return NULL;
}

/* Tell the sender of @w something on behalf of a machine where no connection is there to do it. */
static void wire_reply(const struct sim_wire *w, enum sim_wire_type type)
{
	struct sim_wire *r = calloc(1, sizeof(*r));
	struct sim_flow flow = { 0 };

	assert(r);
	r->type = type;
	r->dst = w->src;
	r->msg.from = w->msg.to;
	r->msg.to = w->msg.from;
	r->msg.wire = w->msg.wire;
	r->msg.deliver = w->msg.deliver;
	r->msg.discard = w->msg.discard;
	sim_msg_send(&r->msg, &flow);
}

static void on_request(const struct sim_wire *w)
{
	struct sim_listener *l = sim_listener_find(w->msg.to, &w->dst_addr);
	struct sim_conn *c;

	if (!l) {
		wire_reply(w, SIM_WIRE_REFUSED);
		return;
	}
	c = sim_conn_new(l->cm);
	assert(c);
	c->state = SIM_REQUESTED;
	c->internal = true;
	c->listener = l;
	c->peer_id = w->src;
	c->peer_host = w->msg.from;
	memcpy(c->identity, c->peer_host->identity, sizeof(c->identity));
	c->key = c->peer_host->key;
	c->channel = w->channel;
	c->wire = w->msg.wire;
	c->base.local = w->dst_addr;
	c->base.peer = w->src_addr;
	if (!fab_cm_admits(&l->cm->base, &c->base.peer)) {
		fab_reject(&c->base, l->cm->base.refusal, l->cm->base.refusal_len);
		return;
	}
	sim_cm_event(c, FAB_EVENT_CONNECT_REQUEST, 0, w)->ev.listener = &l->base;
}

/* The answer to a connect request. */
static void on_answer(struct sim_conn *c, const struct sim_wire *w)
{
	if (c->state != SIM_CONNECTING)
		return;
	sim_event_cancel(&c->timer);
	if (w->type == SIM_WIRE_REP) {
		c->peer_id = w->src;
		c->state = SIM_UP;
		sim_cm_event(c, FAB_EVENT_ESTABLISHED, 0, w);
		sim_wire_send(c, sim_wire_new(c, SIM_WIRE_RTU, 0));
		return;
	}
	if (w->type == SIM_WIRE_REJ)
		sim_cm_event(c, FAB_EVENT_REJECTED, 0, w);
	else
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ECONNREFUSED, NULL);
	sim_conn_fail(c, false, "connection refused");
}

/* The other side is gone, whatever @c was doing. */
static void conn_lost(struct sim_conn *c, const char *why)
{
	if (c->state == SIM_FAILED)
		return;
	if (c->state == SIM_CONNECTING)
		sim_cm_event(c, FAB_EVENT_UNREACHABLE, -ECONNRESET, NULL);
	if (c->state == SIM_UP)
		sim_cm_event(c, FAB_EVENT_DISCONNECTED, 0, NULL);
	sim_conn_fail(c, false, "%s", why);
}

/* A disconnect may come from a connection whose accept was lost, so by number of either end. */
static struct sim_conn *disc_target(const struct sim_wire *w)
{
	struct sim_conn *c;

	if (w->dst)
		return conn_find(w->dst);
	list_for_each(c, &sim_all_conns, all) {
		if (c->peer_id == w->src && c->host == w->msg.to)
			return c;
	}
	return NULL;
}

static void conn_deliver(struct sim_conn *c, const struct sim_wire *w)
{
	switch (w->type) {
	case SIM_WIRE_DATA:
	case SIM_WIRE_ACK:
	case SIM_WIRE_NAK:
	case SIM_WIRE_RTU:
		if (c->state != SIM_UP)
			return;
		if (w->type == SIM_WIRE_DATA)
			sim_qp_data(c, w);
		else if (w->type == SIM_WIRE_ACK)
			sim_qp_ack(c, w);
		else if (w->type == SIM_WIRE_NAK)
			sim_qp_nak(c, w);
		else
			sim_cm_event(c, FAB_EVENT_ESTABLISHED, 0, NULL);
		return;
	case SIM_WIRE_DISC:
		conn_lost(c, "peer disconnected");
		return;
	default:
		on_answer(c, w);
	}
}

static void wire_deliver(struct sim_msg *msg)
{
	struct sim_wire *w = container_of(msg, struct sim_wire, msg);
	struct sim_conn *c = w->type == SIM_WIRE_DISC ? disc_target(w) : conn_find(w->dst);

	if (c && sim_conn_is_ghost(c))
		c = NULL;
	if (w->type == SIM_WIRE_REQ) {
		on_request(w);
	} else if (!c) {
		if (w->type == SIM_WIRE_DATA || w->type == SIM_WIRE_REP)
			wire_reply(w, SIM_WIRE_DISC);
	} else {
		conn_deliver(c, w);
	}
	free(w);
}

/* ---- sending ---- */

static void wire_discard(struct sim_msg *msg)
{
	free(container_of(msg, struct sim_wire, msg));
}

struct sim_wire *sim_wire_new(const struct sim_conn *c, enum sim_wire_type type, uint32_t len)
{
	struct sim_wire *w = calloc(1, sizeof(*w) + len);

	assert(w);
	w->type = type;
	w->src = c->id;
	w->dst = c->peer_id;
	w->len = len;
	w->msg.from = c->host;
	w->msg.to = c->peer_host;
	w->msg.wire = c->wire;
	w->msg.deliver = wire_deliver;
	w->msg.discard = wire_discard;
	return w;
}

static struct sim_flip *flip;

void sim_flip(struct sim_flip *f)
{
	flip = f;
}

/* Flip the bit, if @w has it. */
static void wire_flip(struct sim_wire *w)
{
	int64_t bit = flip->bit, nbits = flip->imm ? 32 : (int64_t)w->total * 8, byte;

	if (strcmp(flip->from, w->msg.from->name) || strcmp(flip->to, w->msg.to->name) ||
	    w->opcode != flip->opcode || !w->total)
		return;
	if (flip->skip) {
		flip->skip -= w->off + w->len == w->total;
		return;
	}
	bit += bit < 0 ? nbits : 0;
	assert(bit >= 0 && bit < nbits);
	byte = bit / 8 - w->off;
	if (flip->imm)		/* the last piece brings it */
		byte = w->off + w->len == w->total ? 0 : -1;
	if (byte < 0 || byte >= (flip->imm ? 1 : w->len))
		return;
	if (flip->imm)
		w->imm ^= htobe32(1u << bit);
	else
		w->data[byte] ^= (uint8_t)(1u << bit % 8);
	flip->done = true;
	flip = NULL;
}

void sim_wire_send(struct sim_conn *c, struct sim_wire *w)
{
	if (sim_conn_is_ghost(c)) {
		free(w);
		return;
	}
	if (w->type == SIM_WIRE_DATA)
		sim_channel_read(c, w->len);
	if (w->type == SIM_WIRE_DATA && flip)
		wire_flip(w);
	sim_msg_send(&w->msg, &c->flow);
}

struct sim_wire *sim_wire_private(struct sim_conn *c, enum sim_wire_type type, const void *data,
				  size_t len)
{
	struct sim_wire *w = sim_wire_new(c, type, (uint32_t)len);

	if (len)
		memcpy(w->data, data, len);
	w->src_addr = c->base.local;
	w->dst_addr = c->base.peer;
	return w;
}

void sim_wire_disconnect(struct sim_conn *c)
{
	if (c->peer_host)
		sim_wire_send(c, sim_wire_new(c, SIM_WIRE_DISC, 0));
}

/* ---- faults ---- */

void sim_fabric_cut_end(struct sim_host *sees, struct sim_host *blind, unsigned wire)
{
	struct sim_conn *c;

	list_for_each(c, &sim_all_conns, all) {
		if (c->host == sees && c->peer_host == blind && c->wire == wire)
			conn_lost(c, "connection cut");
	}
}

void sim_fabric_cut(struct sim_host *a, struct sim_host *b, unsigned wire)
{
	sim_fabric_cut_end(a, b, wire);
	if (a != b)
		sim_fabric_cut_end(b, a, wire);
}

void sim_fabric_kill(struct sim_host *h, enum sim_kill how)
{
	struct sim_conn *c;

	list_for_each(c, &sim_all_conns, all) {
		if (c->host == h && !sim_conn_is_ghost(c) && c->state != SIM_FAILED) {
			if (how == SIM_KILL_PROCESS)
				sim_wire_disconnect(c);
			conn_lost(c, "killed");
		}
	}
}
