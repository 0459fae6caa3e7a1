/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of a device hold data: the answer to our operation RNBD_OP_EXTENTS
 * (man/rtrs-protocol.pod, doc/decisions.md D16).  Pure.
 *
 * An answer covers what was asked for from its begin on, perhaps not all of it, with extents one
 * behind the other, of whole sectors. */
#ifndef RNBD_EXTENTS_H
#define RNBD_EXTENTS_H

#include <stdbool.h>

#include "rnbd-proto.h"

/* An extent is neither, data; or a hole that reads as zeroes; or one of the two. */
#define RNBD_EXTENT_HOLE 0x1u		/* takes no storage */
#define RNBD_EXTENT_ZERO 0x2u		/* reads as zeroes */

/* Bytes of an answer: so many a client asks for, and more a server does not fill; with one
 * extent. */
#define RNBD_EXTENTS_ROOM 4096u
#define RNBD_EXTENTS_ROOM_MIN (sizeof(struct rnbd_msg_extents) + sizeof(struct rnbd_msg_extent))

/* ---- at the server ---- */

struct rnbd_extents_writer {
	uint8_t *buf;
	uint32_t n, max;		/* extents in buf */
	uint64_t last_len;		/* of one that is not in buf yet; 0: none is */
	uint32_t last_what;
};

/* Begin an answer in @buf, all @room bytes of which are written; at least RNBD_EXTENTS_ROOM_MIN.
 * Bytes are written and never read, because the peer can write there. */
void rnbd_extents_begin(struct rnbd_extents_writer *w, void *buf, size_t room);
/* @len bytes more, whole sectors, which are @what.  False: no room is left for them. */
bool rnbd_extents_add(struct rnbd_extents_writer *w, uint64_t len, uint32_t what);
/* Write the last extent and the header. */
void rnbd_extents_end(struct rnbd_extents_writer *w);

/* ---- at the client ---- */

struct rnbd_extent {
	uint64_t len;			/* bytes */
	uint32_t what;			/* RNBD_EXTENT_* */
};

/* Check all of an answer about @len bytes.  Returns how many extents there are, at least 1, each of
 * which rnbd_extents_get() gives; or -EINVAL: short, another message, none, more than there are
 * bytes for, empty ones, unknown kinds, or more than @len bytes altogether. */
int rnbd_extents_decode(const void *buf, size_t buf_len, uint64_t len);
/* The extent @i of those that were checked. */
struct rnbd_extent rnbd_extents_get(const void *buf, unsigned i);

#endif
