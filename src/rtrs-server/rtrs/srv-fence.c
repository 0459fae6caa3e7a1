/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the slots; the nodes are the requests'. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "srv-fence.h"

int srv_fence_init(struct srv_fence *f, unsigned depth)
{
	f->slots = calloc(depth, sizeof(*f->slots));
	if (!f->slots)
		return -ENOMEM;
	f->depth = depth;
	return 0;
}

void srv_fence_fini(struct srv_fence *f)
{
	for (unsigned i = 0; i < f->depth; i++)
		assert(!atomic_load(&f->slots[i].tail));
	free(f->slots);
	f->slots = NULL;
	f->depth = 0;
}
