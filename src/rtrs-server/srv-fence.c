/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tails of the queues; the nodes are the requests'. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "srv-fence.h"

int srv_fence_init(struct srv_fence *f, unsigned depth)
{
	f->tails = calloc(depth, sizeof(*f->tails));
	if (!f->tails)
		return -ENOMEM;
	f->depth = depth;
	return 0;
}

void srv_fence_fini(struct srv_fence *f)
{
	for (unsigned i = 0; i < f->depth; i++)
		assert(!atomic_load(&f->tails[i]));
	free((void *)f->tails);
	f->tails = NULL;
	f->depth = 0;
}
