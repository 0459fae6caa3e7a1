/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the memory of clients that have gone back to the system.  Control thread. */
#ifndef SRV_MEM_H
#define SRV_MEM_H

struct srv;

/* Begin with nothing freed. */
void srv_mem_init(struct srv *srv);
/* Count @ncons connections, which have been freed. */
void srv_mem_freed(struct srv *srv, unsigned ncons);
/* Stop the timer: the server stops, and will exit soon. */
void srv_mem_stop(struct srv *srv);

#endif
