/* SPDX-License-Identifier: BSD-3-Clause */
/* The last refusals of clients, for "rtrsctl explain": which client was refused when, and why, in
 * the words of the log.  The log has them, too, as far as its limits let it.
 *
 * A client that tries again and again has one entry.  A network has at most SRV_REFUSED_NET
 * entries, so it hides no refusal of others.  Control thread. */
#ifndef SRV_REFUSED_H
#define SRV_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct srv;

#define SRV_REFUSED_ALL 64u
#define SRV_REFUSED_NET 16u
#define SRV_REFUSED_NAME 256u		/* of an export, with the terminating NUL */

struct srv_refused {
	uint64_t at_ms;			/* 0: no entry */
	struct fab_addr peer;
	char identity[FAB_IDENTITY_LEN];/* proven, or said by whoever did not prove it; "": none */
	char export[SRV_REFUSED_NAME];	/* "": the connection */
	char why[240];			/* cut */
};

/* Note that @peer was refused: the connection, or an @export, not NULL.  @identity as in struct
 * srv_refused. */
void srv_refused_note(struct srv *srv, const struct fab_addr *peer, const char *identity,
		      const char *export, const char *why);
/* The latest entry of which @match(@arg) is true; NULL: none. */
const struct srv_refused *srv_refused_last(const struct srv *srv,
					   bool (*match)(const void *arg,
							 const struct srv_refused *r),
					   const void *arg);

#endif
