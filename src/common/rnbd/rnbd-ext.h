/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers of our extension (man/rtrs-protocol.pod, doc/decisions.md D16): which parts of a
 * device hold data, and the names of a server's exports.  A server writes an answer into memory
 * that the peer can write; a client checks all of an answer before it uses a part.  Pure. */
#ifndef RNBD_EXT_H
#define RNBD_EXT_H

#include <stdbool.h>

#include "rnbd-proto.h"

/* ---- extents: RNBD_OP_EXTENTS ----
 *
 * An answer covers a range of the device from its begin on, maybe not to its end.  Extents are
 * whole sectors, each right behind the extent before. */

/* An extent is data (no bit), a hole that reads as zeroes (both bits), or has a single bit. */
#define RNBD_EXTENT_HOLE 0x1u		/* takes no storage */
#define RNBD_EXTENT_ZERO 0x2u		/* reads as zeroes */

/* The bytes of an answer: RNBD_EXTENTS_ROOM is the size that a client asks for and the most that a
 * server fills; RNBD_EXTENTS_ROOM_MIN holds a single extent. */
#define RNBD_EXTENTS_ROOM 4096u
#define RNBD_EXTENTS_ROOM_MIN (sizeof(struct rnbd_msg_extents) + sizeof(struct rnbd_msg_extent))

/* at the server */

struct rnbd_extents_writer {
	uint8_t *buf;
	uint32_t n, max;		/* extents in buf */
	uint64_t last_len;		/* length of the extent not in buf yet; 0: none */
	uint32_t last_what;
};

/* Begin an answer in @buf, of @room bytes, at least RNBD_EXTENTS_ROOM_MIN.  Writes all @room bytes,
 * and never reads any, because the peer can write there. */
void rnbd_extents_begin(struct rnbd_extents_writer *w, void *buf, size_t room);
/* Add @len bytes, whole sectors, of kind @what.  False: no room is left for the bytes. */
bool rnbd_extents_add(struct rnbd_extents_writer *w, uint64_t len, uint32_t what);
/* Write the last extent and the header. */
void rnbd_extents_end(struct rnbd_extents_writer *w);

/* at the client */

struct rnbd_extent {
	uint64_t len;			/* bytes */
	uint32_t what;			/* RNBD_EXTENT_* */
};

/* Check all of an answer about @len bytes.  Returns the number of extents, at least 1, for
 * rnbd_extents_get(); or -EINVAL: short, another message, no extent, more extents than fit, an
 * empty extent, unknown kinds, or more than @len bytes altogether. */
int rnbd_extents_decode(const void *buf, size_t buf_len, uint64_t len);
/* The extent @i of an answer that rnbd_extents_decode() has checked. */
struct rnbd_extent rnbd_extents_get(const void *buf, unsigned i);

/* ---- names: LIST and LIST_RSP ----
 *
 * A list comes in parts: a client asks for the names from a number on.  Each answer has as many
 * names as fit, and the number of names left.  Both sides' extension has RNBD_EXT_LIST. */

/* The size of an answer that a client asks for; any server has room for this size. */
#define RNBD_LIST_ROOM 4096u

/* Ask for the names of exports from number @first on. */
void rnbd_list_encode(struct rnbd_msg_list *m, uint32_t first);
/* Decode LIST.  -EINVAL: short. */
int rnbd_list_decode(const void *buf, size_t len, uint32_t *first);

/* the answer, at the server */

struct rnbd_list_writer {
	uint8_t *buf;
	size_t room, used;
	uint32_t n;
};

/* Room for a single name of any length. */
#define RNBD_LIST_ROOM_MIN (sizeof(struct rnbd_msg_list_rsp) + RNBD_NAME_MAX)
/* Begin an answer in @buf, of @room bytes, at least RNBD_LIST_ROOM_MIN.  Each byte is written
 * before rnbd_list_end() returns, and none is read, because the peer can write there. */
void rnbd_list_begin(struct rnbd_list_writer *w, void *buf, size_t room);
/* Add @name, a name that OPEN takes.  False: no room is left. */
bool rnbd_list_add(struct rnbd_list_writer *w, const char *name);
/* Write the header.  @left: the number of names behind the last added name. */
void rnbd_list_end(struct rnbd_list_writer *w, uint32_t left);

/* and at the client */

struct rnbd_list_reader {
	const uint8_t *at, *end;
	uint32_t n, left;
};

/* Decode the head of an answer: @r->n names follow, and @r->left names are left at the server.
 * -EINVAL: short, no LIST_RSP, or no name although some are left, so that asking would never
 * end. */
int rnbd_list_rsp_decode(const void *buf, size_t len, struct rnbd_list_reader *r);
/* Read the next of the @r->n names.  -EINVAL: cut off, empty, with a zero byte, or too long for a
 * name. */
int rnbd_list_rsp_name(struct rnbd_list_reader *r, char name[RNBD_NAME_MAX]);

#endif
