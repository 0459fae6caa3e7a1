/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage IO of one request on one reactor.  Asynchronous; the simulation replaces it by a storage
 * whose completions it can hold back (tests/sim).  <liburing.h> is seen only behind it and in
 * reactor*.c.
 *
 * WRITE and READ use fixed buffers where the memory was registered (export_ring_mem_add).  FLUSH is
 * fdatasync; FUA is RWF_DSYNC on a direct export, else a FLUSH behind the operation; PREFLUSH is a
 * FLUSH before it.  DISCARD punches a hole in a file and discards on a block device; -EOPNOTSUPP
 * passes through.  WRITE_ZEROES is FALLOC_FL_ZERO_RANGE with NOUNMAP and punch-hole or zero-range
 * without, falling back to writing zeroes.  Short reads and writes are continued; a read past the
 * end of a truncated file gives -EIO.  direct exports: unaligned memory, offset or length is
 * handled correctly inside.  Buffered WRITEs may be done by a system call inside export_io_start(),
 * which can block for as long as the file system does (export-file-inline.c says when). */
#ifndef EXPORT_IO_H
#define EXPORT_IO_H

#include "export.h"
#include "reactor-op.h"
#include "reactor.h"
#include "rnbd-msg.h"

struct export_share;
struct export_slot;

/* One operation.  Embedded in the request; belongs to export-io from start to done. */
struct export_io {
	/* in */
	struct export *ex;
	enum rnbd_io_op op;		/* not SECURE_ERASE */
	uint32_t flags;			/* RNBD_F_FUA, _PREFLUSH, _NOUNMAP matter */
	uint64_t offset;		/* bytes; range already checked against ex->size */
	uint32_t len;
	void *buf;			/* READ, WRITE */
	int mem;			/* handle of export_ring_mem_add(), or -1 */
	void (*done)(struct export_io *io, int status);	/* 0 or -errno; thread of the reactor; not
							 * from inside export_io_start() */
	/* private to the implementation */
	struct reactor *reactor;
	struct export_slot *slot;
	struct reactor_op ring_op;
	struct list link;
	uint32_t progress;		/* bytes of len done */
	uint32_t piece;			/* bytes of the transfer that is in flight */
	unsigned stage;
	unsigned how;			/* in which way the stage is being tried */
	bool need_sync;			/* FUA is for the SYNC stage */
	int status;
	void *bounce;
	struct export_share *share;	/* it holds a part of this; NULL: of none */
	struct range_lock *ranges;	/* likewise, its range */
	struct range range;
	struct loop_msg range_msg;
};

/* Forget the latched error of @ex's file, which nobody uses: all its descriptions are synced, so
 * that none of them tells the next user of a failure that was before its time.  The latch stays if
 * they still fail after that.  Then @done(@arg), maybe from inside this call.  Control thread,
 * which is @r's. */
void export_io_anew(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg);

/* Queue @io; what the ring does is submitted with all others at the end of the pass.  Cannot
 * fail: errors go to done(). */
void export_io_start(struct reactor *r, struct export_io *io);

#endif
