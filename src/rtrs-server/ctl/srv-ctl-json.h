/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's properties and state as JSON (man/rtrsctl.pod has the schema).  Control thread. */
#ifndef SRV_CTL_JSON_H
#define SRV_CTL_JSON_H

#include <jansson.h>

struct srv;

enum srv_ctl_depth {
	SRV_CTL_NAMES,			/* list */
	SRV_CTL_SHOW,			/* properties and states, too */
	SRV_CTL_STATS,			/* counters, too */
};

/* The server as JSON down to @depth, for the caller to free.  NULL: no memory. */
json_t *srv_ctl_json(const struct srv *srv, enum srv_ctl_depth depth);

#endif
