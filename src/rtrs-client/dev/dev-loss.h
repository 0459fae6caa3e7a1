/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses of a device: acknowledged writes that are gone, and the handles that know of
 * the losses (doc/decisions.md D13).
 *
 * The rule is the rule of the kernel's errseq.  A device counts its losses.  Each handle remembers
 * the count at its last news.  A FLUSH or FUA fails if the handle's count is older.
 *
 * A handle that has written leaves if the handle is closed untold, or with unflushed writes of its
 * own, whose loss may be found later.  A loss that concerns a handle that left is a debt: each
 * handle that opens later is told of the debt, until a handle that opened after the leaving was
 * told.
 *
 * Knows no session and no server: an epoch is a number that grows when the session comes back.  Any
 * thread, unless a function names another.  Locks dev_loss.lock, which is innermost; nothing
 * fails. */
#ifndef DEV_LOSS_H
#define DEV_LOSS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The part that may outlive the process (client-kept.h). */
struct dev_loss_kept {
	atomic_ullong write_seq;	/* acknowledged writes that need a FLUSH */
	atomic_ullong flushed_seq;	/* of @write_seq, covered by a successful FLUSH */
	atomic_uint untold;		/* 1: the last loss has reached no user */
};

/* Embedded in a device. */
struct dev_loss {
	struct dev_loss_kept *kept;	/* constant while there is a handle; @own, or memory that
					 * outlives the process */
	struct dev_loss_kept own;

	pthread_mutex_t lock;		/* for all fields below */
	uint64_t count;			/* losses */
	uint64_t reported;		/* of @count, the last that has reached a user */
	uint64_t count_before;		/* losses found before @epoch */
	unsigned epoch;			/* of the session that found the last loss */
	uint64_t left;			/* handles that left */
	uint64_t left_write;		/* the last write_seq of a handle that left with
					 * unflushed writes */
	uint64_t owed, paid;		/* values of @left: up to @owed a debt exists, up to
					 * @paid another handle was told */
};

/* The news of a handle; embedded in the handle. */
struct dev_told {
	uint64_t count;			/* losses told to the handle; dev_loss.lock */
	uint64_t left;			/* dev_loss.left when the handle opened */
	atomic_ullong wrote;		/* write_seq of its last write; 0: no write yet */
	/* Of all below: dev_loss.lock.  The next process has to report a loss once more until the
	 * user has the answer to each FLUSH and FUA that was under way when the first one told. */
	uint64_t due;			/* @count that is being told; 0: none is */
	unsigned covers;		/* FLUSHes and FUAs under way */
	unsigned old;			/* of @covers, those that began before @count was told */
	unsigned errors;		/* of FLUSHes and FUAs, on the way to the user */
};

/* The writes that a FLUSH or FUA has to cover; embedded in the operation. */
struct dev_cover {
	uint64_t write_seq;		/* of the device, when the operation began */
	/* dev_told.count when the operation began: parallel operations cover the same writes and
	 * fail together */
	uint64_t told;
};

/* Initialize @loss, without losses. */
void dev_loss_init(struct dev_loss *loss);
/* Have @loss, which is initialized, go on with @kept, of a process that has ended: its handles have
 * left.  @kept outlives @loss. */
void dev_loss_resume(struct dev_loss *loss, struct dev_loss_kept *kept);
/* Have @loss, without a handle and without losses, keep its part in @kept from now on, for the next
 * process. */
void dev_loss_keep(struct dev_loss *loss, struct dev_loss_kept *kept);
/* Forget all losses: the device, without a handle, begins a new life. */
void dev_loss_reset(struct dev_loss *loss);
/* Free the lock of @loss. */
void dev_loss_fini(struct dev_loss *loss);

/* Count a loss of unflushed writes, found in @epoch: the server's memory is gone. */
void dev_loss_found(struct dev_loss *loss, unsigned epoch);
/* True if an acknowledged write waits for a FLUSH.  Lock-free. */
bool dev_loss_unflushed(const struct dev_loss *loss);

/* Open a handle.  Losses of the past do not concern the handle, unless a debt exists. */
void dev_told_init(struct dev_told *told, struct dev_loss *loss);
/* The error of a FLUSH or FUA has reached the user of the handle; once for each. */
void dev_told_arrived(struct dev_told *told, struct dev_loss *loss);
/* Close the handle, which may leave.  All answers have reached its user. */
void dev_told_fini(struct dev_told *told, struct dev_loss *loss);

/* Begin a FLUSH or FUA of the handle, which ends with dev_loss_tell() or dev_cover_fail(). */
void dev_cover_begin(struct dev_cover *cover, struct dev_told *told, struct dev_loss *loss);
/* The server has not carried it out. */
void dev_cover_fail(const struct dev_cover *cover, struct dev_told *told, struct dev_loss *loss);

/* Count an acknowledged write that needs a FLUSH.  Lock-free. */
void dev_loss_wrote(struct dev_loss *loss, struct dev_told *told);

/* The server has answered a FLUSH, or a write with FUA, with success in @epoch.  0, or -EIO:
 * earlier writes are lost, and the handle was untold when the operation began.  @tells: the error
 * reaches the user, so the handle counts as told; false: the next operation fails, too. */
int dev_loss_tell(struct dev_loss *loss, struct dev_told *told, const struct dev_cover *cover,
		  unsigned epoch, bool tells);
/* dev_loss_tell() of a FLUSH has returned 0: its writes need no other FLUSH.  Lock-free. */
void dev_loss_flushed(struct dev_loss *loss, const struct dev_cover *cover);

#endif
