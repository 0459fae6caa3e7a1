/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; any thread. */
#include "srv-fsm.h"

const struct srv_fsm_row *srv_fsm_step(const struct srv_fsm *fsm, int state, int event)
{
	for (size_t i = 0; i < fsm->nrows; i++) {
		if (fsm->rows[i].event == event && (fsm->rows[i].states & 1u << state))
			return &fsm->rows[i];
	}
	return NULL;
}
