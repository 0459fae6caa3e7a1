/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing, cannot fail; any thread. */
#include <errno.h>

#include "export.h"
#include "rnbd-check.h"
#include "util.h"

static bool modifies(enum rnbd_io_op op)
{
	return op == RNBD_OP_WRITE || op == RNBD_OP_DISCARD || op == RNBD_OP_WRITE_ZEROES;
}

int rnbd_io_check(const struct export *ex, enum rnbd_access_mode mode, struct rnbd_io *io)
{
	if (modifies(io->op) && (mode == RNBD_ACCESS_RO || ex->readonly))
		return -EPERM;
	if (io->op == RNBD_OP_FLUSH)	/* its sector means nothing (doc/traps.md 17) */
		return 0;
	if (!range_ok(io->sector, io->bi_size >> RNBD_SECTOR_SHIFT, ex->size >> RNBD_SECTOR_SHIFT))
		return -EIO;
	if (!io->bi_size && modifies(io->op) && (io->flags & (RNBD_F_PREFLUSH | RNBD_F_FUA)))
		io->op = RNBD_OP_FLUSH;
	return 0;
}
