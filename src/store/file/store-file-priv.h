/* SPDX-License-Identifier: BSD-3-Clause */
/* A file or block device as an export: the file driver's part of struct export, and the functions
 * of store-file*.c.  For these files and for tests; store-file-io.h has the IO on a ring. */
#ifndef STORE_FILE_PRIV_H
#define STORE_FILE_PRIV_H

#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#include "export.h"
#include "reactor.h"

#ifndef XFS_SUPER_MAGIC		/* <linux/magic.h> of older systems */
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* An open file description.  The kernel tells each description of a write-back error once. */
struct export_desc {
	struct list link;		/* store_file_all.descs */
	int fd;				/* -1: none */
	_Atomic(uint64_t) turns;	/* of each fdatasync on this ring: odd while it runs */
};

/* Opening a store again, see export_acquire(); store-file-sync.c. */
struct export_reopen_io {
	struct reactor_op op;
	struct reactor *reactor;
	struct export *ex;		/* one of the names */
	struct list *desc;		/* export_desc.link: the description to sync */
	unsigned pass;
	int status;
	void (*done)(void *arg);
	void *arg;
};

/* The thread that looks for holes in a file; store-file-extents.c. */
struct export_seeker {
	pthread_mutex_t lock;		/* waiting, serves, stop; to start the thread */
	pthread_cond_t cond;
	struct list waiting;		/* export_io.link */
	struct reactor *serves;	/* the asker of the question at work; NULL: none */
	pthread_t thread;
	bool running;
	bool stop;
};

struct store_file {
	struct export ex;
	int fd;				/* for everything except fdatasync */
	bool is_block;
	dev_t dev;			/* file: st_dev, st_ino; block device: st_rdev, 0 */
	ino_t ino;
	unsigned fs;			/* STORE_FILE_FS_*, since open() */
	/* On a direct export data from tail_start on goes through the page cache (tail_fd): the
	 * last bytes of a file whose size is no multiple of block_align, and all growth since. */
	int tail_fd;			/* -1: none */
	uint64_t tail_start;		/* UINT64_MAX: none */
	_Atomic(unsigned) cannot;	/* STORE_FILE_CANNOT_*: learnt by asking the kernel */
	uint32_t whole;			/* bytes; the kernel zeroes and discards blocks of that */
	_Atomic(int) inline_kind;	/* store-file-rw.c; any thread */
	struct export_seeker seeker;
	bool has_tail;			/* a part of a block; by open(), then the control thread */
	/* store-file-size.c; control thread: */
	struct store_file_ask *asks[EXPORT_QUESTIONS];	/* NULL: not yet */
	/* the kernel may write to @asks[i], which lasts as long as the process then */
	bool asking[EXPORT_QUESTIONS];

	struct export_desc fd_desc, tail_desc;
	struct export_desc *sync_descs;	/* [exports.nrings]: for fdatasync on each ring */
};

extern const struct store_driver store_file_driver;

/* struct store_driver.snapshot: store-file-snapshot.c. */
int store_file_snapshot(struct export *ex, const char *name, char *text, size_t len);

#define STORE_FILE_FS_HOLES 0x1u		/* SEEK_DATA finds all data */
#define STORE_FILE_FS_LOCAL 0x2u		/* a write waits for this machine only */
#define STORE_FILE_FS_DSYNC 0x4u		/* a direct write with RWF_DSYNC is durable */
#define STORE_FILE_FS_PARTS 0x8u		/* parts of a block are punched and zeroed, too */
#define STORE_FILE_FS_ERRORS 0x10u	/* any description's fdatasync reports lost writes */

#define STORE_FILE_CANNOT_DISCARD 0x1u		/* block device: BLOCK_URING_CMD_DISCARD */
#define STORE_FILE_CANNOT_STALE 0x2u		/* block device: FALLOC_FL_NO_HIDE_STALE */
#define STORE_FILE_CANNOT_PUNCH 0x4u
#define STORE_FILE_CANNOT_ZERO_RANGE 0x8u

/* Descriptors that keep others away from a file.  The store owns these descriptors.  As fixed files
 * of each ring they last as long as a request of this server is in the storage. */
struct store_file_keep {
	int lock_fd;			/* has the locks of the file; -1: not locked */
	int own_fd;			/* the lock file in the state directory; -1: none */
	int claim_fd;			/* O_EXCL, for DISCARD and WRITE_ZEROES; -1: none */
	bool writes;			/* the locks are exclusive: this server writes */
};

/* The file driver's part of a store: a file under all of its names. */
struct store_file_all {
	struct list descs;		/* export_desc.link; control thread */
	struct export_reopen_io reopen_io;
	struct store_file_keep keep;	/* constant while a ring has a name */
	/* Of a shared block device, from claim() on; store-file-share.c: */
	struct export *sharer;		/* the name whose descriptor is used; NULL: not shared */
	uint64_t key;			/* of this server at the device */
	bool kept;			/* this host has had the reservation since before the server
					 * began, and no client has wanted it */
} __attribute__((may_alias));

/* The file driver's part of @store. */
static inline struct store_file_all *store_file_all(const struct store *store)
{
	return (struct store_file_all *)(void *)(uintptr_t)store->own;
}

/* The file driver's export around @ex. */
static inline struct store_file *store_file(const struct export *ex)
{
	return container_of(ex, struct store_file, ex);
}

/* The descriptors that keep others away from the file of @ex. */
static inline struct store_file_keep *store_file_keep(const struct export *ex)
{
	return &store_file_all(ex->store)->keep;
}

/* Close @fd; -1: nothing to close. */
static inline void store_file_close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Open one more description of the file of @ex, with @flags of open(2) besides.  A descriptor, or
 * -errno.  Any thread; blocks. */
int store_file_desc_reopen(const struct export *ex, int flags);
/* Open the descriptions for fdatasync, one for each ring.  0 or -errno; store_file_desc_close() in
 * any case.  Any thread; blocks. */
int store_file_desc_open(struct store_file *f);
/* Close and free the descriptions of store_file_desc_open().  Any thread. */
void store_file_desc_close(struct store_file *f);
/* store_driver.added: the descriptions of @ex come to its store. */
void store_file_desc_added(struct export *ex);
/* store_driver.removed: the descriptions of @ex leave its store. */
void store_file_desc_removed(struct export *ex);

/* Fill the geometry of the opened @f.  Main thread or a worker (export-life.h), as all of the
 * following. */
void store_file_geometry(struct store_file *f, uint32_t st_blksize);
/* The bytes of a logical block of the opened device @f, which is read and written in whole blocks;
 * RNBD_SECTOR_SIZE of a file. */
uint32_t store_file_geometry_block(const struct store_file *f);
/* The size of the opened @f has @tail bytes behind its last whole block.  True: it had none before,
 * and the caller has the page cache of @f dropped: a page may begin a read ahead, over the tail.
 * Main thread, a worker, or the control thread; does not block. */
bool store_file_geometry_tail(struct store_file *f, uint64_t tail);
/* Punch a hole behind the end of the opened, writable file @f, which changes nothing.  0 or -errno:
 * the kernel's word on holes in this file. */
int store_file_punch_behind(const struct store_file *f);
/* The STORE_FILE_FS_* of the opened @f. */
unsigned store_file_geometry_fs(const struct store_file *f);
/* The struct export.ident of the opened @f. */
uint64_t store_file_ident(const struct store_file *f);
/* The struct export.place of the opened @f. */
uint64_t store_file_place(const struct store_file *f);
/* store_driver.fits: @ex and @other are one storage if and only if they look so. */
int store_file_ident_fits(const struct export *ex, const struct export *other, char *err,
			  size_t errlen);
/* Warn if clients may not know the file of @ex again. */
void store_file_ident_warn(const struct export *ex);
/* True if the block device of @ex has an id of its own, which any host reads. */
bool store_file_has_wwid(const struct export *ex);
/* Read the first line of the small file @path into @buf; false: no such line. */
bool store_file_disk_line(const char *path, char *buf, int len);
/* Read the first line of @attr of block device @dev into @buf.  A partition without @attr has @attr
 * of its disk.  False: no such line. */
bool store_file_disk_attr(dev_t dev, const char *attr, char *buf, int len);
/* The number in @attr, found as store_file_disk_attr() finds @attr; @otherwise: no number. */
uint64_t store_file_disk_number(dev_t dev, const char *attr, uint64_t otherwise);
/* True if the kernel knows of a user of block device @dev, its disk or one of its partitions.  @by
 * says how: "is mounted at '/mnt'" or the like. */
#define STORE_FILE_USE_MAX 640
bool store_file_disk_inuse(dev_t dev, char *by, size_t len);
/* The disk of the partition @dev; @dev itself: it is no partition. */
dev_t store_file_disk_of(dev_t dev);
/* True if @a and @b are one device, or if one is a partition of the other. */
bool store_file_disk_same(dev_t a, dev_t b);
/* Refuse to export @ex because of @use: -EBUSY, with the line in @err. */
int store_file_claim_refuse(const struct export *ex, const char *use, char *err, size_t errlen);
/* True if another process, as far as this process may look, has the file of @ex open for writing:
 * "process 812 (qemu-img)" in @name. */
bool store_file_look_writer(const struct export *ex, char *name, size_t len);
/* store_driver.look: warn of other writers of the files of the @n exports @all, beside clients. */
void store_file_look_warn(const struct export *const *all, unsigned n);
/* Warn if the storage of @ex is an image in a format like qcow2. */
void store_file_look_format(const struct export *ex);
/* True if @ex is a device for the server alone. */
bool store_file_claim_needed(const struct export *ex);
/* store_driver.claim: claim the block device of @ex. */
int store_file_claim(struct export *ex, char *err, size_t errlen);
/* The byte by which a server locks a file for writing: "rtrs", behind all bytes with which programs
 * lock images. */
#define STORE_FILE_WRITER_BYTE 0x7274727300000000
/* store_driver.lock: take the locks of the store of @ex. */
int store_file_lock(struct export *ex, char *err, size_t errlen);
/* Give back the locks in @keep, of @store. */
void store_file_lock_drop(const struct exports *e, const struct store *store,
			  struct store_file_keep *keep);
/* ---- store-file-share.c: a block device of two servers; a worker, or the main thread ---- */

/* Refuse to share the opened block device of @ex if no reservation can fence its hosts.  0, or
 * -errno with words in @why. */
int store_file_share_check(struct export *ex, char *why, size_t len);
/* Behind the claim of @ex: register this host.  0, or -errno with one line in @err. */
int store_file_share_begin(struct export *ex, char *err, size_t errlen);
/* store_driver.keeps, take, forget, yield, owns and renew. */
bool store_file_share_keeps(const struct store *store);
int store_file_share_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
			  size_t len);
int store_file_share_forget(struct export *ex, char *why, size_t len);
int store_file_share_yield(struct export *ex);
int store_file_share_owns(struct export *ex);
int store_file_share_renew(struct export *ex, char *why, size_t len);
/* @ex is no name of its store any more: the next name that is written goes on.  Without one the
 * reservation ends; no request and no other call is under way. */
void store_file_share_left(const struct export *ex);
/* Give the reservation of @store back, if another host can have it; nothing is in flight. */
void store_file_share_end(struct store *store);

/* store_driver.drop: drop the page cache of the file of @ex (store-file-sync.c). */
void store_file_sync_drop(struct export *ex);

/* store_driver.check_same: check that the path still names the opened file. */
int store_file_lock_check_same(const struct export *ex, char *err, size_t errlen);

/* ---- store-file-holder.c: the holders of flock(2) on a file; reads /proc ---- */

/* Has a server to wait for a holder?  Every reader of a file may lock the file.  A holder that may
 * not write is no reason to wait.  Returns true if a holder of a lock on @fd's file may write to
 * the file as far as its user (root, ours, the owner) and the mode tell, or if the holder cannot be
 * known.  Returns false if all holders belong to users who may not write.  Returns false, too, if
 * no process has the lock: the kernel keeps the lock for a process that has ended, or a process
 * hides it.  @who names a holder: "process 12 (name) of user 1001".  In a container, a PID
 * namespace that is not the first, a lock that no visible process asked for and has counts. */
bool store_file_holder_counts(int fd, char *who, size_t len);

#endif
