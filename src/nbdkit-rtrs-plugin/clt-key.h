/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows for the data of READs, where the path has them (clt-reg.h).
 *
 * A window belongs to a slot, as the library says (frwr.h).  A READ with one is finished when three
 * things have happened, each on whichever thread: its answer came, posted() of its bind has run
 * (CLT_SLOT_POST), and where the server did not do it our invalidate is through (CLT_SLOT_INV).
 *
 * Windows belong to one attempt of a path: made when all its connections are there, given back when
 * these have drained and before they are destroyed. */
#ifndef CLT_KEY_H
#define CLT_KEY_H

#include <stdbool.h>

#include "clt-reg.h"
#include "clt-slot.h"

struct clt_con;

/* Windows for all slots of @path, if its mode has any.  All its connections are there.  Service thread.
 * 0, or -errno after clt_path_fail(). */
int clt_key_open(struct clt_path *path);
/* Give them back; says in the log what they did.  All connections are drained and sealed and none is
 * destroyed; then @again when all are, for windows that the device did not take: it keeps them if it
 * does not then either.  Service thread; idempotent. */
void clt_key_close(struct clt_path *path, bool again);

/* Open [iova, iova + slot->len) of @mr, as that calls it, with @slot's window: @desc is what the server is
 * told, and it is to be asked to invalidate the key when @ask.  Under the send lock.  0 or -errno; -ENOTCONN,
 * at any time: what an earlier READ had bound was flushed, so the connection has failed. */
int clt_key_map(struct clt_slot *slot, struct clt_path *path, struct ibv_mr *mr, uint64_t iova,
		struct rtrs_desc *desc, bool *ask);
/* Put the bind in front of slot->w, both in slot->entry, to be posted on @con.  Under the send lock.
 * 0, or -ENOTCONN as above and the slot has no window. */
int clt_key_chain(struct clt_slot *slot, struct clt_con *con);
/* The answer came, and says whether its window was taken away: -EPROTO if it says so and it was not, 0 if
 * it was, 1 when that is left to us.  Poll role. */
int clt_key_answered(struct clt_slot *slot, bool invalidated);
/* Fill slot->entry with what takes its window away; @done as in frwr_fill_unmap(), with @slot.  0, or
 * -EALREADY: it is away, or -ENOTCONN: the connection has failed.  Send lock or poll role. */
int clt_key_unmap(struct clt_slot *slot, struct clt_con *con, frwr_done_fn *done);
/* A receive with an invalidate.  False: it was not what we asked for.  Poll role. */
bool clt_key_reminv(struct clt_con *con, const struct ibv_wc *wc);

#endif
