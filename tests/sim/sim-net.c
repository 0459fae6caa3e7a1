/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the links between hosts and every message on its way.  One thread.  A message ends delivered
 * or discarded. */
#include <assert.h>
#include <stdlib.h>

#include "sim-net.h"

/* One direction. */
struct link_dir {
	struct list link;
	struct sim_host *from, *to;
	unsigned wire;			/* which address of the server's */
	uint32_t delay_us, jitter_us;
	bool hole;
	struct list held;		/* sim_msg, in order */
	unsigned messages;
	unsigned cut_at;		/* of messages; 0 = never */
	unsigned duplicates;
};

static struct list links = LIST_INIT(links);

static struct link_dir *link_get(struct sim_host *from, struct sim_host *to, unsigned wire)
{
	struct link_dir *l;

	list_for_each(l, &links, link) {
		if (l->from == from && l->to == to && l->wire == wire)
			return l;
	}
	l = calloc(1, sizeof(*l));
	assert(l);
	l->from = from;
	l->to = to;
	l->wire = wire;
	l->delay_us = from == to ? 10 : 1000;
	list_init(&l->held);
	list_add_tail(&links, &l->link);
	return l;
}

static struct link_dir *link_named(const char *from, const char *to)
{
	struct sim_host *a = sim_host_find(from), *b = sim_host_find(to);

	assert(a && b);
	return link_get(a, b, MAX(sim_host_addr_named(from), sim_host_addr_named(to)));
}

static void msg_arrives(struct sim_event *ev)
{
	struct sim_msg *msg = container_of(ev, struct sim_msg, ev);
	struct link_dir *l = link_get(msg->from, msg->to, msg->wire);
	struct link_dir *back = link_get(msg->to, msg->from, msg->wire);

	if (l->hole || msg->to->frozen) {
		list_add_tail(&l->held, &msg->held);
		return;
	}
	if (msg->to->off) {
		msg->discard(msg);
		return;
	}
	l->messages++;
	if (l->cut_at && l->messages + back->messages >= l->cut_at) {
		l->cut_at = back->cut_at = 0;
		msg->discard(msg);
		sim_fabric_cut(l->from, l->to, l->wire);
		return;
	}
	msg->deliver(msg);
}

void sim_msg_send(struct sim_msg *msg, struct sim_flow *flow)
{
	struct link_dir *l = link_get(msg->from, msg->to, msg->wire);
	uint64_t at = sim_now_us() + l->delay_us + sim_rand(l->jitter_us + 1);

	list_init(&msg->held);
	sim_event_init(&msg->ev, msg_arrives);
	at = MAX(at, flow->last_us);
	flow->last_us = at;
	sim_event_at(&msg->ev, at);
}

/* ORDER: what was kept arrives at once; queued as an event of now it could end up behind a later
 * message of its own flow. */
static void link_release(struct link_dir *l)
{
	struct list held, *e;

	list_init(&held);
	list_splice_tail(&held, &l->held);
	while ((e = list_pop(&held)))
		msg_arrives(&list_entry(e, struct sim_msg, held)->ev);
}

void sim_delay(const char *a, const char *b, uint32_t delay_us, uint32_t jitter_us)
{
	struct link_dir *dirs[] = { link_named(a, b), link_named(b, a) };

	for (unsigned i = 0; i < ARRAY_SIZE(dirs); i++) {
		dirs[i]->delay_us = delay_us;
		dirs[i]->jitter_us = jitter_us;
	}
}

void sim_drop_oneway(const char *from, const char *to)
{
	link_named(from, to)->hole = true;
}

void sim_drop(const char *a, const char *b)
{
	sim_drop_oneway(a, b);
	sim_drop_oneway(b, a);
}

void sim_heal(const char *a, const char *b)
{
	struct link_dir *dirs[] = { link_named(a, b), link_named(b, a) };

	for (unsigned i = 0; i < ARRAY_SIZE(dirs); i++) {
		dirs[i]->hole = false;
		if (!dirs[i]->to->frozen)
			link_release(dirs[i]);
	}
}

void sim_cut(const char *a, const char *b)
{
	struct link_dir *l = link_named(a, b);

	sim_fabric_cut(l->from, l->to, l->wire);
}

void sim_cut_seen_by(const char *sees, const char *blind)
{
	struct link_dir *l = link_named(sees, blind);

	sim_fabric_cut_end(l->from, l->to, l->wire);
}

void sim_cut_at_message(const char *a, const char *b, unsigned nth)
{
	struct link_dir *there = link_named(a, b), *back = link_named(b, a);

	there->cut_at = back->cut_at = nth ? there->messages + back->messages + nth : 0;
}

unsigned sim_messages(const char *a, const char *b)
{
	return link_named(a, b)->messages + link_named(b, a)->messages;
}

void sim_duplicate_connect(const char *clt, const char *srv)
{
	link_named(clt, srv)->duplicates++;
}

bool sim_net_duplicates(struct sim_host *clt, struct sim_host *srv)
{
	struct link_dir *l = link_get(clt, srv, 0);

	if (!l->duplicates)
		return false;
	l->duplicates--;
	return true;
}

void sim_freeze(const char *host)
{
	sim_host_find(host)->frozen = true;
}

void sim_thaw(const char *host)
{
	struct sim_host *h = sim_host_find(host);
	struct link_dir *l;

	h->frozen = false;
	list_for_each(l, &links, link) {
		if (l->to == h && !l->hole)
			link_release(l);
	}
}

void sim_kill(const char *host, enum sim_kill how)
{
	struct sim_host *h = sim_host_find(host);

	sim_thaw(host);
	h->off = how == SIM_KILL_POWER;
	sim_fabric_kill(h, how);
	h->epoch++;
}

void sim_power_on(const char *host)
{
	sim_host_find(host)->off = false;
}

void sim_net_fini(void)
{
	struct list *e, *m;

	while ((e = list_pop(&links))) {
		struct link_dir *l = list_entry(e, struct link_dir, link);

		while ((m = list_pop(&l->held))) {
			struct sim_msg *msg = list_entry(m, struct sim_msg, held);

			msg->discard(msg);
		}
		free(l);
	}
}
