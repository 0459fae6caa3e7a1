/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns no account: their owners do.  Owns the order in which operations without a permit get one:
 * io->users, io->turns and the lines of accounts, under io->lock.  Any thread; nothing fails. */
#include <assert.h>

#include "clt-io-priv.h"

#define TURN_MAX 8u			/* requests of an account in a turn */
#define TURN_OF_PERMITS 16u		/* and at most so small a part of the permits, but one */

/* @a, which has a line, is the last one in turn. */
static void turn_join(struct clt_io *io, struct clt_account *a)
{
	list_add_tail(&io->turns, &a->turn);
	a->turn_left = MAX(MIN(clt_slot_most(&io->slots) / TURN_OF_PERMITS, TURN_MAX), 1u);
}

void clt_account_open(struct clt_account *a, struct clt_io *io)
{
	a->io = io;
	atomic_init(&a->held, 0);
	list_init(&a->line);
	list_init(&a->turn);
	atomic_fetch_add(&io->naccounts, 1);
}

void clt_account_close(struct clt_account *a)
{
	struct clt_io *io = a->io;

	assert(!atomic_load(&a->held) && list_empty(&a->turn));
	/* ORDER: counted before @nwaiting is read: the account that is left may hold more now. */
	atomic_fetch_sub(&io->naccounts, 1);
	if (atomic_fetch_add(&io->slots.nwaiting, 0))
		clt_slot_regrant(io);
}

void clt_line_add(struct clt_op *op)
{
	struct clt_io *io = op->io;
	struct clt_account *a = op->account;

	if (clt_op_is_user(op)) {
		list_add_tail(&io->users, &op->permit_link);
	} else {
		list_add_tail(&a->line, &op->permit_link);
		if (list_empty(&a->turn))
			turn_join(io, a);
	}
	/* ORDER: counted before the caller looks at the permits again; clt_slot_put() frees the
	 * permit before reading the count. */
	atomic_fetch_add(&io->slots.nwaiting, 1);
}

void clt_line_leave(struct clt_op *op)
{
	if (list_empty(&op->permit_link))
		return;
	list_del(&op->permit_link);
	if (!clt_op_is_user(op) && list_empty(&op->account->line))
		list_del(&op->account->turn);
	atomic_fetch_sub(&op->io->slots.nwaiting, 1);
}

void clt_line_wake_users(struct clt_io *io)
{
	struct clt_op *op;

	list_for_each(op, &io->users, permit_link)
		clt_wait_look(&op->waiter);
}

/* Lay @slot into the first operation of @line, which leaves the line. */
static void line_give(struct list *line, struct clt_slot *slot)
{
	struct clt_op *op = list_entry(line->next, struct clt_op, permit_link);

	clt_line_leave(op);
	slot->next = op->granted;
	op->granted = slot;
	clt_wait_look(&op->waiter);
}

/* Give @a, which has a line, permits as far as @a may hold more.  With the last one of its turn @a
 * is the last one in turn; before that @a keeps its place.  The account that is to be asked next,
 * or the head of the list. */
static struct list *turn_take(struct clt_io *io, struct clt_account *a)
{
	struct list *next = a->turn.next;
	struct clt_slot *slot;

	while (a->turn_left && !list_empty(&a->line) && (slot = clt_account_take(a))) {
		line_give(&a->line, slot);
		a->turn_left--;
	}
	if (list_empty(&a->turn) || a->turn_left)
		return next;
	list_del(&a->turn);
	turn_join(io, a);
	return next == &io->turns ? &a->turn : next;
}

void clt_line_grant(struct clt_io *io)
{
	struct clt_slot *slot;
	struct list *at;

	while (!list_empty(&io->users) && (slot = clt_slot_take(&io->slots)))
		line_give(&io->users, slot);
	for (at = io->turns.next; at != &io->turns;)
		at = turn_take(io, list_entry(at, struct clt_account, turn));
}
