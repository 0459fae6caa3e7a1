/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the simulated world. */
#ifndef WORLD_PRIV_H
#define WORLD_PRIV_H

#include "world.h"

struct world_server;

struct world {
	struct sim_disk *disk;
	struct world_server *servers_up[WORLD_SERVERS];	/* the one of a host that lives, or NULL */
	struct list servers;		/* also those that are being taken apart */
	struct list clients;
	uint8_t boot[WORLD_SERVERS];	/* of the host; part of its identity */
	bool other_host;		/* of the server that runs on srv */
	uint32_t instances;		/* servers that were started */
	/* of the host's disks, what state files are in: lost with the power */
	struct export_state state[WORLD_SERVERS];
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
	struct client_kept *kept, *kept_file;	/* what it writes to; where a later one finds it */
	struct dev_open_req open;
	bool open_done;
	struct dev_handle handle;
	struct list ios;
	struct sim_fiber *closer;	/* not NULL: killed, being taken apart */
	/* what else uses the device of one that was killed, until over(); NULL: nothing */
	bool (*over)(void *arg);
	void *more;
	void (*free_more)(void *arg);
};

/* ---- world-client.c ---- */
/* Wait for the end of one that was killed, and free it. */
void world_client_reap(struct world_client *c);

/* ---- world-server.c ---- */
/* The place of a server's host in the tables of struct world; NULL: of "srv". */
unsigned world_place(const char *host);
/* Nothing of any server is left. */
bool world_servers_gone(void *world);
/* Forget which lines the servers have written lately (srv-log.h). */
void world_servers_forget(struct world *w);
/* Free what has ended. */
void world_servers_reap(struct world *w);

#endif
