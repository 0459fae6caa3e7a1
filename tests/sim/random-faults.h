/* SPDX-License-Identifier: BSD-3-Clause */
/* The random part of random runs: a server, a client, and faults of the network, of the server and
 * of its storage.  The seed chooses. */
#ifndef RANDOM_FAULTS_H
#define RANDOM_FAULTS_H

#include "history.h"
#include "world.h"

struct random_faults {
	struct world *w;
	struct world_client *client;
	struct history *h;		/* is told of losses */
	struct world_server_conf server;	/* of the server that starts again */
	unsigned npaths;		/* ways to the server; a fault of the network is of one */
};

/* Choose a server for a client with @npaths paths. */
void random_server(struct world_server_conf *conf, unsigned npaths);
/* Choose a client.  @lenient: requests may fail, for the patience of the session is short. */
void random_client(struct world_client_conf *conf, unsigned npaths, bool lenient);
/* Choose how fast wires and storage are. */
void random_delays(struct world *w, unsigned npaths);
/* One fault, which may take time. */
void random_fault(const struct random_faults *f);
/* No fault of the network is left. */
void random_heal(const struct random_faults *f);

#endif
