/* SPDX-License-Identifier: BSD-3-Clause */
/* Between clt-tx.c (requests to the server) and clt-rx.c (its answers). */
#ifndef CLT_IO_PRIV_H
#define CLT_IO_PRIV_H

#include "clt-path.h"

/* Back from @con to its owner.  Nothing of @slot or its operation may be touched afterwards. */
void clt_tx_finish(struct clt_con *con, struct clt_slot *slot, int status);
/* The server has answered and left @slot's window to us.  Send lock or poll role. */
void clt_tx_invalidate(struct clt_con *con, struct clt_slot *slot);

/* The path of @con fails, for the reason that the fabric gives.  Any thread. */
void clt_con_fail(struct clt_con *con);

/* Handler of @slot->cqe. */
void clt_tx_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);

#endif
