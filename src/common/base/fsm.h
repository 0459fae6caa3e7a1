/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of states: the row of a state and an event says which state follows, and which action
 * runs.  A table stands in the file whose object changes state; the actions are functions of that
 * file, or of files below it.  Each change is a line of the log at debug level, so that the log
 * tells the story of an object.  Any thread. */
#ifndef BASE_FSM_H
#define BASE_FSM_H

#include <stdatomic.h>
#include <stddef.h>

#include "util.h"

#define FSM_STAY (-1)

/* In each of @states @event leads to @next.  The action runs in the new state, and may cause the
 * next event. */
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

#define FSM(name_, rows_, states_, events_)                                                        \
	{ name_, rows_, ARRAY_SIZE(rows_), states_, events_, ARRAY_SIZE(states_), \
	  ARRAY_SIZE(events_) }

/* Macros for the rows of a table.  The file of a table defines FSM_PREFIX, with which the names of
 * its states begin, before the first include.  Names of events have EV_ behind the prefix. */
#ifdef FSM_PREFIX
#define FSM_CAT_(a, b) a##b
#define FSM_CAT(a, b) FSM_CAT_(a, b)
#define IN(state) (1u << FSM_CAT(FSM_PREFIX, state))
#define ALL ((1u << FSM_CAT(FSM_PREFIX, NSTATES)) - 1)
#define ROW(states, event, next, action) \
	{ states, FSM_CAT(FSM_PREFIX, EV_##event), FSM_CAT(FSM_PREFIX, next), action, #action }
#define STAY(states, event) { states, FSM_CAT(FSM_PREFIX, EV_##event), FSM_STAY, NULL, "" }
#endif

/* The row for @event in @state, or NULL when @event cannot come in @state. */
const struct fsm_row *fsm_row(const struct fsm *fsm, unsigned state, unsigned event);

/* Move *@state along the row of @event, even while other threads move the state; *@old (may be
 * NULL) becomes the state before.  Logs a change with the object's @name; NULL: nothing is logged,
 * as for a table of which each request runs rows.  Returns the row; the caller runs its action.  An
 * event that cannot come is a bug of ours: aborts. */
const struct fsm_row *fsm_step(const struct fsm *fsm, const char *name, atomic_uint *state,
			       unsigned event, unsigned *old);
/* The name of number @n of @name in @buf, for fsm_run(); NULL, unless the log wants the line. */
const char *fsm_name(char *buf, size_t len, const char *name, unsigned n);
/* Call fsm_step(), and run the action of the row with @object. */
void fsm_run(const struct fsm *fsm, const char *name, atomic_uint *state, unsigned event,
	     void *object);

#endif
