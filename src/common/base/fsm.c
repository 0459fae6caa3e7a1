/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "fsm.h"
#include "log.h"

const struct fsm_row *fsm_row(const struct fsm *fsm, unsigned state, unsigned event)
{
	for (unsigned i = 0; i < fsm->nrows; i++) {
		if (fsm->rows[i].event == event && (fsm->rows[i].states & 1u << state))
			return &fsm->rows[i];
	}
	return NULL;
}

/* A fault of ours.  Not by the log, whose lines may wait for their thread. */
static _Noreturn void die_of(const struct fsm *fsm, unsigned state, unsigned event)
{
	fprintf(stderr, "%s: the state '%s' does not know the event '%s'\n", fsm->name,
		fsm->states[state], fsm->events[event]);
	abort();
}

const struct fsm_row *fsm_step(const struct fsm *fsm, const char *name, atomic_uint *state,
			       unsigned event, unsigned *old)
{
	unsigned was = atomic_load(state);
	const struct fsm_row *row;

	do {
		row = fsm_row(fsm, was, event);
		if (!row)
			die_of(fsm, was, event);
	} while (row->next != FSM_STAY &&
		 !atomic_compare_exchange_weak(state, &was, (unsigned)row->next));
	if (name && row->next != FSM_STAY && (unsigned)row->next != was)
		log_dbg(name, "%s: %s: %s -> %s", fsm->name, fsm->events[event], fsm->states[was],
			fsm->states[row->next]);
	if (old)
		*old = was;
	return row;
}

const char *fsm_name(char *buf, size_t len, const char *name, unsigned n)
{
	if (!log_wants(LOG_LEVEL_DEBUG))
		return NULL;
	snprintf(buf, len, "%s#%u", name, n);
	return buf;
}

void fsm_run(const struct fsm *fsm, const char *name, atomic_uint *state, unsigned event,
	     void *object)
{
	const struct fsm_row *row = fsm_step(fsm, name, state, event, NULL);

	if (row->action)
		row->action(object);
}
