/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent reservations of a block device: which of several hosts may write is decided, and
 * enforced, by the device.  For exports that two servers share (doc/decisions.md D22).
 *
 *	store_file_pr_check		may this device be shared at all
 *	store_file_pr_new_key		a key for this server, which the caller keeps
 *	store_file_pr_register		make the key known: who is only registered may not write
 *	store_file_pr_reserve		politely: -EBUSY if another host has the reservation
 *	store_file_pr_look		who has it, with which key
 *	store_file_pr_preempt		take it from the host with that key, whose requests end
 *	store_file_pr_forget		the device forgets the key of a host without the reservation
 *	store_file_pr_release		another host may reserve
 *	store_file_pr_unregister	the device forgets the key, and a reservation with it
 *
 * The reservation is PR_WRITE_EXCLUSIVE: the holder alone writes, everybody reads.  Of
 * PR_WRITE_EXCLUSIVE_REG_ONLY every registered host might write, and a host has to be registered
 * before it asks.  In return a host must reach the device on one path only: SCSI knows the holder
 * by its path.  (For NVMe the host is the holder, on all of its paths.)
 *
 * A fenced host is told by its own writes: the completion of a WRITE, DISCARD or WRITE_ZEROES in
 * flight or later has an errno of store_file_pr_fenced().  READ goes on, and so does FLUSH on some
 * devices (LIO): an answer to either says nothing about the reservation.
 *
 * Thread: a worker.  Each function but store_file_pr_fenced() and store_file_pr_new_key() sends
 * commands to the device and blocks until the device answers: a minute and more if it does not.
 * Not on the control thread, not on a thread of a ring.  Functions keep nothing.  One struct
 * store_file_pr may be used on one thread at a time.
 *
 * Errors are negative errnos with words in @why, which name the device and what was expected:
 *	-EBUSY		another host has the reservation
 *	-ENOKEY		the device does not know the key of this host: another host has preempted it
 *	-EAGAIN		nobody has the reservation: the other host gave it up meanwhile.  Again
 *	-EOPNOTSUPP	the device has no persistent reservations, or cannot tell of them
 *	-EPERM		the kernel wants a capability: named in @why
 *	-EIO		the device does not carry a command out
 *
 * Kernels: IOC_PR_REGISTER and its sisters are as old as Linux 4.4.  Who reserves can be asked by
 * ioctl since 6.19; before, a SCSI disk is asked by SG_IO, which takes CAP_SYS_RAWIO, and an NVMe
 * namespace is refused.  Linux 6.1 wants CAP_SYS_ADMIN for every reservation; 6.12 is content with
 * a descriptor that may write. */
#ifndef STORE_FILE_PR_H
#define STORE_FILE_PR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_file_pr {
	int fd;				/* the device, open for writing; the caller's */
	const char *path;		/* for messages; the caller's */
	uint64_t key;			/* of this server: never 0 */
};

enum store_file_pr_owner {
	STORE_FILE_PR_FREE,		/* nobody has the reservation: everybody writes */
	STORE_FILE_PR_OURS,
	STORE_FILE_PR_OTHER,
};

/* The reservation as the device tells it.  Two commands ask, so a host that registers or reserves
 * at that moment may be seen half. */
struct store_file_pr_view {
	enum store_file_pr_owner owner;
	uint64_t holder;		/* the holder's key; 0: nobody, or all who are registered */
	bool registered;		/* the device knows our key */
	unsigned others;		/* keys of other hosts that the device knows */
	uint64_t idle;			/* one of these keys, of a host without the reservation; 0:
					 * there is none */
};

/* 0 if hosts may share the device of @pr by reservations, whose key is not needed.  A partition is
 * refused, because the reservation would be that of the whole disk.  A device-mapper device is
 * refused, because the reservation would be that of all disks below it, on one path. */
int store_file_pr_check(const struct store_file_pr *pr, char *why, size_t len);

/* A random key, never 0.  0 or -errno.  Any thread; may wait for the kernel's entropy at boot. */
int store_file_pr_new_key(uint64_t *key);

/* Register the key of @pr for this host, in place of the key of an earlier server on this host.  A
 * reservation that this host has stays, now under the new key.  0 or -errno. */
int store_file_pr_register(const struct store_file_pr *pr, char *why, size_t len);

/* Reserve if nobody has the reservation.  0: this host has it, now or already. */
int store_file_pr_reserve(const struct store_file_pr *pr, char *why, size_t len);

/* Fill @view.  0 or -errno. */
int store_file_pr_look(const struct store_file_pr *pr, struct store_file_pr_view *view, char *why,
		       size_t len);

/* Take the reservation from the host whose key is @other (store_file_pr_view.holder), and end what
 * that host has in the device.  On success no write of the other host lands any more: its
 * registration is gone.  -EBUSY: a third host was faster, or the holder has another key now. */
int store_file_pr_preempt(const struct store_file_pr *pr, uint64_t other, char *why, size_t len);

/* Remove the registration of a host without the reservation, by its key @other
 * (store_file_pr_view.idle).  If that host has the reservation by now, this host takes it.  -EBUSY:
 * the device still knows @other. */
int store_file_pr_forget(const struct store_file_pr *pr, uint64_t other, char *why, size_t len);

/* Give the reservation back.  The registration stays.  0, too, if this host does not have it. */
int store_file_pr_release(const struct store_file_pr *pr, char *why, size_t len);

/* Remove the registration.  0, too, if another host has removed it. */
int store_file_pr_unregister(const struct store_file_pr *pr, char *why, size_t len);

/* True if @rc, of a completion, means that this host may not write.  EBADE is what the block layer
 * makes of a reservation conflict (BLK_STS_NEXUS in 6.1, BLK_STS_RESV_CONFLICT in 6.12, SCSI and
 * NVMe alike), for direct IO.  A write that lies in the page cache fails with EIO, later.  A
 * request that the device has begun when it is preempted may have done its work: with LIO it ends
 * with EBADE, another device may answer with EIO. */
static inline bool store_file_pr_fenced(int rc)
{
	return rc == -EBADE;
}

/* ---- store-file-pr-ask.c: how the device is asked, for store-file-pr.c alone ---- */

/* An ioctl of linux/pr.h on @fd, with the device's status made an errno: 0; -EBUSY, a reservation
 * conflict; -EIO; or the kernel's -errno.  A device that first has something else to tell (a unit
 * attention) is asked again.  Worker; blocks. */
int store_file_pr_ioctl(int fd, unsigned long request, void *arg);

/* Ask for the holder's key and whether @key is registered.  0, -EOPNOTSUPP, -EPERM, or another
 * -errno.  Worker; blocks. */
int store_file_pr_ask(int fd, uint64_t key, struct store_file_pr_view *view);

#endif
