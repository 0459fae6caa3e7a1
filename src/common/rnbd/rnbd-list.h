/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a server's exports: our messages LIST and its answer LIST_RSP
 * (man/rtrs-protocol.pod, doc/decisions.md D16).  Pure.
 *
 * A list comes in parts: a client asks for the names from a number on.  Each answer has as many
 * names as fit, and the number of names left.  Both sides' extension has RNBD_EXT_LIST. */
#ifndef RNBD_LIST_H
#define RNBD_LIST_H

#include <stdbool.h>

#include "rnbd-proto.h"

/* The size of an answer that a client asks for; any server has room for this size. */
#define RNBD_LIST_ROOM 4096u

/* Ask for the names of exports from number @first on. */
void rnbd_list_encode(struct rnbd_msg_list *m, uint32_t first);
/* Decode LIST.  -EINVAL: short. */
int rnbd_list_decode(const void *buf, size_t len, uint32_t *first);

/* ---- the answer, at the server ---- */

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

/* ---- and at the client ---- */

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
