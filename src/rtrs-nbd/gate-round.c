/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the messages of a round.  Each goes from the service loop to its loop and back, and the last
 * one to come back ends the round.  Loops end after the last message (gate.h), so none is lost:
 * a loop whose server has stopped answers, too. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "gate-round.h"
#include "gate.h"

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

int gate_round_start(struct gate *g, const struct gate_round_ops *ops, void *arg)
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
