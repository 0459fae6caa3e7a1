/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation at work: its stages (export-io.c), and the part of the drivers.  All functions:
 * thread of the reactor.
 *
 * One operation goes through stages, each with one or several submissions:
 *	PREFLUSH	sync(), with RNBD_F_PREFLUSH
 *	WORK		rw(), zero() or extents()
 *	SYNC		sync(): FLUSH, and the part of FUA that WORK has not done
 * A stage ends in export_io_next(). */
#ifndef STORE_DRIVER_H
#define STORE_DRIVER_H

#include <stddef.h>

#include "bitmap.h"
#include "export-io.h"
#include "reactor.h"

struct store_driver;

enum export_stage { EXPORT_PREFLUSH, EXPORT_WORK, EXPORT_SYNC, EXPORT_END };

/* A kind of storage on a ring.  attach to detach_store may be NULL. */
struct store_io_ops {
	/* Make slot->ex ready on this ring.  0, or -errno with one line in @err. */
	int (*attach)(struct export_slot *slot, char *err, size_t errlen);
	/* Undo attach(). */
	void (*detach)(struct export_slot *slot);
	/* Have the locks and the claim of @store last as long as @ring.  Called for each new name
	 * of @store on the ring, because a name may have brought locks or a claim.  Returns as
	 * attach() does. */
	int (*attach_store)(struct export_ring *ring, struct store *store, char *err,
			    size_t errlen);
	/* The last name of @store has left @ring. */
	void (*detach_store)(struct export_ring *ring, struct store *store);
	void (*rw)(struct export_io *io);	/* READ, WRITE */
	void (*zero)(struct export_io *io);	/* DISCARD, WRITE_ZEROES */
	void (*extents)(struct export_io *io);
	void (*sync)(struct export_io *io);
	/* True if rw() of this WRITE takes the data at once, without a worker of the ring. */
	bool (*takes_at_once)(const struct export_io *io);
	/* The log's words about an operation that failed with @err, which is negative; NULL:
	 * strerror().  May be NULL. */
	const char *(*words)(int err);
	/* export_io_reopen(); NULL: no sync fails for the writes of others, so none is latched. */
	void (*reopen)(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg);
	/* export_io_size() */
	bool (*size)(struct reactor *r, struct export *ex, int64_t *size,
		     void (*done)(struct export *ex, int64_t size, void *arg), void *arg);
	/* export_io_named(); NULL: a target always names the storage that is open. */
	bool (*named)(struct reactor *r, struct export *ex, int64_t *named,
		      void (*done)(struct export *ex, int64_t named, void *arg), void *arg);
};

/* A limit of operations at work; the rest waits. */
struct export_share {
	unsigned used;
	struct list waiting;		/* export_io.link */
};

/* The timer of a ring that has logged a failed operation, to log later failures. */
struct export_failed_timer {
	struct loop_timer timer;
	struct export_slot *slot;
	enum export_failed_kind kind;
	bool armed;
};

/* An export on a ring. */
struct export_slot {
	struct export_ring *ring;
	struct export *ex;
	const struct store_io_ops *ops;
	struct export_share writes, zeroes;	/* export-io.c */
	struct export_failed_timer failed[EXPORT_FAILED_KINDS];
	void *own;			/* the driver's */
};

struct export_ring {
	struct reactor *reactor;
	unsigned index;			/* below exports.nrings */
	struct export_slot **slots;	/* by export.index; NULL: free */
	unsigned *names;		/* by store.index: how many names of the store are on this
					 * ring */
	unsigned nslots, nexports;	/* room, and exports on this ring */
	struct bitmap mems;		/* slots of fixed buffers */
	struct list finished;		/* export_io.link: done() is due */
	struct loop_task finish_task;
	void *zeroes;			/* EXPORT_ZEROES bytes, read only */
	bool never_blocks;
	/* store-file-rw.c */
	uint64_t inline_pause_until_ms;
	_Atomic(uint64_t) inline_since_ms;	/* inside a system call since; 0: not inside; any
						 * thread */
};

#define EXPORT_ZEROES (1u << 20)
/* Fixed files of slot i: the first ones belong to export i, the others to store i. */
#define EXPORT_RING_NFIXED 6u
#define EXPORT_RING_STORE_FIXED 3u

/* The current stage of @io has ended with @status: go on or finish.  done() may have run. */
void export_io_next(struct export_io *io, int status);
/* Call export_io_next() in the next pass, for a stage that ends without a completion. */
void export_io_next_later(struct export_io *io, int status);
/* Answer EXTENTS: all of @io, of which nothing is known, is data.  Any thread. */
void export_io_all_data(struct export_io *io);
/* Run export_io_next() for all of export_ring.finished; the function of export_ring.finish_task. */
void export_io_finish_task(struct loop_task *task);

/* Tell the log that the storage has failed @io with @err, or count it. */
void export_io_failed(struct export_io *io, int err);
/* Begin with no failures counted on @slot. */
void export_io_failed_init(struct export_slot *slot);
/* Log the counted failures.  Thread of the ring, or no thread runs the ring. */
void export_io_failed_end(struct export_slot *slot);

/* Begin with all shares of @slot free. */
void export_io_share_init(struct export_slot *slot);
/* Let the ring of @r have as many workers as the shares of @nexports can hold. */
void export_io_share_allow_workers(struct reactor *r, unsigned nexports);

/* ---- the drivers of this server ---- */

/* To add one: a folder with its store_NAME_driver and its store_NAME_io_ops, a line in
 * STORE_DRIVERS(), and its folder in local.mk. */
#ifdef HAVE_RBD
#define STORE_DRIVER_RBD(X) X(rbd)
#else
#define STORE_DRIVER_RBD(X)
#endif

/* The driver of paths is the last one. */
#define STORE_DRIVERS(X) \
	X(mem)                                                                                     \
	STORE_DRIVER_RBD(X)                                                                        \
	X(file)

/* The drivers in the order of STORE_DRIVERS(), and the IO of each (store-uring.c).  The simulation
 * has tables of its own. */
extern const struct store_driver *const store_drivers[];
extern const struct store_io_ops *const store_drivers_io[];

/* ---- store-uring.c: the part of a reactor's io_uring that all storage shares ---- */

/* The tables of fixed files and fixed buffers, and workers.  The simulation has its own
 * (tests/sim/sim-uring.c). */
#define STORE_URING_MEMS 4096u

/* Make tables with @nfiles fixed files and STORE_URING_MEMS fixed buffers, all of them empty.  0,
 * or -errno with one line in @err. */
int store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen);
/* Let go of the files now, not some time after the ring is closed. */
void store_uring_let_go(struct reactor *r);
/* Allow the ring @want workers, or warn that the kernel does not.  More workers than @want stay
 * allowed. */
void store_uring_allow_workers(struct reactor *r, unsigned want);
/* Make [@addr, @addr + @len) fixed buffer @mem; NULL, 0: empty the buffer.  0 or -errno. */
int store_uring_mem(struct reactor *r, unsigned mem, void *addr, size_t len);

#endif
