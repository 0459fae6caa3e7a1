/* SPDX-License-Identifier: BSD-3-Clause */
/* A process of the world that serves a disk of ublk (ublk-queue.c), as ublk-dev.c does in a
 * program. */
#ifndef WORLD_UBLK_H
#define WORLD_UBLK_H

#include "sim-ublk.h"
#include "world.h"

#define WORLD_UBLK_DEPTH 8u
#define WORLD_UBLK_IO_BYTES 65536u	/* of the largest request */

struct world_ublk;

/* Start a client with @conf but its .wait, whose device is open within @ms, and serve @disk, which
 * is @fd, with a queue on its first loop. */
struct world_ublk *world_ublk_start(struct world *w, const struct world_client_conf *conf,
				    uint64_t ms, struct sim_ublk *disk, int fd);
struct world_client *world_ublk_client(struct world_ublk *p);
/* The process is killed.  It falls apart behind the scenes; @p is not valid any more. */
void world_ublk_kill(struct world_ublk *p);
/* The process leaves the disk to the next one, as with SIGTERM.  Returns when it has ended. */
void world_ublk_leave(struct world_ublk *p);
/* The first part of it: what runs may end. */
void world_ublk_leave_begin(struct world_ublk *p);

#endif
