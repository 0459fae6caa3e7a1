/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of runs with two servers before one disk: of the servers, the network, the disk and
 * its lock.  The seed chooses. */
#ifndef SHARE_FAULTS_H
#define SHARE_FAULTS_H

#include "history.h"
#include "world.h"

struct share_faults {
	struct world *w;
	struct history *h;
	struct world_server_conf server[WORLD_SERVERS];	/* with which a server starts again */
	unsigned restarts;		/* of servers, which forget their losses by that */
};

/* Choose servers, and how fast wires, disk and lock are. */
void share_random(struct share_faults *f);
/* Start the server on @host. */
void share_start(struct share_faults *f, const char *host);
/* One fault, which may take time. */
void share_fault(struct share_faults *f);
/* No fault is left, but the lock may still be told of late. */
void share_heal(struct share_faults *f);

#endif
