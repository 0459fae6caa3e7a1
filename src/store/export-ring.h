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

/* So many exports have room in a ring, unless RLIMIT_NOFILE allows for fewer fixed files. */
#define EXPORT_RING_MAX 4096u

/* Make the ring of @r ring @index of @exports, which are attached to it, before the reactor runs
 * requests.  0, or -errno with one line in @err.  @never_blocks: no operation may make this thread
 * wait for the storage, at any price in speed. */
int export_ring_attach(struct reactor *r, unsigned index, const struct exports *exports,
		       bool never_blocks, char *err, size_t errlen);
/* No request will run on @r any more: let go of the files now.  A ring that is closed does so some
 * time later, so whoever mounts a device when the server has ended would find it in use.  The
 * thread that attached the ring; before export_ring_detach(). */
void export_ring_let_go(struct reactor *r);
/* No thread runs @r, nor any other ring with these exports.  Idempotent. */
void export_ring_detach(struct reactor *r);

/* @ex comes to the ring of @r, which runs requests of other exports.  0, or -errno with one line in
 * @err: there is no room. */
int export_ring_add(struct reactor *r, struct export *ex, char *err, size_t errlen);
/* @ex leaves the ring of @r, and none of its requests is under way. */
void export_ring_del(struct reactor *r, struct export *ex);
bool export_ring_has(const struct reactor *r, const struct export *ex);
/* How many names of the store of @ex the ring of @r has. */
unsigned export_ring_names(const struct reactor *r, const struct export *ex);

/* Make [addr, addr + len) a fixed buffer of @r's ring.  Returns its handle >= 0, or -errno when it
 * must be used as plain memory (warned once per process with the limit's name when RLIMIT_MEMLOCK
 * is the reason). */
int export_ring_mem_add(struct reactor *r, void *addr, size_t len);
/* No IO that uses it may be in flight. */
void export_ring_mem_del(struct reactor *r, int handle);

/* For how many ms @r's thread has now been inside a system call of the storage.  Any thread. */
uint64_t export_ring_stuck_ms(const struct reactor *r);

#endif
