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

int dev_extents(struct dev *dev, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg)
{
	uint64_t start = align_down(off, RNBD_SECTOR_SIZE);
	uint64_t span = MIN(align_up(off + len, RNBD_SECTOR_SIZE) - start,
			    (uint64_t)EXTENTS_LEN_MAX);
	uint32_t room = one ? RNBD_EXTENTS_ROOM_MIN : RNBD_EXTENTS_ROOM;
	_cleanup_free_ void *answer = malloc(room);
	const struct rnbd_extent all = { .len = span };
	int n;

	if (!answer)
		return -ENOMEM;
	n = dev_io_extents(dev, answer, room, (uint32_t)span, start);
	if (n == -EOPNOTSUPP)
		return fn(arg, start, &all);
	if (n == 0)
		n = rnbd_extents_decode(answer, room, span);
	if (n < 0)
		return n == -EINVAL ? -EBADMSG : n;
	for (int i = 0; i < n; i++) {
		struct rnbd_extent e = rnbd_extents_get(answer, (unsigned)i);
		int r = fn(arg, start, &e);

		if (r)
			return r;
		start += e.len;
	}
	return 0;
}
