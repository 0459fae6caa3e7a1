/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <assert.h>
#include <stdlib.h>

#include "fsm.h"

const struct fsm_row *fsm_row(const struct fsm *fsm, unsigned state, unsigned event)
{
	for (unsigned i = 0; i < fsm->nrows; i++) {
		if (fsm->rows[i].event == event && (fsm->rows[i].states & 1u << state))
			return &fsm->rows[i];
	}
	return NULL;
}

const struct fsm_row *fsm_step(const struct fsm *fsm, atomic_uint *state, unsigned event,
			       unsigned *old)
{
	unsigned was = atomic_load(state);
	const struct fsm_row *row;

	do {
		row = fsm_row(fsm, was, event);
		if (!row) {
			assert(!"event that the state does not know");
			abort();
		}
	} while (row->next != FSM_STAY &&
		 !atomic_compare_exchange_weak(state, &was, (unsigned)row->next));
	if (old)
		*old = was;
	return row;
}

void fsm_run(const struct fsm *fsm, atomic_uint *state, unsigned event, void *object)
{
	const struct fsm_row *row = fsm_step(fsm, state, event, NULL);

	if (row->action)
		row->action(object);
}
