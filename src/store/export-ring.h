/* SPDX-License-Identifier: BSD-3-Clause */
/* The storage's part of a reactor: slots of exports and of stores, and fixed buffers.  Thread of
 * the reactor, unless a function says otherwise. */
#ifndef EXPORT_RING_H
#define EXPORT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reactor.h"

struct export;
struct exports;

/* A ring has room for so many exports, unless RLIMIT_NOFILE allows fewer fixed files. */
#define EXPORT_RING_MAX 4096u

/* Make the ring of @r ring @index of @exports, and attach the listed exports, before the reactor
 * runs requests.  @never_blocks: no operation may make this thread wait for the storage, at any
 * price in speed.  0, or -errno with one line in @err. */
int export_ring_attach(struct reactor *r, unsigned index, const struct exports *exports,
		       bool never_blocks, char *err, size_t errlen);
/* Close the fixed files of @r now: no request will run on @r any more.  A closed ring lets go of
 * its files some time later, and would keep a device in use for a while after the server's end.
 * Thread that attached the ring; before export_ring_detach(). */
void export_ring_let_go(struct reactor *r);
/* Detach all exports from @r, and free the storage's part.  No thread runs @r, nor any other ring
 * with these exports.  Idempotent. */
void export_ring_detach(struct reactor *r);

/* Attach @ex to the ring of @r, which runs requests of other exports.  0, or -errno with one line
 * in @err: -EMFILE if the ring is full. */
int export_ring_add(struct reactor *r, struct export *ex, char *err, size_t errlen);
/* Detach @ex from the ring of @r.  No request of @ex is under way there. */
void export_ring_del(struct reactor *r, struct export *ex);
/* True if the ring of @r has @ex. */
bool export_ring_has(const struct reactor *r, const struct export *ex);
/* How many names of the store of @ex the ring of @r has. */
unsigned export_ring_names(const struct reactor *r, const struct export *ex);

/* Make [addr, addr + len) a fixed buffer of @r's ring.  Returns a handle >= 0, or -errno: use the
 * range as plain memory.  If RLIMIT_MEMLOCK is the reason, a warning names the limit, once per
 * process. */
int export_ring_mem_add(struct reactor *r, void *addr, size_t len);
/* Give back the fixed buffer @handle, which no IO in flight uses. */
void export_ring_mem_del(struct reactor *r, int handle);

/* The milliseconds that @r's thread has spent in its present system call of the storage; 0: no such
 * call.  Any thread. */
uint64_t export_ring_stuck_ms(const struct reactor *r);

#endif
