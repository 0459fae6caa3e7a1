/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts share the permits of a session, so that no user of the session waits behind a greedy
 * one. An account is a user of devices: a connection of NBD (struct dev_handle).
 *
 * A permit is held as long as its request is at the server: for microseconds, or for seconds if
 * the export has a limit there, or its storage hangs.  So turns alone help nobody: an account
 * whose requests stay would hold all permits after some turns.  What an account may hold at a
 * time counts:
 *
 * SHARE.  An account gets a permit if share.h lets it have one, of the permits that are free.
 *
 * TURN.  Operations that get no permit stand in the line of their account, in order.  Accounts
 * with a line take turns: the permits that came back in a pass go to the first account that may
 * hold more, up to a few, which then is the last one; and so on.  A few, because requests of one
 * account that go together are answered together: with one in a turn 64 connections had a send
 * for each answer, and 0.7 of the IOPS.  A turn is requests, not their bytes: a permit is a chunk
 * of the server whatever the length, and an account with short requests has its permits back
 * sooner.
 *
 * User messages have no account, and stand in front of all (clt-io.h, permits).
 *
 *	an account      its line    in io->turns    a new operation
 *	goes            empty       no              gets a permit, or begins the line
 *	waits           some        yes             stands last in the line
 *
 * Only an account that may hold no more waits: whatever makes a permit free looks at all that
 * wait.
 *
 * THREADS.  An account is opened and closed by its owner, with no operation under way.  @held
 * changes on any thread; the lists are under clt_io.lock.  A thread counts what it takes before
 * it looks whether that was too much, so that several threads at once do not take more than a
 * share, either. */
#ifndef CLT_ACCOUNT_H
#define CLT_ACCOUNT_H

#include <stdatomic.h>

#include "list.h"

struct clt_io;

struct clt_account {
	struct clt_io *io;
	atomic_uint held;		/* permits */
	struct list line;		/* io->lock: clt_op.permit_link, in order */
	struct list turn;		/* io->lock: in io->turns while @line is not empty */
	unsigned turn_left;		/* io->lock: requests of this turn */
};

/* Open @a, an account of @io's session.  Any thread. */
void clt_account_open(struct clt_account *a, struct clt_io *io);
/* Close @a, which the caller still owns.  No operation of it is left.  Any thread. */
void clt_account_close(struct clt_account *a);

#endif
