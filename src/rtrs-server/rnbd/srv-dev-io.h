/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD's IO message to an operation of the storage: checks of device, mode and range, private
 * memory (doc/protocol.md 8.4, 8.5; doc/decisions.md D8).  Thread of the request's connection. */
#ifndef SRV_DEV_IO_H
#define SRV_DEV_IO_H

#include <errno.h>
#include <stdbool.h>

#include "export.h"
#include "rnbd-msg.h"
#include "util.h"

struct srv_con;
struct srv_req;

/* True if @op changes the data of an export. */
static inline bool srv_dev_io_modifies(enum rnbd_io_op op)
{
	return op == RNBD_OP_WRITE || op == RNBD_OP_DISCARD || op == RNBD_OP_WRITE_ZEROES;
}

/* May a handle opened as @mode do @io on @ex?  0; -EPERM: @io would modify, and export or handle
 * is read-only; -EIO: beyond the end.  Turns @io, an empty WRITE with a flush, into a FLUSH.
 * Pure. */
static inline int srv_dev_io_check(const struct export *ex, enum rnbd_access_mode mode,
				   struct rnbd_io *io)
{
	if (srv_dev_io_modifies(io->op) && (mode == RNBD_ACCESS_RO || ex->spec.readonly))
		return -EPERM;
	if (io->op == RNBD_OP_FLUSH)	/* the sector means nothing (doc/traps.md 17) */
		return 0;
	if (!range_ok(io->sector, io->bi_size >> RNBD_SECTOR_SHIFT,
		      export_size(ex) >> RNBD_SECTOR_SHIFT))
		return -EIO;
	if (!io->bi_size && srv_dev_io_modifies(io->op) &&
	    (io->flags & (RNBD_F_PREFLUSH | RNBD_F_FUA)))
		io->op = RNBD_OP_FLUSH;
	return 0;
}

/* Decode the message of @req, an IO, as rnbd_io_decode() does. */
int srv_dev_io_decode(const struct srv_req *req, struct rnbd_io *io);
/* Carry out the IO of @base, whose turn has come.  Ends in srv_req_finish(). */
void srv_dev_io_start(struct srv_req *base);
/* Carry out or end the IO of @base, whose wait for the limits of the export has ended.  Stage
 * SRV_REQ_LIMIT.  Ends in srv_req_finish(). */
void srv_dev_io_let_go(struct srv_req *base);
/* End the IO on @con that waits for limits: @con is being cut.  Thread of @con. */
void srv_dev_io_con_cut(struct srv_con *con);
/* Ask the storage for the size of the export of @req, then go on in srv_dev_io_sized().  Stage
 * SRV_REQ_SIZE; control thread. */
void srv_dev_io_ask(struct srv_req *req);
/* Carry out the IO of @base by the present size of the export.  Stage SRV_REQ_SIZED.  Ends in
 * srv_req_finish(). */
void srv_dev_io_sized(struct srv_req *base);

#endif
