/* SPDX-License-Identifier: BSD-3-Clause */
/* The client made by hand (tests/peer/hpath.h) in virtual time: for the settings that our own
 * client does not use on this fabric (NEED_INVAL with windows), and for connection requests out of
 * order.  Functions that wait step virtual time. */
#ifndef RAW_CLT_H
#define RAW_CLT_H

#include "../peer/hpath.h"
#include "sim-fabric.h"

#define RAW_CONS 4
#define RAW_BUFS 16
#define RAW_DATA 65536u

struct raw_clt {
	struct list link;		/* among those that are to be closed */
	struct hpath path;
	struct sim_actor actor;
	struct ibv_mw *windows[RAW_BUFS];
	uint8_t (*data)[RAW_DATA];	/* [RAW_BUFS], in path.result */
	uint32_t features;		/* of our extension; 0: without, as a kernel's */
	uint32_t tag;			/* of the next IO */
	uint32_t device_id;		/* likewise: that of raw_clt_open(), or 0 */
};

/* On @host; path uuid all @path, session uuid all @sess; nothing connects yet.  Without extension
 * and tag.  Ends with the world at the latest. */
void raw_clt_init(struct raw_clt *c, const char *host, uint8_t path, uint8_t sess, unsigned ncons);
void raw_clt_fini(struct raw_clt *c);
/* All that are left, the last one first. */
void raw_clts_fini(void);
/* Connect @cid; returns when it is up (0) or refused. */
int raw_clt_connect(struct raw_clt *c, unsigned cid);
/* INFO_REQ with @name; 0, or -ECONNRESET when the server hangs up instead of answering. */
int raw_clt_info(struct raw_clt *c, const char *name);
/* All of that, and SESS_INFO and OPEN of "disk0"; 0 or the first error. */
int raw_clt_open(struct raw_clt *c, const char *name, enum rnbd_access_mode mode);
/* Wait at most @ms for the answer to that OPEN, when it returned -ECONNRESET without having lost a
 * connection. */
int raw_clt_opened(struct raw_clt *c, uint64_t ms);
/* Break off all connections. */
void raw_clt_hang_up(struct raw_clt *c);

/* Send a request under @buf on @cid: user message, and data_len bytes of c->data[buf] to write or
 * to be filled.  @need_inval: the target of a READ is a window bound in the same chain. */
void raw_clt_submit(struct raw_clt *c, unsigned cid, unsigned buf, enum rtrs_dir dir,
		    const void *usr, uint16_t usr_len, uint32_t data_len, bool need_inval);
/* Wait at most @ms for its answer; true if it came (path.answers[buf]). */
bool raw_clt_wait(struct raw_clt *c, unsigned buf, uint64_t ms);
/* An IO request on the device, to its answer; returns the status, or -ECONNRESET without answer. */
int raw_clt_io(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op, uint64_t sector,
	       uint32_t len, bool need_inval);
/* Only the submission. */
void raw_clt_io_start(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op,
		      uint64_t sector, uint32_t len, bool need_inval);
bool raw_clt_lost(struct raw_clt *c);

#endif
