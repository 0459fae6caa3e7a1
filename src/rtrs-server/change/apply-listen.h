/* SPDX-License-Identifier: BSD-3-Clause */
/* The listeners of a plan.  Control thread. */
#ifndef APPLY_LISTEN_H
#define APPLY_LISTEN_H

#include "plan.h"

struct srv;

/* Listen at each address of a PLAN_LISTEN in @plan, which leads to @wanted, and note there which of
 * them are missing.  A connection that
 * comes meanwhile is met after this call.  An address that is taken by a listener of a
 * PLAN_UNLISTEN is set free first.  0, or -errno with one line in @err, and the listeners are as
 * before. */
int apply_listen(struct srv *srv, const struct plan *plan, struct srv_conf *wanted, char *err,
		 size_t len);

#endif
