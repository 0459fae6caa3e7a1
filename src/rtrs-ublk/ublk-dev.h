/* SPDX-License-Identifier: BSD-3-Clause */
/* A block device of the kernel's driver ublk_drv, served from a device of the client: made, taken
 * over from a process that is gone, resized, and ended.
 *
 * WHOSE IS IT.  Once made the device belongs to the kernel: if the process ends without
 * ublk_dev_stop(), the disk stays, its users wait, and ublk_dev_take() of the next process goes on.
 * Requests that were in flight are done again then: the server must have ended the session of the
 * process before, so that no old copy of a write comes late.
 *
 * One thread, which is no loop's, for all functions; they block.  Errors have their reason, fit to
 * be printed, in @why[UBLK_WHY]. */
#ifndef UBLK_DEV_H
#define UBLK_DEV_H

#include "dev.h"
#include "fsm.h"
#include "loop.h"

#define UBLK_WHY 256			/* bytes of the text of an error */
#define UBLK_ANY (-1)			/* the kernel chooses the number */

struct ublk_dev;

struct ublk_dev_conf {
	struct loop *const *loops;	/* [nloops], of the session: queue n is on n % nloops */
	unsigned nloops;
	struct dev *dev;		/* open for as long as the device is served */
	bool readonly;			/* whatever the server allows */
	unsigned queues, depth;		/* of a new device; the kernel takes as many queues as CPUs
					 * at most */
	uint32_t io_bytes;		/* of the largest request of a new device */
	/* The device is not served any more, without a call of ours: another process has removed
	 * it, or a queue has failed, which was logged.  Any thread, once; ublk_dev_leave() is next.
	 */
	void (*lost)(void *arg);
	void *arg;
};

/* Can this kernel have such devices?  0, or -errno with the reason. */
int ublk_dev_probe(char why[UBLK_WHY]);

/* Make the disk with number @id, or UBLK_ANY.  When this returns 0 the disk works.  Otherwise
 * nothing is left. */
int ublk_dev_make(struct ublk_dev **out, const struct ublk_dev_conf *conf, int id,
		  char why[UBLK_WHY]);
/* Serve disk @id, whose process is gone.  When this returns 0 its requests go on.  -ENODEV: there
 * is no such disk; -EBUSY: a process serves it.  After an error it is as it was. */
int ublk_dev_take(struct ublk_dev **out, const struct ublk_dev_conf *conf, int id,
		  char why[UBLK_WHY]);

/* The number of the disk, /dev/ublkbN. */
int ublk_dev_id(const struct ublk_dev *d);
/* True if the kernel can change the size of the disk in use. */
bool ublk_dev_can_resize(const struct ublk_dev *d);
/* Make the disk as large as the client's device is now.  0; -EOPNOTSUPP: the kernel cannot. */
int ublk_dev_resize(struct ublk_dev *d, char why[UBLK_WHY]);

enum ublk_stop {
	UBLK_STOP_FLUSHES,		/* what the page cache holds is written first */
	UBLK_STOP_DROPS,		/* it is lost, and requests of users fail */
};

/* End the disk, and free @d.  Requests that have begun are waited for.  -errno of UBLK_STOP_FLUSHES
 * means that the flush has failed, and that nothing was ended. */
int ublk_dev_stop(struct ublk_dev *d, enum ublk_stop how, char why[UBLK_WHY]);
/* Free @d, whose disk stays for ublk_dev_take().  Waits for requests that have begun. */
void ublk_dev_leave(struct ublk_dev *d);
/* End disk @id, which no process serves: its waiting requests fail. */
int ublk_dev_forget(int id, char why[UBLK_WHY]);

extern const struct fsm ublk_dev_fsm;

#endif
