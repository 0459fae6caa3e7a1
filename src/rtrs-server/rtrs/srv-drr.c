/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the order alone: flows and requests are their owners'.  Thread of the loop.  A round is a
 * deferred task. */
#include "srv-drr.h"

/* ---- a round ---- */

/* Count @item, the next of @flow to enter. */
static void item_count(struct srv_drr *drr, struct srv_drr_flow *flow,
		       const struct srv_drr_item *item)
{
	uint64_t ahead = drr->entered - flow->entered - item->others;

	if (ahead > atomic_load_explicit(&flow->ahead_max, memory_order_relaxed))
		atomic_store_explicit(&flow->ahead_max, ahead, memory_order_relaxed);
	drr->entered++;
	flow->entered++;
	flow->credit -= (int64_t)item->cost;
}

/* Give @flow, which is on no list, @quantum: move its next requests to @entering. */
static void flow_round(struct srv_drr *drr, struct srv_drr_flow *flow, uint32_t quantum,
		       struct list *entering)
{
	flow->credit += quantum;
	while (flow->credit > 0 && !list_empty(&flow->waiting)) {
		struct srv_drr_item *item = list_pop_entry(&flow->waiting, struct srv_drr_item,
							   link);

		item_count(drr, flow, item);
		list_add_tail(entering, &item->link);
	}
}

/* Give each flow @quantum, and put those with a rest back in line. */
static void drr_round(struct srv_drr *drr, uint32_t quantum, struct list *entering)
{
	for (unsigned class = 0; class < SRV_DRR_CLASSES; class++) {
		struct srv_drr_flow *flow;
		struct list now;

		list_take(&now, &drr->flows[class]);
		while ((flow = list_pop_entry(&now, struct srv_drr_flow, link))) {
			flow_round(drr, flow, quantum, entering);
			if (list_empty(&flow->waiting))
				flow->credit = 0;
			else
				list_add_tail(&drr->flows[class], &flow->link);
		}
	}
}

/* ---- the quantum ---- */

/* The only flow with requests; NULL: there are several, or none. */
static const struct srv_drr_flow *only_flow(const struct srv_drr *drr)
{
	const struct srv_drr_flow *flow, *only = NULL;

	for (unsigned class = 0; class < SRV_DRR_CLASSES; class++) {
		list_for_each(flow, &drr->flows[class], link) {
			if (only)
				return NULL;
			only = flow;
		}
	}
	return only;
}

/* The quantum of the round that begins. */
static uint32_t drr_quantum(struct srv_drr *drr)
{
	const struct srv_drr_flow *only = only_flow(drr);

	if (!only || only != drr->last)
		drr->neighbours = SRV_DRR_REMEMBERED;
	else if (drr->neighbours)
		drr->neighbours--;
	drr->last = only;
	return drr->neighbours ? SRV_DRR_QUANTUM : SRV_DRR_QUANTUM_ALONE;
}

static bool drr_is_empty(const struct srv_drr *drr)
{
	for (unsigned class = 0; class < SRV_DRR_CLASSES; class++) {
		if (!list_empty(&drr->flows[class]))
			return false;
	}
	return true;
}

static void drr_task(struct loop_task *task)
{
	struct srv_drr *drr = container_of(task, struct srv_drr, task);
	uint32_t quantum = drr_quantum(drr);
	struct list entering = LIST_INIT(entering);
	struct srv_drr_item *item;

	/* A round in which all flows owe more than the quantum is no pass of its own. */
	do {
		drr_round(drr, quantum, &entering);
	} while (list_empty(&entering));
	if (!drr_is_empty(drr))
		loop_defer_next(drr->loop, &drr->task);
	else if (!drr->neighbours)
		drr->alone = drr->last;
	drr->pass = loop_pass(drr->loop);
	drr->credit = 0;
	/* ORDER: last, because a flow may end with its last request. */
	while ((item = list_pop_entry(&entering, struct srv_drr_item, link)))
		item->fn(item);
}

/* ---- calls ---- */

void srv_drr_init(struct srv_drr *drr, struct loop *loop)
{
	*drr = (struct srv_drr){ .loop = loop };
	loop_task_init(&drr->task, drr_task);
	for (unsigned class = 0; class < SRV_DRR_CLASSES; class++)
		list_init(&drr->flows[class]);
}

void srv_drr_flow_init(struct srv_drr_flow *flow)
{
	*flow = (struct srv_drr_flow){ 0 };
	list_init(&flow->link);
	list_init(&flow->waiting);
}

static uint64_t cost_of(uint32_t bytes)
{
	return (uint64_t)bytes + SRV_DRR_REQUEST;
}

bool srv_drr_at_once(struct srv_drr *drr, struct srv_drr_flow *flow, uint32_t bytes)
{
	uint64_t pass = loop_pass(drr->loop);

	if (flow != drr->alone)
		return false;
	if (drr->pass != pass) {
		drr->pass = pass;
		drr->credit = SRV_DRR_QUANTUM_ALONE;
	}
	if (drr->credit <= 0 || !list_empty(&flow->waiting))
		return false;
	drr->credit -= (int64_t)cost_of(bytes);
	drr->entered++;
	flow->entered++;
	return true;
}

/* Have a round in this pass, or in the next one if @flow is alone and has had its quantum. */
static void round_defer(struct srv_drr *drr, const struct srv_drr_flow *flow)
{
	if (flow == drr->alone) {
		loop_defer_next(drr->loop, &drr->task);
		return;
	}
	if (drr->alone)
		loop_undefer(&drr->task);
	drr->alone = NULL;
	loop_defer(drr->loop, &drr->task);
}

void srv_drr_add(struct srv_drr *drr, struct srv_drr_flow *flow, enum srv_drr_class class,
		 struct srv_drr_item *item, uint32_t bytes)
{
	item->cost = cost_of(bytes);
	item->others = drr->entered - flow->entered;
	list_del(&flow->link);
	if (list_empty(&flow->waiting) && item->cost <= SRV_DRR_SMALL)
		list_add_head(&drr->flows[class], &flow->link);
	else
		list_add_tail(&drr->flows[class], &flow->link);
	list_add_tail(&flow->waiting, &item->link);
	round_defer(drr, flow);
}
