/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledged writes that are gone, and which handles of the device were told so (doc/decisions.md
 * D13).
 *
 * The rule is that of the kernel's errseq: a device counts its losses, each handle remembers the
 * count that it was told of, and a FLUSH or FUA of a handle whose count is older fails.  Knows no
 * session, no server: an epoch is a number that grows when the session comes back.  Any thread,
 * unless a function says otherwise; nothing blocks or fails. */
#ifndef DEV_LOSS_H
#define DEV_LOSS_H

#include <stdatomic.h>
#include <stdbool.h>

/* Embedded in a device. */
struct dev_loss {
	atomic_uint write_seq;		/* acknowledged writes that need a FLUSH */
	atomic_uint flushed_seq;	/* of these, those that a FLUSH covered which succeeded */
	atomic_ullong losses;		/* count << 32 | epoch of the session that found the last one */
	atomic_bool left;		/* a handle that wrote was closed before it was told; a handle
					 * that opens now has to be told instead */
};

/* What a handle was told; embedded in a handle. */
struct dev_told {
	atomic_uint losses;		/* the count that the handle was told of */
	atomic_bool wrote;
	bool heir;			/* it opened while dev_loss.left was set */
};

/* What one FLUSH or FUA has to cover; embedded in an operation. */
struct dev_cover {
	unsigned write_seq;		/* of the device, when the operation began */
	unsigned told;			/* of the handle, likewise: operations that run at once cover
					 * the same writes and fail together */
};

/* The device begins a new life; it has no handle. */
void dev_loss_init(struct dev_loss *loss);

/* Unflushed writes were found lost in @epoch: the server's memory went.  Service thread. */
void dev_loss_found(struct dev_loss *loss, unsigned epoch);
bool dev_loss_unflushed(const struct dev_loss *loss);

/* A handle opens.  Losses of the past are none of its business, unless it is an heir. */
void dev_told_init(struct dev_told *told, const struct dev_loss *loss);
/* The handle closes. */
void dev_told_fini(struct dev_told *told, struct dev_loss *loss);

/* An operation of the handle begins. */
void dev_cover_begin(struct dev_cover *cover, const struct dev_told *told, const struct dev_loss *loss);

/* A write that needs a FLUSH was acknowledged. */
void dev_loss_wrote(struct dev_loss *loss, struct dev_told *told);

/* A FLUSH, or a write with FUA, was answered with success in @epoch.  0, or -EIO: writes of before
 * are lost, and the handle had not been told when the operation began.  @tells: the error reaches
 * the user, so that the handle now is told; false: the next operation has to tell it. */
int dev_loss_tell(struct dev_loss *loss, struct dev_told *told, const struct dev_cover *cover, unsigned epoch,
		  bool tells);
/* dev_loss_tell() of a FLUSH that returned 0: the writes of before need no other one. */
void dev_loss_flushed(struct dev_loss *loss, const struct dev_cover *cover);

#endif
