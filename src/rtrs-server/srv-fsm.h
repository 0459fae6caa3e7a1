/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of states: what an event does in a state.  Each table stands in the file whose object it moves
 * (srv-path.c, srv-con.c), its actions are functions of that file.  Pure: this only looks rows up. */
#ifndef SRV_FSM_H
#define SRV_FSM_H

#include <stddef.h>

#define SRV_FSM_STAY (-1)

/* In each of @states @event leads to @next.  The action runs in the new state, and may cause the next event. */
struct srv_fsm_row {
	unsigned states;		/* bits, 1u << state */
	int event;
	int next;			/* or SRV_FSM_STAY */
	void (*action)(void *object);	/* NULL: none */
	const char *what;		/* the name of the action */
};

struct srv_fsm {
	const char *name;
	const struct srv_fsm_row *rows;
	size_t nrows;
	const char *const *states, *const *events;	/* names */
	int nstates, nevents;
};

/* The row for @event in @state, or NULL when the event cannot come there: a bug of ours, never the peer's. */
const struct srv_fsm_row *srv_fsm_step(const struct srv_fsm *fsm, int state, int event);

/* A path and a connection, for those who draw or test them. */
extern const struct srv_fsm srv_path_fsm, srv_con_fsm;

#endif
