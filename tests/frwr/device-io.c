/* SPDX-License-Identifier: BSD-3-Clause */
/* Case: many reads and writes over several connections, in the modes of frwr. */
#include <string.h>

#include "device-rw.h"
#include "util.h"

/* More than the 256 keys of each of RW_DEPTH chunks; half of them are reads. */
#define MANY 10000u
#define FEW 600u

struct fab_qp_attr rw_attr(struct world *w, bool server, enum frwr_mode mode)
{
	struct frwr_load load = { .server = server, .mode = mode, .queue_depth = RW_DEPTH };
	struct frwr_sizes sizes;
	struct frwr_caps caps;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	w->request = NULL;
	check_eq(frwr_query(p.a->conn, p.a->pd, &caps), 0);
	check_eq(caps.rc[mode], 0);
	pair_close(&p);
	check_eq(frwr_sizing(&caps.dev, &load, &sizes), 0);
	check_eq(sizes.queue_depth, RW_DEPTH);
	/* An answer may be polled before its request has completed, and its slot be used again:
	 * there is more in the queue than in flight.  So the plugin has these, as the kernel's
	 * client has. */
	return (struct fab_qp_attr){ .max_send_wr = MAX(sizes.max_send_wr, 4 * RW_DEPTH + 1),
				     .max_recv_wr = sizes.max_recv_wr, .max_send_sge = 2 };
}

/* Each key of a chunk, and of a slot's read, is taken away once. */
static void check_counts(const struct rw_client *c, const struct rw_server *s)
{
	enum frwr_mode cm = c->pool->mode, sm = s->pool->mode;
	struct frwr_stats cs, ss;

	frwr_stats(c->pool, &cs);
	frwr_stats(s->pool, &ss);
	printf("  client %s, server %s: %u reads, %u writes; keys of slots %u, of chunks %u; "
	       "taken away by the peer %u, by us %u\n", frwr_mode_name(cm), frwr_mode_name(sm),
	       c->reads, c->done - c->reads, (unsigned)cs.mapped, (unsigned)ss.mapped,
	       (unsigned)cs.remote_inv, (unsigned)cs.local_inv);
	check_eq(c->done, c->todo);
	check_eq(s->answered, c->todo);
	check(c->reads > c->todo / 3 && c->reads < c->todo / 3 * 2);
	check_eq(cs.mapped, c->reads);
	check_eq(ss.mapped, c->todo + RW_DEPTH);
	check_eq(cs.remote_inv + cs.local_inv, cm == FRWR_STATIC ? 0 : c->reads);
	check(cm == FRWR_MW2 ? cs.remote_inv > cs.local_inv && cs.local_inv > 0 : !cs.remote_inv);
	check_eq(ss.local_inv, sm == FRWR_STATIC ? 0 : c->todo);
	check_eq(cs.post_fail + cs.flushed_bind + cs.flushed_inv + cs.remote_inv_missing, 0);
	check_eq(ss.post_fail + ss.flushed_bind + ss.flushed_inv, 0);
	if (c->todo >= MANY && cm != FRWR_STATIC && sm != FRWR_STATIC) {
		check(cs.key_wraps >= RW_DEPTH);
		check(ss.key_wraps >= RW_DEPTH);
	}
}

/* Why a connection is lost, or NULL. */
static const char *lost(struct end *const *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fab_conn_cause(e[i]->conn)[0] != '\0')
			return fab_conn_cause(e[i]->conn);
	}
	return NULL;
}

static void reads_and_writes(struct world *w, enum frwr_mode cm, enum frwr_mode sm, uint32_t n)
{
	const struct fab_qp_attr ca = rw_attr(w, false, cm), sa = rw_attr(w, true, sm);
	static struct rw_client c;
	static struct rw_server s;

	c = (struct rw_client){ .w = w, .todo = n, .random = n };
	s = (struct rw_server){ .w = w };
	for (unsigned i = 0; i < RW_CONNS; i++) {
		rw_client_dial(&c, &w->addr, &ca);
		rw_server_accept(&s, &sa);
		rw_client_dialed(&c);
	}
	rw_client_ready(&c, cm);
	rw_server_ready(&s, sm);
	world_until(w, c.done == n || lost(c.e, c.nconns) || lost(s.e, s.nconns));
	if (lost(c.e, c.nconns))
		check_failed(__FILE__, __LINE__, lost(c.e, c.nconns));
	if (lost(s.e, s.nconns))
		check_failed(__FILE__, __LINE__, lost(s.e, s.nconns));
	check_counts(&c, &s);
	for (unsigned i = 0; i < RW_CONNS; i++)
		fab_disconnect(c.e[i]->conn);
	world_until(w, rw_client_drained(&c) && rw_server_drained(&s));
	rw_client_close(&c);
	rw_server_close(&s);
}

FAB_TEST(t19_reads_and_writes)
{
	reads_and_writes(w, FRWR_MW2, FRWR_MW1, MANY);
	reads_and_writes(w, FRWR_MW1, FRWR_MW1, FEW);
	reads_and_writes(w, FRWR_MW2, FRWR_REREG, FEW);
	reads_and_writes(w, FRWR_REREG, FRWR_REREG, FEW);
	reads_and_writes(w, FRWR_MW1, FRWR_STATIC, FEW);
	reads_and_writes(w, FRWR_STATIC, FRWR_MW1, FEW);
}
