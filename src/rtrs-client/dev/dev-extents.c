/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks for extents.  The client uses no part of an answer before the whole answer is checked.  Owns
 * nothing; any thread. */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "dev-extents.h"
#include "dev-priv.h"

#define EXTENTS_LEN_MAX (1u << 31)	/* bytes of one question: whole sectors in 32 bits */

bool dev_extents_known(const struct dev *dev)
{
	return atomic_load(&dev->clt->features) & RNBD_EXT_EXTENTS;
}

void dev_extents_start(struct dev_extents_ask *ask, struct dev_handle *h, uint64_t len,
		       uint64_t off, bool one, void (*fn)(struct clt_waiter *w))
{
	uint64_t start = align_down(off, RNBD_SECTOR_SIZE);
	uint64_t span = MIN(align_up(off + len, RNBD_SECTOR_SIZE) - start,
			    (uint64_t)EXTENTS_LEN_MAX);

	ask->start = start;
	ask->room = one ? RNBD_EXTENTS_ROOM_MIN : RNBD_EXTENTS_ROOM;
	ask->io.span = (uint32_t)span;
	dev_io_extents_start(&ask->io, h, ask->answer, ask->room, start, fn);
}

int dev_extents_end(struct dev_extents_ask *ask,
		    int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent),
		    void *arg)
{
	const struct rnbd_extent all = { .len = ask->io.span };
	uint64_t start = ask->start;
	int n = dev_io_end(&ask->io);

	if (n == -EOPNOTSUPP)
		return fn(arg, start, &all);
	if (n == 0)
		n = rnbd_extents_decode(ask->answer, ask->room, ask->io.span);
	if (n < 0)
		return n == -EINVAL ? -EBADMSG : n;
	for (int i = 0; i < n; i++) {
		struct rnbd_extent e = rnbd_extents_get(ask->answer, (unsigned)i);
		int r = fn(arg, start, &e);

		if (r)
			return r;
		start += e.len;
	}
	return 0;
}

int dev_extents(struct dev_handle *h, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg)
{
	_cleanup_free_ void *answer = malloc(RNBD_EXTENTS_ROOM);
	struct dev_extents_ask ask = { .answer = answer };

	if (!answer)
		return -ENOMEM;
	dev_extents_start(&ask, h, len, off, one, NULL);
	clt_op_run(&ask.io.clt);
	return dev_extents_end(&ask, fn, arg);
}
