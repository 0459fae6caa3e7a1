/* SPDX-License-Identifier: BSD-3-Clause */
/* What NBD clients of random runs ask for.  The seed chooses. */
#ifndef NBD_WORK_H
#define NBD_WORK_H

#include "nbd-op.h"

#define NBD_WORK_DEPTH 1024u		/* most requests in flight */

struct nbd_work {
	struct nbd_user *by;
	unsigned area;			/* sectors in use, from 0 on */
	unsigned ops;			/* requests to come */
	unsigned least, most;		/* sectors of a request; one by one alone */
	unsigned depth;			/* requests in flight; many alone */
};

/* May the client put a request? */
bool nbd_work_goes_on(const struct sim_nbd *nbd);
/* Wait for at most @most_us.  Fiber. */
void nbd_work_rest(uint32_t most_us);
/* Put requests of struct nbd_work @work, one by one, until the connection ends.  Fiber. */
void nbd_work_one_by_one(void *work);
/* The same, @depth at a time.  Small requests, large WRITEs of one length, and requests of several
 * parts come in runs: the data of an equal WRITE is expected behind a large one, and a limit of the
 * gate cuts the stream anywhere. */
void nbd_work_many(void *work);

#endif
