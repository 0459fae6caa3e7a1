/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of clients that have gone goes back to the system.  Control thread. */
#ifndef SRV_MEM_H
#define SRV_MEM_H

struct srv;

void srv_mem_init(struct srv *srv);
/* @ncons connections have been freed. */
void srv_mem_freed(struct srv *srv, unsigned ncons);
/* The server stops: it will exit soon. */
void srv_mem_stop(struct srv *srv);

#endif
