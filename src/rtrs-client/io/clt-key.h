/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of key with which a server writes the data of READs (registration=), chosen by the
 * abilities of the device.  Pure: no IO, no thread.
 *
 *	FRWR_MW2	a window of type 2 for each READ: the server invalidates the window with
 *			the answer (SEND_WITH_INV), or else the client does before the READ ends
 *	FRWR_MW1	a window of type 1: always invalidated by the client
 *	FRWR_REREG	the region of each slot gets another key and another buffer
 *	FRWR_STATIC	the region of each slot keeps its key as long as the connections live
 */
#ifndef CLT_KEY_H
#define CLT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frwr.h"

/* registration= */
enum clt_registration { CLT_REG_AUTO, CLT_REG_WINDOW, CLT_REG_STATIC };
#define CLT_NREGS 3
/* "auto", "window", "static". */
extern const char *const clt_registration_names[CLT_NREGS];

/* Choose the kind of key for a device with @caps.  @direct: registering memory is no work on the
 * device, and requests can be sent from any memory (clt-io.h).  Returns an enum frwr_mode, or
 * -EOPNOTSUPP if the device cannot do @want.  @why: the choice, or the remedy, in words, with the
 * reason. */
int clt_key_pick(enum clt_registration want, const struct frwr_caps *caps, bool direct, char *why,
		 size_t len);
/* Does a READ with @mode have a window, which is bound and invalidated? */
static inline bool clt_key_is_window(enum frwr_mode mode)
{
	return mode == FRWR_MW2 || mode == FRWR_MW1;
}

/* How many of @depth requests the queues and windows of a device with @caps suffice for; 0: for
 * none.  @send_wr: the send queue that these requests need for windows, or 0 without windows. */
unsigned clt_key_depth(const struct frwr_caps *caps, enum frwr_mode mode, unsigned depth,
		       uint32_t *send_wr);

#endif
