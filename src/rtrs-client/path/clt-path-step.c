/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the state of a path.  Stands below the files with the actions, which cause events, and
 * below the table (clt-path-life.c), which names the actions. */
#include <config.h>

#include "clt-path-priv.h"
#include "probe.h"

void clt_path_step(struct clt_path *path, enum clt_path_event event)
{
	unsigned old;
	const struct fsm_row *row =
		fsm_step(&clt_path_fsm, path->name, &path->att.state, event, &old);

	if (row->next != FSM_STAY && (unsigned)row->next != old)
		PROBE3(path__state, path->att.index, old, (unsigned)row->next);
	if (row->action)
		row->action(path);
}

void clt_path_step_fail(struct clt_path *path, int err, const char *cause)
{
	unsigned old;

	/* FAILING: no new leader from here on, so that the service loop gets the poll roles. */
	fsm_step(&clt_path_fsm, path->name, &path->att.state, CLT_PATH_EV_FAIL, &old);
	if (!(1u << old & CLT_PATH_RUNS))
		return;
	clt_cause_keep(&path->cause, err, cause);
	loop_post(path->loop, &path->fail_msg);
}
