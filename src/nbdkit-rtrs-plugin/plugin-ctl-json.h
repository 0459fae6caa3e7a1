/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session is and has, as JSON (man/rtrsctl.pod has the schema).  Service thread.  NULL: no
 * memory. */
#ifndef PLUGIN_CTL_JSON_H
#define PLUGIN_CTL_JSON_H

#include <jansson.h>

#include "client.h"

enum plugin_ctl_depth {
	PLUGIN_CTL_NAMES,			/* list */
	PLUGIN_CTL_SHOW,			/* properties and states, too */
	PLUGIN_CTL_STATS,			/* counters, too */
};

json_t *plugin_ctl_json(struct client *clt, enum plugin_ctl_depth depth);

#endif
