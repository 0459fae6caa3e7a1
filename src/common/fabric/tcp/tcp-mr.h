/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, as fab-provider.h has them.  Any thread.  A region is gone, or has another range, when
 * nothing is placed under its old key: a connection in the middle of that is failed (doc/decisions.md D12). */
#ifndef TCP_MR_H
#define TCP_MR_H

#include "tcp-pd.h"

struct ibv_mr *tcp_mr_reg(struct fab_pd *fpd, void *addr, size_t length, uint64_t iova, int access);
int tcp_mr_rereg(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access);
void tcp_mr_dereg(struct ibv_mr *ibv);

#endif
