/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage IO of one request on one reactor.  Thread of the reactor, unless a function says
 * otherwise.  Asynchronous.  <liburing.h> is seen only in store-uring.c, file/ and
 * src/common/reactor.
 *
 *   - READ and WRITE use fixed buffers where the memory was registered (export_ring_mem_add()).
 *     Short transfers are continued; a read past the end of a truncated file gives -EIO.  On a
 *     direct export unaligned memory, offset or length is handled inside.
 *   - FLUSH is fdatasync.  FUA is RWF_DSYNC on a direct export, else a FLUSH behind the operation.
 *     PREFLUSH is a FLUSH before the operation.
 *   - DISCARD punches a hole in a file and discards on a block device; -EOPNOTSUPP passes through.
 *   - WRITE_ZEROES is FALLOC_FL_ZERO_RANGE with NOUNMAP, and punch-hole or zero-range without.
 *     Zeroes are written if the storage has no other way.
 *   - EXTENTS is SEEK_DATA and SEEK_HOLE on a thread of the file, and does not fail.  All that was
 *     written before EXTENTS began is data; a hole has been a hole at some time since then.
 *   - A buffered WRITE may be done by a system call inside export_io_start(), which can block for
 *     as long as the file system does (store-file-rw.c says when). */
#ifndef EXPORT_IO_H
#define EXPORT_IO_H

#include <errno.h>

#include "export.h"
#include "reactor.h"
#include "rnbd-msg.h"
#include "store-lead.h"

/* Bytes of an operation that belong to the driver. */
#define EXPORT_IO_OWN 40

struct export_share;
struct export_slot;

/* One operation.  Embedded in the request; belongs to export-io from start to done. */
struct export_io {
	/* in */
	struct export *ex;
	enum rnbd_io_op op;		/* not SECURE_ERASE */
	uint32_t flags;			/* RNBD_F_FUA, _PREFLUSH, _NOUNMAP matter */
	uint16_t prio;			/* of READ and WRITE, srv_export_wire_prio(); 0: the
					 * thread's */
	uint64_t offset;		/* bytes; range already checked against export_size() */
	uint32_t len;
	void *buf;			/* READ, WRITE; EXTENTS: for the answer, rnbd-ext.h */
	uint32_t room;			/* EXTENTS: bytes in @buf, at least RNBD_EXTENTS_ROOM_MIN */
	int mem;			/* handle of export_ring_mem_add(), or -1 */
	void (*done)(struct export_io *io, int status);	/* 0 or -errno; thread of the reactor; not
							 * from inside export_io_start() */
	/* private to the implementation */
	struct reactor *reactor;
	struct export_slot *slot;
	struct list link;
	unsigned stage;
	bool need_sync;			/* FUA is for the SYNC stage */
	int status;
	struct export_share *share;	/* the share that @io takes part of; NULL: none */
	struct range_lock *ranges;	/* likewise, the lock of @range */
	struct range range;
	struct loop_msg msg;		/* to the reactor: range granted, or extents found */
	uint64_t own[EXPORT_IO_OWN / 8];	/* the driver's, for the stage that runs */
};

/* True if @io has failed with @status because another server has the lock of the store: nobody may
 * answer it. */
static inline bool export_io_is_fenced(const struct export_io *io, int status)
{
	return status == -ESHUTDOWN && store_lead_fences(io->ex->store);
}

/* Forget the latched error of the store of @ex, which has no writer.  All descriptions of the
 * storage are synced first, so the next user hears of no older failure.  The latch stays if a
 * description still fails then.  Calls @done(@arg), maybe inside this call.  Control thread, which
 * is the thread of @r. */
void export_io_reopen(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg);

/* Find out how much of @ex can be exported now: bytes, a multiple of 512, or -errno.  True: *@size
 * is the answer.  False: the storage is asked, and @done(@ex, size, @arg) follows, not inside this
 * call.  The caller asks one question at a time for each export, and sets ex->size.  Control
 * thread, which is the thread of @r. */
bool export_io_size(struct reactor *r, struct export *ex, int64_t *size,
		    void (*done)(struct export *ex, int64_t size, void *arg), void *arg);

/* Find out what the path of @ex names now: an enum export_named, or -errno if the path cannot be
 * looked at.  As export_io_size(); both questions may be with the storage together. */
bool export_io_named(struct reactor *r, struct export *ex, int64_t *named,
		     void (*done)(struct export *ex, int64_t named, void *arg), void *arg);

/* Queue @io.  The end of the pass submits the ring's part with all other new work.  Cannot fail:
 * errors go to io->done(). */
void export_io_start(struct reactor *r, struct export_io *io);

#endif
