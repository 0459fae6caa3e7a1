/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of chunks that no request has used for a minute goes back to the system
 * (doc/decisions.md D6).  The next request for such a chunk finds zeroed pages.
 *
 * Chunks belong to the client, which may use each of them at any time and on any connection.  So
 * the thread that sent the last answer from a chunk gives the pages back, between two polls, if
 *   - the key of the chunk is held (fab_hold_mr()): no peer has written since that answer, and the
 *     thread that reads a write now waits before the first byte is placed;
 *   - the request of the chunk is idle, and this thread owns the request (SRV_REQ_TRIMMED);
 *   - nothing that was posted on the connection waits for its socket: the data of the last answer
 *     has left the chunk.
 * The storage has no request of an idle chunk.  Only chunks with a key of their own that can be
 * held are trimmed (srv_chunk_gives_back()): over TCP and unix sockets, with --invalidate=auto.
 * RDMA devices and fixed buffers of io_uring pin pages, and would go on with the old ones. */
#ifndef SRV_TRIM_H
#define SRV_TRIM_H

#include "loop.h"

/* For struct srv_con_ops: give back what is due, and look again while chunks of the
 * path take memory.  srv_con_trim_later() begins.  Thread of the connection. */
void srv_trim_timer(struct loop_timer *timer);

#endif
