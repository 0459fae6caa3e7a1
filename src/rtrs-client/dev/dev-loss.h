/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledged writes that are gone, and which handles of the device were told so (doc/decisions.md
 * D13).
 *
 * The rule is that of the kernel's errseq: a device counts its losses, each handle remembers the
 * count that it was told of, and a FLUSH or FUA of a handle whose count is older fails.
 *
 * A handle that is closed before it was told leaves.  So does one that is closed while writes of
 * its own are unflushed, since the loss may be found later.  A loss that concerns a handle that
 * left is a debt: handles that open from then on are told of it, until one that opened behind the
 * leaving was.
 *
 * Knows no session, no server: an epoch is a number that grows when the session comes back.  Any
 * thread, unless a function says otherwise.  Locks dev_loss.lock, which is innermost; nothing
 * fails. */
#ifndef DEV_LOSS_H
#define DEV_LOSS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Embedded in a device. */
struct dev_loss {
	atomic_ullong write_seq;	/* acknowledged writes that need a FLUSH */
	atomic_ullong flushed_seq;	/* of these, those that a FLUSH covered which succeeded */

	pthread_mutex_t lock;		/* for all below */
	uint64_t count;			/* losses */
	uint64_t count_before;		/* losses found before @epoch */
	unsigned epoch;			/* of the session that found the last loss */
	uint64_t left;			/* handles that left */
	uint64_t left_write;		/* the last write_seq of a handle that left with unflushed
					 * writes */
	uint64_t owed, paid;		/* debts, as values of @left: up to which one exists, and up
					 * to which a handle was told instead */
};

/* The losses that a handle was told of; embedded in the handle. */
struct dev_told {
	uint64_t count;			/* of losses that the handle was told of; dev_loss.lock */
	uint64_t left;			/* dev_loss.left when the handle opened */
	atomic_ullong wrote;		/* write_seq of its last write; 0: it has not written */
};

/* The writes that one FLUSH or FUA has to cover; embedded in the operation. */
struct dev_cover {
	uint64_t write_seq;		/* of the device, when the operation began */
	/* of the handle, likewise: operations that run at once cover the same writes and fail
	 * together */
	uint64_t told;
};

void dev_loss_init(struct dev_loss *loss);
/* The device begins a new life; it has no handle. */
void dev_loss_reset(struct dev_loss *loss);
void dev_loss_fini(struct dev_loss *loss);

/* Unflushed writes were found lost in @epoch: the server's memory went. */
void dev_loss_found(struct dev_loss *loss, unsigned epoch);
/* Lock-free. */
bool dev_loss_unflushed(const struct dev_loss *loss);

/* A handle opens.  Losses of the past are none of its business, unless one is owed. */
void dev_told_init(struct dev_told *told, struct dev_loss *loss);
/* The handle closes. */
void dev_told_fini(struct dev_told *told, struct dev_loss *loss);

/* An operation of the handle begins. */
void dev_cover_begin(struct dev_cover *cover, const struct dev_told *told, struct dev_loss *loss);

/* A write that needs a FLUSH was acknowledged.  Lock-free. */
void dev_loss_wrote(struct dev_loss *loss, struct dev_told *told);

/* A FLUSH, or a write with FUA, was answered with success in @epoch.  0, or -EIO: writes of before
 * are lost, and the handle had not been told when the operation began.  @tells: the error reaches
 * the user, so that the handle now is told; false: the next operation has to tell it. */
int dev_loss_tell(struct dev_loss *loss, struct dev_told *told, const struct dev_cover *cover,
		  unsigned epoch, bool tells);
/* dev_loss_tell() of a FLUSH that returned 0: the writes of before need no other one.
 * Lock-free. */
void dev_loss_flushed(struct dev_loss *loss, const struct dev_cover *cover);

#endif
