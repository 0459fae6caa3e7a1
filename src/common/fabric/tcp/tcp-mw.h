/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: keys for a part of a region, given and taken by work requests.
 *
 * As strict as a NIC: what breaks a rule fails the connection it was posted on.  A window is bound
 * and invalidated when the request is posted, which is in front of its turn; nobody can tell,
 * because the peer learns a key from what is sent behind the bind, and the completion keeps its
 * place.  What is taken away is no longer written to when the post returns (promise k): a
 * connection that is in the middle of that fails.  Any thread; one at a time for one window. */
#ifndef TCP_MW_H
#define TCP_MW_H

#include "tcp-pd.h"

struct ibv_mw *tcp_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type);
int tcp_mw_dealloc(struct ibv_mw *ibv);
/* Carry out a BIND_MW, a LOCAL_INV of @rkey, that is about to be queued on @c.  Returns NULL, or what is
 * wrong with it.  No lock held. */
const char *tcp_mw_bind(struct tcp_conn *c, const struct ibv_send_wr *wr);
const char *tcp_mw_invalidate(struct tcp_conn *c, uint32_t rkey);

#endif
