/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements reactor.h for the simulated server: a name around a loop of the simulation.  Ends when
 * nothing may be watched any more. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "reactor.h"
#include "sim-loop.h"

struct reactor {
	struct reactor_part part;	/* first */
	struct loop *loop;
	char name[32];
};

int reactor_create(const char *name, unsigned ring_entries, struct reactor **out)
{
	struct reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	snprintf(r->name, sizeof(r->name), "%s", name);
	rc = sim_loop_create(&r->loop);
	if (rc) {
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	assert(sim_loop_unused(r->loop));
	sim_loop_destroy(r->loop);
	free(r);
}

const char *reactor_name(const struct reactor *r)
{
	return r->name;
}

struct loop *reactor_loop(struct reactor *r)
{
	return r->loop;
}
