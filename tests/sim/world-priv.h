/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the simulated world. */
#ifndef WORLD_PRIV_H
#define WORLD_PRIV_H

#include "world.h"

struct world_server;

struct world {
	struct sim_disk *disk;
	struct world_server *server;	/* the one that lives, or NULL */
	struct list servers;		/* also those that are being taken apart */
	struct list clients;
	uint8_t boot;			/* of srv; part of its identity */
	bool other_host;		/* of the server that runs */
	uint32_t instances;		/* servers that were started */
	/* of the disk, what state files are in: lost with the power */
	struct export_state state;
};

struct world_client {
	struct list link;
	struct world *w;
	struct sim_host *host;
	unsigned epoch;
	struct loop *loops[WORLD_LOOPS];	/* the first is the service loop */
	unsigned nloops;
	struct client clt;
	char *device;
	struct dev_open_req open;
	bool open_done;
	struct dev_handle handle;
	struct list ios;
	struct sim_fiber *closer;	/* not NULL: killed, being taken apart */
};

/* ---- world-client.c ---- */
/* Wait for the end of one that was killed, and free it. */
void world_client_reap(struct world_client *c);

/* ---- world-server.c ---- */
/* Nothing of any server is left. */
bool world_servers_gone(void *world);
/* Free what has ended. */
void world_servers_reap(struct world *w);

#endif
