/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of one path that does exactly what the test says, one step at a time, on one thread.
 *
 * No reconnect, no scheduling, no mercy: whatever goes wrong ends the program with file and line,
 * except where a function returns a status.  Waits are bounded by RAW_LIMIT_MS.  It answers heartbeats
 * and nothing else by itself. */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric.h"
#include "rnbd-msg.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "rtrs-wr.h"

#define RAW_LIMIT_MS 20000
#define RAW_MAX_CONS 16

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define check_eq(a, b)                                                                             \
	do {                                                                                       \
		long long ca_ = (long long)(a), cb_ = (long long)(b);                              \
		if (ca_ != cb_) {                                                                  \
			fprintf(stderr, "%s:%d: failed: %s is %lld, expected %s = %lld\n",         \
				__FILE__, __LINE__, #a, ca_, #b, cb_);                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* One connection; events of the cm and the answers of the peer end up here. */
struct raw_con {
	struct raw *raw;
	struct fab_conn *fab;
	struct fab_cqe cqe, info_cqe;
	bool resolved, established, rejected, unreachable, drained, info_done;
	int status;
	uint32_t info_len;
};

struct raw_slot {
	bool busy;
	unsigned answers;
	int status;
};

struct raw {
	struct fab_cm *cm;
	struct fab_addr addr;
	struct fab_pd *pd;
	struct rtrs_conn_req req;	/* what CONN_REQ will say; cid is filled in */
	struct rtrs_geom geom;
	struct raw_con cons[RAW_MAX_CONS];
	struct rtrs_rbuf *rbufs;	/* [queue_depth] */
	struct raw_slot *slots;		/* [queue_depth] */
	uint8_t *info;
	struct ibv_mr *info_mr;
	uint8_t *mem;			/* [queue_depth] slots of chunk_size: data, then headers */
	struct ibv_mr *mem_mr;
	unsigned hb_seen, acks_seen, invs;
	bool mute;			/* do not answer heartbeats */
};

/* A new path of a new session to @addr ("127.0.0.1:port"), not connected yet, with @cid_num
 * connections to be. */
struct raw *raw_create(const char *addr, unsigned cid_num);
/* Disconnects what is connected. */
void raw_destroy(struct raw *r);

/* Try to connect @cid.  0, or the negative errno of the refusal. */
int raw_connect(struct raw *r, unsigned cid);
/* All connections and the INFO exchange as session @name; everything must succeed. */
void raw_up(struct raw *r, const char *name);
/* Send INFO_REQ; true when INFO_RSP came, false when the path was closed. */
bool raw_info(struct raw *r, const char *name);
/* End every connection and wait for its drain; raw_up() may follow with the same identities. */
void raw_down(struct raw *r);
/* Serve what is ready, waiting at most @timeout_ms. */
void raw_step(struct raw *r, int timeout_ms);
/* Wait until the server has closed every connection. */
void raw_wait_closed(struct raw *r);

#define raw_until(r, cond)                                                                         \
	do {                                                                                       \
		for (int left_ = RAW_LIMIT_MS / 10; !(cond); left_--) {                            \
			check(left_ > 0 && #cond);                                                 \
			raw_step(r, 10);                                                           \
		}                                                                                  \
	} while (0)

/* ---- requests ---- */

static inline uint8_t *raw_data(struct raw *r, uint32_t buf_id)
{
	return r->mem + (size_t)buf_id * r->geom.chunk_size;
}

/* Fill @w with a request; a WRITE's data is raw_data().  Whoever posts it sees to it that @buf_id is
 * free, or does not. */
void raw_prepare(struct raw *r, struct rtrs_wr_req *w, unsigned cid, uint32_t buf_id,
		 enum rtrs_dir dir, const void *usr, uint16_t usr_len, uint32_t data_len);
void raw_post(struct raw *r, unsigned cid, uint32_t buf_id, enum rtrs_dir dir, const void *usr,
	      uint16_t usr_len, uint32_t data_len);
/* Wait for the answer to @buf_id; its status. */
int raw_wait(struct raw *r, uint32_t buf_id);
int raw_sess_info(struct raw *r, struct rnbd_sess_info *info);
int raw_open(struct raw *r, const char *name, enum rnbd_access_mode mode,
	     struct rnbd_dev_info *info);
int raw_close(struct raw *r, uint32_t device_id);
void raw_post_open(struct raw *r, uint32_t buf_id, const char *name, enum rnbd_access_mode mode);
/* Post an IO of @len bytes at byte @off of device 0. */
void raw_post_io(struct raw *r, unsigned cid, uint32_t buf_id, enum rnbd_io_op op, uint32_t flags,
		 uint64_t off, uint32_t len);
int raw_io(struct raw *r, unsigned cid, uint32_t buf_id, enum rnbd_io_op op, uint32_t flags,
	   uint64_t off, uint32_t len);

#endif
