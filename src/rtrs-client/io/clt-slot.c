/* SPDX-License-Identifier: BSD-3-Clause */
/* The permits of a session, who gets one next, and the list of operations that wait for a path.
 * Any thread; slots are freed with the session. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "clt-io-priv.h"

/* ---- the order in which operations without a permit get one ----
 * io->users, io->turns and the lines of accounts, under io->lock.  Nothing fails. */

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

/* Let @op stand last in the line of its account, or of user messages; line_grant() is to follow. */
static void line_add(struct clt_op *op)
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

/* Take @op out of its line, if @op stands in one. */
static void line_leave(struct clt_op *op)
{
	if (list_empty(&op->permit_link))
		return;
	list_del(&op->permit_link);
	if (!clt_op_is_user(op) && list_empty(&op->account->line))
		list_del(&op->account->turn);
	atomic_fetch_sub(&op->io->slots.nwaiting, 1);
}

/* Tell the user messages in line to look. */
static void line_wake_users(struct clt_io *io)
{
	struct clt_op *op;

	list_for_each(op, &io->users, permit_link)
		clt_wait_look(&op->waiter);
}

/* Lay @slot into the first operation of @line, which leaves the line. */
static void line_give(struct list *line, struct clt_slot *slot)
{
	struct clt_op *op = list_entry(line->next, struct clt_op, permit_link);

	line_leave(op);
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

/* Give free permits to the operations in line: to user messages, then to accounts in turns, as far
 * as each may hold more.  Asks each account that waits. */
static void line_grant(struct clt_io *io)
{
	struct clt_slot *slot;
	struct list *at;

	while (!list_empty(&io->users) && (slot = clt_slot_take(&io->slots)))
		line_give(&io->users, slot);
	for (at = io->turns.next; at != &io->turns;)
		at = turn_take(io, list_entry(at, struct clt_account, turn));
}

static int table_make(struct clt_slot_table *s, unsigned n)
{
	int r;

	s->slot = calloc(n + 1, sizeof(*s->slot));
	s->order = calloc(n + 1, sizeof(struct clt_slot *));
	r = s->slot && s->order ? bitmap_init(&s->permits, n - 1) : -ENOMEM;
	if (r < 0) {
		free(s->slot);
		free(s->order);
		s->slot = NULL;
		return r;
	}
	for (unsigned i = 0; i < n; i++)
		s->slot[i].id = i;
	s->n = n;
	atomic_store(&s->limit, n);
	return 0;
}

void clt_slot_init(struct clt_io *io)
{
	list_init(&io->users);
	list_init(&io->turns);
	list_init(&io->up_waiters);
	pthread_mutex_init(&io->lock, NULL);
}

void clt_slot_fini(struct clt_io *io)
{
	struct clt_slot_table *s = &io->slots;

	pthread_mutex_destroy(&io->lock);
	if (!s->slot)
		return;
	assert(bitmap_weight(&s->permits) == 0 && !atomic_load(&s->zero_taken));
	assert(!atomic_load(&s->ntaken) && !atomic_load(&io->nholders));
	bitmap_fini(&s->permits);
	free(s->slot);
	free(s->order);
	s->slot = NULL;
}

int clt_slot_limit(struct clt_io *io, unsigned depth)
{
	struct clt_slot_table *s = &io->slots;
	int r = s->slot ? 0 : table_make(s, depth);

	if (r < 0)
		return r;
	r = (int)atomic_exchange(&s->limit, MIN(s->n, depth));
	clt_slot_regrant(io);
	return r;
}

void clt_slot_wake(struct clt_io *io)
{
	struct list *link;

	clt_wait_batch_begin(io->wait);
	pthread_mutex_lock(&io->lock);
	while ((link = list_pop(&io->up_waiters)))
		clt_wait_look(&list_entry(link, struct clt_op, up_link)->waiter);
	/* The path of a user message in line may be gone. */
	line_wake_users(io);
	pthread_mutex_unlock(&io->lock);
	clt_wait_batch_end(io->wait);
}

/* Take the permit for user messages.  Service thread, as all user messages. */
static struct clt_slot *ctl_take(struct clt_io *io)
{
	struct clt_slot *ctl = clt_slot_ctl(io);

	return ctl->op || atomic_exchange(&io->slots.zero_sent, true) ? NULL : ctl;
}

void clt_slot_zero_exit(struct clt_io *io)
{
	atomic_store(&io->slots.zero_sent, false);
	if (!atomic_load(&io->slots.nwaiting))
		return;
	LOCK_SCOPE(&io->lock);
	line_wake_users(io);
}

bool clt_slot_zero_enter(struct clt_op *op)
{
	struct clt_io *io = op->io;

	if (!atomic_exchange(&io->slots.zero_sent, true))
		return true;
	LOCK_SCOPE(&io->lock);
	op->listed = true;
	if (list_empty(&op->up_link))
		list_add_tail(&io->up_waiters, &op->up_link);
	/* RACE: the other request may have ended, and woken the listed operations, since. */
	return !atomic_exchange(&io->slots.zero_sent, true);
}

static struct clt_slot *user_get(struct clt_op *op)
{
	struct clt_slot *slot = ctl_take(op->io);

	if (slot && op->listed)
		clt_slot_leave(op);
	return slot;
}

struct clt_slot *clt_slot_line(struct clt_op *op)
{
	struct clt_io *io = op->io;
	struct clt_slot *slot = NULL;

	/* With a single permit, IO would keep the permit from the user message for which IO
	 * waits. */
	if (clt_op_is_user(op) && atomic_load(&io->slots.limit) == 1)
		slot = user_get(op);
	if (!slot && clt_op_is_user(op) && !op->listed &&
	    !atomic_load_explicit(&io->slots.nwaiting, memory_order_relaxed))
		slot = clt_slot_take(&io->slots);
	if (!slot && clt_op_is_user(op))
		slot = user_get(op);
	if (slot)
		return slot;
	LOCK_SCOPE(&io->lock);
	if (!op->granted && list_empty(&op->permit_link)) {
		op->listed = true;
		line_add(op);
		line_grant(io);
	}
	slot = op->granted;
	if (slot) {
		op->granted = slot->next;
		return slot;
	}
	/* RACE: buf_id 0 may have become free since; clt_slot_zero_exit() saw no operation in
	 * line. */
	slot = clt_op_is_user(op) ? ctl_take(io) : NULL;
	if (slot)
		line_leave(op);
	return slot;
}

void clt_slot_put_ctl(struct clt_io *io)
{
	struct clt_slot *ctl = clt_slot_ctl(io);
	bool borrowed = ctl->op->kind == CLT_OP_HANDSHAKE;

	ctl->op = NULL;
	if (borrowed)
		return;
	clt_slot_zero_exit(io);
	if (atomic_load(&io->slots.zero_taken))
		clt_slot_wake(io);
}

void clt_slot_regrant(struct clt_io *io)
{
	clt_wait_batch_begin(io->wait);
	pthread_mutex_lock(&io->lock);
	line_grant(io);
	pthread_mutex_unlock(&io->lock);
	clt_wait_batch_end(io->wait);
}

static _Thread_local struct {
	bool under_way;
	struct clt_io *freed;		/* NULL: nothing yet */
} pass;

void clt_pass_begin(void)
{
	assert(!pass.under_way);
	pass.under_way = true;
}

void clt_pass_end(void)
{
	struct clt_io *freed = pass.freed;

	pass.under_way = false;
	pass.freed = NULL;
	if (freed)
		clt_slot_regrant(freed);
}

void clt_slot_freed(struct clt_io *io)
{
	if (pass.under_way && (!pass.freed || pass.freed == io))
		pass.freed = io;
	else
		clt_slot_regrant(io);
}

void clt_slot_leave(struct clt_op *op)
{
	struct clt_io *io = op->io;
	struct clt_slot *granted;

	pthread_mutex_lock(&io->lock);
	line_leave(op);
	granted = op->granted;
	op->granted = NULL;
	pthread_mutex_unlock(&io->lock);

	while (granted) {
		struct clt_slot *next = granted->next;

		clt_slot_put(op, granted);
		granted = next;
	}
}

/* ---- ages ---- */

/* The time of the operation that has @slot, and in @of what the operation is of; 0: none. */
static uint64_t slot_age(const struct clt_slot *slot, const void **of)
{
	uint64_t began_ns = atomic_load_explicit(&slot->began_ns, memory_order_acquire);

	*of = atomic_load_explicit(&slot->of, memory_order_acquire);
	/* RACE: the slot may have gone to another operation in between. */
	return atomic_load_explicit(&slot->began_ns, memory_order_relaxed) == began_ns ? began_ns :
		0;
}

static void op_age(const struct clt_op *op,
		   void (*fn)(void *arg, const void *of, uint64_t began_ns), void *arg)
{
	if (op->began_ns)
		fn(arg, op->of, op->began_ns);
}

void clt_io_each_age(struct clt_io *io, void (*fn)(void *arg, const void *of, uint64_t began_ns),
		     void *arg)
{
	const struct clt_slot_table *s = &io->slots;
	const struct clt_account *a;
	const struct clt_op *op;

	LOCK_SCOPE(&io->lock);
	for (unsigned i = 0; s->slot && i <= s->n; i++) {
		const void *of;
		uint64_t began_ns = slot_age(&s->slot[i], &of);

		if (began_ns)
			fn(arg, of, began_ns);
	}
	list_for_each(op, &io->users, permit_link)
		op_age(op, fn, arg);
	list_for_each(a, &io->turns, turn) {
		list_for_each(op, &a->line, permit_link)
			op_age(op, fn, arg);
	}
	list_for_each(op, &io->up_waiters, up_link)
		op_age(op, fn, arg);
}
