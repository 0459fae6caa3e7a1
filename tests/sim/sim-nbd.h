/* SPDX-License-Identifier: BSD-3-Clause */
/* An NBD client of the simulation: the handshake, and requests of fibers, many in flight at a time.
 * A reply that breaks the protocol ends the program.  One thread. */
#ifndef SIM_NBD_H
#define SIM_NBD_H

#include "nbd-msg.h"
#include "sim-stream.h"

struct sim_nbd_conf {
	const char *export_name;
	enum nbd_headers headers;
	/* the option that opens the export; EXPORT_NAME without extended headers */
	enum { SIM_NBD_GO, SIM_NBD_EXPORT_NAME } option;
	bool status;			/* chooses base:allocation; not with simple headers */
	struct sim_stream_conf stream;
};

/* With simple headers, by GO, to "disk0". */
extern const struct sim_nbd_conf sim_nbd_defaults;

enum sim_nbd_fate {
	SIM_NBD_WAITS,
	SIM_NBD_ANSWERED,
	SIM_NBD_LOST,			/* sent, and the stream ended before the reply */
	SIM_NBD_UNSENT,			/* the stream ended before the last byte of the request */
};

struct sim_nbd_req {
	/* set by the caller */
	enum nbd_cmd cmd;
	uint16_t flags;			/* NBD_CMD_FLAG_* */
	uint64_t off;
	uint32_t len;
	void *buf;			/* WRITE: its source; READ: its target */
	/* BLOCK_STATUS: an extent, inside the request, with NBD_STATE_* */
	void (*extent)(struct sim_nbd_req *req, uint64_t off, uint64_t len, uint64_t flags);
	/* the end */
	enum sim_nbd_fate fate;
	int status;			/* ANSWERED: 0 or -errno */
	/* private */
	struct list link;
	uint64_t cookie, last_byte;	/* of the stream */
};

enum sim_nbd_state {
	SIM_NBD_NEGOTIATES,
	SIM_NBD_SERVED,
	SIM_NBD_OVER,			/* the stream has ended */
};

struct sim_nbd {
	struct sim_stream stream;
	struct sim_nbd_conf conf;
	enum sim_nbd_state state;
	uint32_t refused;		/* NBD_REP_ERR_* that answered an option; 0: none */
	uint64_t size;			/* of the export, as told */
	uint16_t flags;			/* NBD_FLAG_* */
	struct list reqs;		/* in flight */
	struct list ended;		/* have their fates, in order; nobody has waited yet */
	uint64_t disc;			/* sim_stream.sent when DISC has left; 0: none was put */
	bool excused;			/* sim_nbd_excuse() */
	unsigned number;		/* the gate's, set by world_gate_connect() */
	struct sim_fiber *reader;
};

/* Begin @c, and its handshake.  Returns the server's end of its stream. */
int sim_nbd_open(struct sim_nbd *c, const struct sim_nbd_conf *conf);
/* Is the handshake over?  @c: struct sim_nbd *. */
bool sim_nbd_opened(void *c);
/* Put @req, which lives until it has a fate.  The client is served. */
void sim_nbd_start(struct sim_nbd *c, struct sim_nbd_req *req);
/* Wait for the fate of @req.  Fiber. */
void sim_nbd_wait(struct sim_nbd_req *req);
/* Wait until a request has its fate, and return the first such, which is still to be waited for.
 * Fiber. */
struct sim_nbd_req *sim_nbd_first(struct sim_nbd *c);
/* Put DISC.  Requests put before have to be answered, unless the client closes the stream. */
void sim_nbd_disc(struct sim_nbd *c);
/* The server stops, and so may close the stream before it has read a DISC. */
void sim_nbd_excuse(struct sim_nbd *c);
/* Is the stream at its end, and every request has its fate?  @c: struct sim_nbd *. */
bool sim_nbd_over(void *c);
/* Free @c, which is over. */
void sim_nbd_fini(struct sim_nbd *c);

#endif
