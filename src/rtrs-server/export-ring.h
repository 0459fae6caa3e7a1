/* SPDX-License-Identifier: BSD-3-Clause */
/* The storage's part of a reactor: slots of exports, and fixed buffers.  The simulation replaces
 * this together with export-io.h (tests/sim).  Thread of the reactor. */
#ifndef EXPORT_RING_H
#define EXPORT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct export;
struct exports;
struct reactor;

/* Before the reactor runs requests.  0, or -errno with one line in @err.
 * @never_blocks: no operation may make this thread wait for the storage, at any price in speed. */
int export_ring_attach(struct reactor *r, const struct exports *exports, bool never_blocks,
		       char *err, size_t errlen);
/* No thread runs @r, nor any other ring with these exports.  Idempotent. */
void export_ring_detach(struct reactor *r);

/* Make [addr, addr + len) a fixed buffer of @r's ring.  Returns its handle >= 0, or -errno when it
 * must be used as plain memory (warned once per process with the limit's name when RLIMIT_MEMLOCK
 * is the reason). */
int export_ring_mem_add(struct reactor *r, void *addr, size_t len);
/* No IO that uses it may be in flight. */
void export_ring_mem_del(struct reactor *r, int handle);

/* For how many ms @r's thread has now been inside a system call of the storage.  Any thread. */
uint64_t export_ring_stuck_ms(const struct reactor *r);

#endif
