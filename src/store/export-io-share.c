/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of a ring one export may hold, so that a file system that stops does not hold all
 * workers of io_uring (doc/decisions.md D3).  The work of an export on a ring is limited, and the
 * rest waits in order of arrival.  A ring may have workers for the limits of all its exports; the
 * kernel makes workers for work that waits.
 *
 * No share has:
 *   - a READ, which waits for a disk without a worker, except for reads of a file system's own data
 *     (WORKERS_SPARE);
 *   - fdatasync, of which one runs at a time (store-file-sync.c);
 *   - a WRITE that is taken at once (store-file-inline.c).
 *
 * Owns the counts; thread of the reactor.  Cannot fail: with fewer workers, which is logged,
 * requests wait. */
#include <config.h>

#include "store-driver.h"
#include "store-uring.h"

#define SHARE_WRITES 64u
/* DISCARD and WRITE_ZEROES have a share of their own, because both may take much longer than a
 * write.  In the kernel such operations on one file wait for each other, so few at a time are as
 * quick as many. */
#define SHARE_ZEROES 8u
#define SHARE_SYNCS 1u
#define WORKERS_SPARE 64u
#define WORKERS_MAX 1024u

static struct export_share *share_of(const struct export_io *io)
{
	return io->op == RNBD_OP_WRITE ? &io->slot->writes : &io->slot->zeroes;
}

static bool share_take(struct export_share *share, struct export_io *io)
{
	if (share->used == (io->op == RNBD_OP_WRITE ? SHARE_WRITES : SHARE_ZEROES))
		return false;
	share->used++;
	io->share = share;
	return true;
}

bool export_io_share_enter(struct export_io *io)
{
	struct export_share *share = share_of(io);

	if (io->op == RNBD_OP_WRITE && io->slot->ops->takes_at_once(io))
		return true;
	if (list_empty(&share->waiting) && share_take(share, io))
		return true;
	list_add_tail(&share->waiting, &io->link);
	return false;
}

void export_io_share_leave(struct export_io *io, void (*start)(struct export_io *io))
{
	struct export_share *share = io->share;

	io->share = NULL;
	share->used--;
	while (!list_empty(&share->waiting)) {
		struct export_io *next = list_entry(share->waiting.next, struct export_io, link);

		if (!share_take(share, next))
			return;
		list_del(&next->link);
		start(next);
	}
}

void export_io_share_init(struct export_slot *slot)
{
	list_init(&slot->writes.waiting);
	list_init(&slot->zeroes.waiting);
}

void export_io_share_allow_workers(struct reactor *r, unsigned nexports)
{
	const unsigned each = SHARE_WRITES + SHARE_ZEROES + SHARE_SYNCS;
	unsigned want = MIN(nexports * each + WORKERS_SPARE, WORKERS_MAX);

	store_uring_allow_workers(r, want);
}
