/* SPDX-License-Identifier: BSD-3-Clause */
/* The NBD engine (src/nbd) on a loop whose passes and whose time are the test's, with a disk in
 * memory behind it.  For unit tests and for the fuzz target.  One thread. */
#ifndef TESTS_NBD_RIG_H
#define TESTS_NBD_RIG_H

#include "nbd-server.h"

#define RIG_DISK (1u << 20)		/* bytes of the export "disk" */
#define RIG_LARGE (UINT64_C(1) << 40)	/* of "large", which keeps nothing */
#define RIG_HELD_MAX 16384

struct rig {
	struct nbd_server *server;
	uint8_t disk[RIG_DISK];
	/* HOLDS: requests wait for rig_finish().  OPENS_LATE: an open waits for rig_open_now().
	 * PLACES_NOTHING: a READ succeeds without data. */
	enum { RIG_ANSWERS, RIG_HOLDS, RIG_OPENS_LATE, RIG_PLACES_NOTHING } mode;
	struct nbd_ask *late;		/* the open that waits; NULL: none */
	struct nbd_io *held[RIG_HELD_MAX];
	unsigned nheld;
	unsigned nstarted;		/* requests, ever */
	unsigned nopen;			/* handles */
	uint32_t more;			/* bytes behind "disk", for TRIM alone */
	unsigned ntold;			/* replies with an error that lasts, in the socket */
};

extern int rig_watch_error;		/* of loop_watch(): 0, or -errno */

/* A server with @memory bytes for data.  Clients may have TLS, whose records are the bytes. */
void rig_begin(struct rig *rig, size_t memory);
/* All connections are closed and gone: a leak fails here. */
void rig_end(struct rig *rig);
/* A client's end of a new connection, non-blocking. */
int rig_connect(struct rig *rig);
/* As rig_connect(), of a client in @net. */
int rig_connect_from(struct rig *rig, uint64_t net);
/* A client's end of a connection that has "disk" open, without a negotiation, non-blocking. */
int rig_serve(struct rig *rig);
/* Run passes until nothing is left to do. */
void rig_run(struct rig *rig);
/* @ms go by, with what is due then. */
void rig_pass_time(struct rig *rig, unsigned ms);
/* Open "disk" for the client that waits for an open, and run. */
void rig_open_now(struct rig *rig);
/* End the held request @i with @status, and run. */
void rig_finish(struct rig *rig, unsigned i, int status);
/* End all held requests with @status, and run. */
void rig_finish_all(struct rig *rig, int status);

#endif
