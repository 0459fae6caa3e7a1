/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk of the kernel's driver ublk_drv, served from a device of the client: made, taken over from
 * a process that is gone, resized, left and removed.
 *
 * WHOSE IS IT.  Once made the disk is the kernel's: if its process ends, the disk stays, its users
 * wait, and ublk_dev_take() of the next process goes on.  Requests that were in flight are done
 * again then: the server must have ended the session of the process before, so that no old copy of
 * a write comes late.  Any process may remove the disk.
 *
 * One thread, which is no loop's, for all functions; they block.  Errors have their reason, fit to
 * be printed, in @why[UBLK_WHY]. */
#ifndef UBLK_DEV_H
#define UBLK_DEV_H

#include "dev.h"
#include "loop.h"
#include "ublk-abi.h"

#define UBLK_WHY 256			/* bytes of the text of an error */

struct ublk_dev;

struct ublk_dev_conf {
	struct loop *const *loops;	/* [nloops], of the session: queue n is on n % nloops */
	unsigned nloops;
	struct dev *dev;		/* open for as long as the disk is served */
	/* The disk is not served any more, without a call of ours.  @status 0: it was removed; or
	 * -errno: a queue has failed, which was logged.  Any thread, once; ublk_dev_leave() is
	 * next. */
	void (*lost)(void *arg, int status);
	void *arg;
	/* of a new disk */
	uint64_t mark;			/* ublk_disk_find() knows the disk by it */
	unsigned queues, depth;		/* the kernel takes as many queues as CPUs at most */
	uint32_t io_bytes;		/* of the largest request; whole pages */
};

/* Make a disk.  When this returns 0 the disk works.  Otherwise nothing is left when the process has
 * ended. */
int ublk_dev_make(struct ublk_dev **out, const struct ublk_dev_conf *conf, char why[UBLK_WHY]);
/* Serve disk @id, whose process is gone.  When this returns 0 its requests go on.  -ENODEV: there
 * is no such disk; -EBUSY: a process serves it; -EMEDIUMTYPE: the export is not that disk.  After
 * an error the disk is as it was. */
int ublk_dev_take(struct ublk_dev **out, const struct ublk_dev_conf *conf, int id,
		  char why[UBLK_WHY]);
/* The number of the disk, /dev/ublkbN. */
int ublk_dev_id(const struct ublk_dev *d);
/* Make the disk as large as the client's device is now.  -EOPNOTSUPP: this kernel cannot. */
int ublk_dev_resize(struct ublk_dev *d, char why[UBLK_WHY]);
/* Begin no request of the disk any more, and answer no failure: the next process does again what
 * fails from now on, as when the client loses its patience.  Does not wait for requests. */
void ublk_dev_leave_begin(struct ublk_dev *d);
/* After that, or when the disk is lost: wait for requests that have begun, and free @d.  A disk
 * that was not removed stays, and ublk_dev_take() of another process has it when this one has
 * ended: the kernel wants that. */
void ublk_dev_leave(struct ublk_dev *d);

/* ---- for any process, whether one serves the disk or not (ublk-disk.c) ---- */

/* Can this kernel have disks that outlive their process?  0, or -errno. */
int ublk_disk_probe(char why[UBLK_WHY]);
/* The number of the disk whose mark has the bits @mask of *@mark; set *@mark to its mark.  -ENODEV:
 * there is none; or -errno. */
int ublk_disk_find(uint64_t *mark, uint64_t mask, char why[UBLK_WHY]);
/* Get the mark that disk @id was made with.  0; -ENODEV: there is none; or -errno. */
int ublk_disk_mark(int id, uint64_t *mark, char why[UBLK_WHY]);
/* End disk @id.  Requests that were not begun, and what the page cache has still to write, fail:
 * flush before.  Returns 0 when the disk has gone, whose number is free when the last user has
 * closed it; -ENODEV: there is none; or -errno. */
int ublk_disk_remove(int id, char why[UBLK_WHY]);

/* ---- for ublk-dev.c: an export as a disk ---- */

/* Can @dev be a disk of this kernel?  0, or -errno. */
int ublk_disk_can(const struct dev *dev, char why[UBLK_WHY]);
/* Describe @dev, as a disk with requests of @io_bytes. */
void ublk_disk_describe(const struct dev *dev, uint32_t io_bytes, struct ublk_abi_params *params);
/* Is @dev still the disk that the kernel describes as @disk?  0, or -EMEDIUMTYPE. */
int ublk_disk_is(const struct dev *dev, uint32_t io_bytes, const struct ublk_abi_params *disk,
		 char why[UBLK_WHY]);

#endif
