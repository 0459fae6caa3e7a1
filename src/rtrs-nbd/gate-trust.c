/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  A loop looks at CHECKS clients in a pass, because each may cost the verification
 * of a certificate, and IO goes on in between. */
#include <config.h>

#include "gate-stream.h"
#include "gate-trust.h"
#include "gate.h"
#include "log.h"

#define CHECKS 8u			/* in a pass: 1 or 2 ms, with certificates */

static struct log_limit trust_limit = LOG_LIMIT_INIT(10, 10000);

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

void gate_trust_msg(struct loop_msg *msg)
{
	struct gate_loop *l = container_of(msg, struct gate_loop, trust_msg);
	struct trust_look look = { .epoch = atomic_load(&l->gate->tls.epoch), .left = CHECKS };

	if (!l->server)
		return;
	nbd_server_visit(l->server, look_at, &look);
	if (look.result == LOOK_CUT)
		loop_post(l->loop, &l->trust_msg);
}

void gate_trust_changed(const struct gate_now *now)
{
	struct gate *g = now->gate;

	if (!g)
		return;
	/* ORDER: behind the change, and in front of the messages. */
	atomic_fetch_add(&g->tls.epoch, 1);
	for (unsigned i = 0; i < g->nloops; i++)
		loop_post(g->loops[i].loop, &g->loops[i].trust_msg);
}
