/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the mock HCA share.  All with the lock, where nothing else is said. */
#ifndef MOCK_PRIV_H
#define MOCK_PRIV_H

#include "cleanup.h"
#include "mock-hca.h"
#include "util.h"

#define MOCK_DMA_LKEY 1u

_Noreturn void mock_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline struct mock_conn *to_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct mock_conn, fab);
}

/* ---- memory (mock-mem.c) ---- */

/* Of the provider; they take the lock. */

struct ibv_mr *mock_reg_mr(struct fab_pd *pd, void *addr, size_t length, uint64_t iova, int access);
int mock_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access);
int mock_suspend_mr(struct ibv_mr *ibv, bool closed);
void mock_dereg_mr(struct ibv_mr *ibv);
struct ibv_mw *mock_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type);
int mock_dealloc_mw(struct ibv_mw *ibv);

/* How many there are. */
unsigned mock_windows_of(const struct fab_pd *pd);
/* @sge must be memory that its key is good for. */
void mock_check_sge(const struct fab_pd *pd, const struct ibv_sge *sge);
void mock_bind(struct mock_conn *c, const struct mock_wr *m);
/* False: fails the connection. */
bool mock_invalidate(struct mock_conn *c, uint32_t rkey);

/* ---- queue pairs (mock-qp.c) ---- */

void mock_qp_init(struct mock_conn *c, struct fab_pd *pd, uint32_t depth);
void mock_qp_fini(struct mock_conn *c);
void mock_conn_fail(struct mock_conn *c);
/* Of the provider; they take the lock. */
int mock_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
int mock_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);
int mock_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
int mock_arm(struct fab_conn *conn, short *events);

#endif
