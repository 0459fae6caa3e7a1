/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; any thread.  A pair that is not in the table does not happen: DRAINED and QUIET are
 * only reported by connections that were cut, and a connection that ends by itself is a FAIL first. */
#include <stddef.h>

#include "srv-fsm.h"
#include "util.h"

static const struct srv_path_edge edges[] = {
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_INFO, SRV_PATH_CONNECTED, SRV_PATH_ACT_UP },
	{ SRV_PATH_CONNECTING, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_CUT },

	{ SRV_PATH_CONNECTED, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_CUT },

	/* memory became ready while the path was already failing: too late, nothing to do */
	{ SRV_PATH_DRAINING, SRV_PATH_EV_INFO, SRV_PATH_DRAINING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_FAIL, SRV_PATH_DRAINING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_DRAINING, SRV_PATH_EV_DRAINED, SRV_PATH_LINGERING, SRV_PATH_ACT_UNLINK },

	{ SRV_PATH_LINGERING, SRV_PATH_EV_INFO, SRV_PATH_LINGERING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_FAIL, SRV_PATH_LINGERING, SRV_PATH_ACT_NONE },
	{ SRV_PATH_LINGERING, SRV_PATH_EV_QUIET, SRV_PATH_GONE, SRV_PATH_ACT_FREE },

	{ SRV_PATH_GONE, SRV_PATH_EV_INFO, SRV_PATH_GONE, SRV_PATH_ACT_NONE },
	{ SRV_PATH_GONE, SRV_PATH_EV_FAIL, SRV_PATH_GONE, SRV_PATH_ACT_NONE },
};

const struct srv_path_edge *srv_path_fsm_step(enum srv_path_state state, enum srv_path_event event)
{
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		if (edges[i].state == state && edges[i].event == event)
			return &edges[i];
	}
	return NULL;
}

const char *srv_path_state_name(enum srv_path_state state)
{
	static const char *const names[SRV_PATH_NSTATES] = {
		"connecting", "connected", "draining", "lingering", "gone",
	};

	return names[state];
}

const char *srv_path_event_name(enum srv_path_event event)
{
	static const char *const names[SRV_PATH_NEVENTS] = { "info", "fail", "drained", "quiet" };

	return names[event];
}
