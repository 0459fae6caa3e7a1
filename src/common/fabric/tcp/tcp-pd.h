/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: their table of keys, and the connections that may hold one. */
#ifndef TCP_PD_H
#define TCP_PD_H

#include "tcp-key.h"

int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out);
void tcp_pd_destroy(struct fab_pd *fpd);
bool tcp_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey);

static inline struct tcp_pd *tcp_pd(struct fab_pd *pd)
{
	return container_of(pd, struct tcp_pd, base);
}

/* A dead key, or NULL.  Takes pd->lock, as tcp_pd_key_free() of a key that is dead again. */
struct tcp_key *tcp_pd_key_alloc(struct tcp_pd *pd);
void tcp_pd_key_free(struct tcp_pd *pd, struct tcp_key *key);
/* Wait for the placements under a dead key to stop and fail the connections they are of.  No lock held. */
void tcp_pd_key_stop(struct tcp_pd *pd, struct tcp_key *key);

#endif
