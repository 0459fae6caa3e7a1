/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of export-io.  Everything: thread of the reactor.
 *
 * One operation goes through stages, each of them one or several submissions:
 *	PREFLUSH	fdatasync (export-io-sync.c), with RNBD_F_PREFLUSH
 *	WORK		READ, WRITE (export-io-rw.c); DISCARD, WRITE_ZEROES (export-io-zero.c)
 *	SYNC		fdatasync: FLUSH, and what of FUA the WORK stage has not done itself
 * A stage ends in export_io_next(). */
#ifndef EXPORT_IO_PRIV_H
#define EXPORT_IO_PRIV_H

#include <stddef.h>

#include "bitmap.h"
#include "export-io.h"
#include "reactor-priv.h"

enum export_stage { EXPORT_PREFLUSH, EXPORT_WORK, EXPORT_SYNC, EXPORT_END };

/* One export's fdatasync on one ring: at most one is in flight, and all that arrived before it
 * started share its result. */
struct export_sync {
	struct reactor_op op;
	struct reactor *reactor;
	struct export *ex;
	struct export_desc desc;	/* our own open file description: it tells us each error once */
	struct list waiting, running;	/* export_io.link */
};

/* What of one export is at work on one ring (export-io-share.c). */
struct export_shares {
	struct export_share {
		unsigned used;
		struct list waiting;	/* export_io.link */
	} writes, zeroes;
};

struct export_ring {
	struct reactor *reactor;
	unsigned nexports;
	struct export_sync *syncs;	/* by export.index */
	struct export_shares *shares;	/* likewise */
	struct bitmap mems;		/* slots of fixed buffers */
	struct list finished;		/* export_io.link: done() is due */
	struct loop_task finish_task;
	void *zeroes;			/* EXPORT_ZEROES bytes, read only */
	bool never_blocks;
	/* export-io-inline.c */
	uint64_t inline_pause_until_ms;
	_Atomic(uint64_t) inline_since_ms;	/* inside a call since; 0: not.  Read by any thread */
};

#define EXPORT_ZEROES (1u << 20)

/* Fixed files: the export's descriptor, its fdatasync's, its tail's. */
static inline int export_slot(const struct export *ex)
{
	return (int)(3 * ex->index);
}

static inline int export_sync_slot(const struct export *ex)
{
	return (int)(3 * ex->index + 1);
}

static inline int export_tail_slot(const struct export *ex)
{
	return (int)(3 * ex->index + 2);
}

/* The current stage of @io has ended with @status; goes on or finishes.  done() may have run. */
void export_io_next(struct export_io *io, int status);
/* As above, in the next pass: for what ends without a completion. */
void export_io_next_later(struct export_io *io, int status);

void export_shares_init(struct export_shares *shares);
/* True if @io may go to work now; false: some export_share_leave() starts it in its turn. */
bool export_share_enter(struct export_io *io);
/* @io has left the WORK stage, or was never in it.  Calls @start for those whose turn it is. */
void export_share_leave(struct export_io *io, void (*start)(struct export_io *io));
/* Let the ring of @r have as many workers as all shares can hold.  Once, when it is attached. */
void export_share_allow_workers(struct reactor *r, unsigned nexports);

/* READ and WRITE; WRITE_ZEROES by writing them. */
void export_rw_start(struct export_io *io);
void export_zero_start(struct export_io *io);
/* Do what is left of a WRITE now if that is the faster way: true with its result in @status.  False:
 * the ring does it, from io->progress on. */
bool export_inline_write(struct export_io *io, int *status);

void export_sync_init(struct export_sync *sync, struct reactor *r, struct export *ex, int fd);
void export_sync_start(struct export_io *io);

#endif
