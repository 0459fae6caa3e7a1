/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of states: what an event does in a state.  A table stands in the file whose object it moves, and its
 * actions are functions of that file.  Pure; any thread. */
#ifndef BASE_FSM_H
#define BASE_FSM_H

#include <stdatomic.h>

#define FSM_STAY (-1)

/* In each of @states @event leads to @next.  The action runs in the new state, and may cause the next event. */
struct fsm_row {
	unsigned states;		/* bits, 1u << state */
	unsigned event;
	int next;			/* or FSM_STAY */
	void (*action)(void *object);	/* NULL: none */
	const char *what;		/* the name of the action */
};

struct fsm {
	const char *name;
	const struct fsm_row *rows;
	unsigned nrows;
	const char *const *states, *const *events;	/* names */
	unsigned nstates, nevents;
};

/* The row for @event in @state, or NULL when the event cannot come there. */
const struct fsm_row *fsm_row(const struct fsm *fsm, unsigned state, unsigned event);

/* Take @event: *@state goes on, also when other threads move it meanwhile, and *@old (may be NULL) is the one before.
 * Returns the row, whose action is the caller's to run.  An event that cannot come is a bug of ours: aborts. */
const struct fsm_row *fsm_step(const struct fsm *fsm, atomic_uint *state, unsigned event,
			       unsigned *old);

#endif
