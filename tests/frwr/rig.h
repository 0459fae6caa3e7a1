/* SPDX-License-Identifier: BSD-3-Clause */
/* A path on the mock HCA: two connections, slots with a region each, a pool of windows for them.
 *
 * Names of tests carry the rows of requirements (r19) and the items of the list of tests (t03) that
 * they are for; tests/house.py fails when one is missing. */
#ifndef FRWR_RIG_H
#define FRWR_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frwr.h"
#include "../mock/mock-hca.h"
#include "util.h"

#define RIG_SLOTS 8u
#define RIG_SLOT 4096u

struct rig {
	struct fab_pd *pd;
	struct mock_conn *c[2];
	struct frwr_pool *pool;
	uint8_t *mem;
	struct ibv_mr *mr[RIG_SLOTS];
	/* of the last calls back */
	unsigned ndone, nreq, nreq_failed;
	int done_rc;
	struct fab_cqe req_cqe;
	struct ibv_send_wr req;
};

void rig_open(struct rig *r, enum frwr_mode mode);
/* With RIG_SLOT * RIG_SLOTS bytes in one region per slot of @access. */
void rig_open_access(struct rig *r, enum frwr_mode mode, int access);
/* In the right order; the connections drain first. */
void rig_close(struct rig *r);

struct frwr *rig_at(struct rig *r, unsigned i);
uint64_t rig_addr(const struct rig *r, unsigned i);
/* Map all of slot @i for a peer to write; returns what frwr_map() does. */
int rig_map(struct rig *r, unsigned i, struct frwr_handle *h);
/* A request of type RDMA_WRITE_WITH_IMM, signaled if @signaled. */
struct ibv_send_wr *rig_req(struct rig *r, bool signaled);
/* Post the chain of @e on connection @c and tell it. */
int rig_post(struct rig *r, unsigned c, struct frwr_entry *e);
/* Map, fill and post slot @i on connection @c: VALID. */
struct frwr_handle rig_valid(struct rig *r, unsigned c, unsigned i);
/* A frwr_done_fn; @rig. */
void rig_done(void *rig, int rc);
/* Windows @first to @last as a list; returns the first. */
struct frwr *rig_list(struct rig *r, unsigned first, unsigned last);

#endif
