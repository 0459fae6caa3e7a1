/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kind of key a server gets to write the data of READs (registration=), by what the device
 * can do.  Pure: no IO, no thread.
 *
 *	FRWR_MW2	a window of type 2 for each READ: the server takes it away with the answer
 *			(SEND_WITH_INV); what it leaves is taken away by us before the READ ends
 *	FRWR_MW1	a window of type 1: always taken away by us
 *	FRWR_REREG	the region of each slot gets another key and another buffer
 *	FRWR_STATIC	the region of each slot keeps its key as long as the connections live
 */
#ifndef CLT_REG_H
#define CLT_REG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frwr.h"

/* registration= */
enum clt_registration { CLT_REG_AUTO, CLT_REG_WINDOW, CLT_REG_STATIC };
#define CLT_NREGS 3
/* "auto", "window", "static". */
extern const char *const clt_registration_names[CLT_NREGS];

/* The kind for a device with @caps.  @direct: registering is no work there, and requests can be
 * sent from any memory (clt-io.h).  Returns an enum frwr_mode, or -EOPNOTSUPP when what was asked
 * for is not possible.  @why: in words what was taken or what to do, and the reason. */
int clt_reg_pick(enum clt_registration want, const struct frwr_caps *caps, bool direct, char *why,
		 size_t len);
static inline bool clt_reg_is_window(enum frwr_mode mode)
{
	return mode == FRWR_MW2 || mode == FRWR_MW1;
}

/* With windows the queues and windows of a device can be enough for fewer than @depth requests: how
 * many, or 0; and the longest send queue that these need. */
unsigned clt_reg_depth(const struct frwr_caps *caps, enum frwr_mode mode, unsigned depth,
		       uint32_t *send_wr);

#endif
