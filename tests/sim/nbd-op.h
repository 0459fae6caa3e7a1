/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of NBD clients that the history judges (history.h).  A connection is a user of the
 * history: its FLUSH and FUA are told of a loss.  An illegal answer ends the program. */
#ifndef NBD_OP_H
#define NBD_OP_H

#include "history.h"
#include "rnbd-msg.h"
#include "sim-nbd.h"

struct nbd_user {
	struct sim_nbd *nbd;
	struct history *h;
	unsigned user;			/* below HISTORY_USERS */
	bool lenient;			/* requests may fail: the session's patience is short */
	bool flushes_fua;		/* the server has no FUA */
	unsigned block;			/* sectors of a block of the server */
};

struct nbd_op {
	struct sim_nbd_req req;
	struct nbd_user *by;
	struct history_op *op;
	unsigned sector, n;
	/* between start and end */
	bool *hole;			/* of @n sectors */
	uint8_t *buf;
};

/* Begin @o: @cmd with NBD_CMD_FLAG_* @flags for @n sectors from @sector on.  False: another write
 * there is under way, and nothing was begun. */
bool nbd_op_start(struct nbd_op *o, struct nbd_user *by, enum nbd_cmd cmd, uint16_t flags,
		  unsigned sector, unsigned n);
/* Wait for the end of @o, and judge.  Fiber. */
void nbd_op_end(struct nbd_op *o);

#endif
