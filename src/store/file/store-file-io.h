/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the files that do a file's IO on a ring; thread of the reactor. */
#ifndef STORE_FILE_IO_H
#define STORE_FILE_IO_H

#include "store-file-pr.h"
#include "store-file-priv.h"
#include "reactor-ring.h"
#include "store-driver.h"

extern const struct store_io_ops store_file_io_ops;

/* The file driver's part of a running operation. */
struct store_file_io {
	struct reactor_op op;
	void *bounce;
	uint32_t progress;		/* bytes of len done */
	uint32_t piece;			/* bytes of the transfer that is in flight */
	unsigned how;			/* the way in which the stage is tried */
} __attribute__((may_alias));
_Static_assert(sizeof(struct store_file_io) <= EXPORT_IO_OWN, "an operation has room for it");

/* The file driver's part of @io. */
static inline struct store_file_io *file_io(const struct export_io *io)
{
	return (struct store_file_io *)(void *)io->own;
}

/* The operation @io with file_io(@io)->op == @op. */
static inline struct export_io *store_file_io(struct reactor_op *op)
{
	char *own = (char *)op - offsetof(struct store_file_io, op);

	return (struct export_io *)(void *)(own - offsetof(struct export_io, own));
}

/* The result @res of the storage as the result of @io: -ESHUTDOWN if another server has the device
 * (export_io_is_fenced()). */
static inline int store_file_result(const struct export_io *io, int res)
{
	return io->ex->store->lead && store_file_pr_fenced(res) ? -ESHUTDOWN : res;
}

/* As reactor_ring_later() for an operation on @ex.  A file system in user space may answer with the
 * kernel's errno itself, and a sync that failed so must not be repeated. */
static inline bool store_file_later(struct export *ex, struct reactor *r, struct reactor_op *op,
				    int *res)
{
	return store_file(ex)->fs & STORE_FILE_FS_ERRORS && reactor_ring_later(r, op, res);
}

/* What a sync does, in this order; store-file-sync.c says why. */
enum store_file_sync_step {
	SYNC_OWN,			/* sync the description of this ring */
	SYNC_WRITER,			/* ... the description that writes */
	SYNC_TAIL,			/* ... the description that writes the tail */
	SYNC_OTHERS,			/* ... that one again, until the other rings are done */
	SYNC_DONE,
};

/* The fdatasync of one file on one ring.  At most one fdatasync is in flight.  All requests that
 * arrived before its start share its result. */
struct store_file_sync {
	struct reactor_op op;
	struct reactor *reactor;
	unsigned ring;			/* the index of the ring */
	struct export *ex;
	struct export_state *state;	/* of export_sync_begun() */
	enum store_file_sync_step step;
	unsigned other;			/* SYNC_OTHERS: the ring that is waited for ... */
	uint64_t turn;			/* ... while its turns are these; 0: not looked at yet */
	struct list waiting, running;	/* export_io.link */
};

/* Fixed files of an export: its descriptor, the descriptor of its fdatasync, the descriptor of its
 * tail. */
#define STORE_FILE_NFIXED 3u
_Static_assert(STORE_FILE_NFIXED <= EXPORT_RING_NFIXED - EXPORT_RING_STORE_FIXED,
	       "a slot has room for the files of an export");
/* Fixed files of a store: its claim, its locks, its lock file.  Locks and lock file only have to
 * last as long as the ring. */
#define STORE_FILE_NKEPT 3u
_Static_assert(STORE_FILE_NKEPT <= EXPORT_RING_STORE_FIXED,
	       "a slot has room for the files of a store");

/* The fixed file of @ex for reads and writes. */
static inline int store_file_fixed(const struct export *ex)
{
	return (int)(EXPORT_RING_NFIXED * ex->index);
}

/* The fixed file of @ex for fdatasync. */
static inline int store_file_fixed_sync(const struct export *ex)
{
	return store_file_fixed(ex) + 1;
}

/* The fixed file of @ex for the tail of a direct export, through the page cache. */
static inline int store_file_fixed_tail(const struct export *ex)
{
	return store_file_fixed(ex) + 2;
}

/* The first of the STORE_FILE_NKEPT fixed files of @store. */
static inline int store_file_fixed_kept(const struct store *store)
{
	return (int)(EXPORT_RING_NFIXED * store->index + EXPORT_RING_NFIXED -
		     EXPORT_RING_STORE_FIXED);
}

/* The fixed file of @ex for DISCARD and WRITE_ZEROES.  On a claimed device the kernel allows these
 * only to the description with the claim (else EBUSY, when pages are dirty). */
static inline int store_file_fixed_zero(const struct export *ex)
{
	bool claimed = store_file_keep(ex)->claim_fd >= 0;

	return claimed ? store_file_fixed_kept(ex->store) : store_file_fixed(ex);
}

/* Do a READ or a WRITE, or a WRITE_ZEROES by writing zeroes. */
void store_file_rw(struct export_io *io);
/* Do a DISCARD or a WRITE_ZEROES. */
void store_file_zero(struct export_io *io);

/* True if a WRITE like @io, started now, takes its data inside store_file_rw(), however long that
 * lasts. */
bool store_file_rw_takes(const struct export_io *io);

/* Do an EXTENTS. */
void store_file_extents(struct export_io *io);
/* Wait until the thread of the file has left @slot's reactor, which asks for nothing any more. */
void store_file_extents_detach(struct export_slot *slot);

/* store_io_ops.size; see export_io_size(). */
bool store_file_size(struct reactor *r, struct export *ex, int64_t *size,
		      void (*done)(struct export *ex, int64_t size, void *arg), void *arg);
/* store_io_ops.named; see export_io_named(). */
bool store_file_size_named(struct reactor *r, struct export *ex, int64_t *named,
		      void (*done)(struct export *ex, int64_t named, void *arg), void *arg);

#endif
