/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a server's exports: our messages LIST and its answer LIST_RSP
 * (man/rtrs-protocol.pod, doc/decisions.md D16).  Pure.
 *
 * A list comes in parts: a client asks for the names from a number on, and each answer has as many
 * as it has room for, and says how many are left.  Both sides' extension has RNBD_EXT_LIST. */
#ifndef RNBD_LIST_H
#define RNBD_LIST_H

#include <stdbool.h>

#include "rnbd-proto.h"

/* Bytes of an answer that a client asks for, which any server has room for. */
#define RNBD_LIST_ROOM 4096u

/* Ask for the names of exports from number @first on. */
void rnbd_list_encode(struct rnbd_msg_list *m, uint32_t first);
/* -EINVAL: short. */
int rnbd_list_decode(const void *buf, size_t len, uint32_t *first);

/* ---- the answer, at the server ---- */

struct rnbd_list_writer {
	uint8_t *buf;
	size_t room, used;
	uint32_t n;
};

/* Begin an answer in @buf, all @room bytes of which are written; room for one name of any length
 * (RNBD_LIST_ROOM_MIN).  Each byte is written before rnbd_list_end() returns and none is read,
 * because the peer can write there. */
#define RNBD_LIST_ROOM_MIN (sizeof(struct rnbd_msg_list_rsp) + RNBD_NAME_MAX)
void rnbd_list_begin(struct rnbd_list_writer *w, void *buf, size_t room);
/* False: no room is left for @name, which is that of an OPEN. */
bool rnbd_list_add(struct rnbd_list_writer *w, const char *name);
/* @left: names behind the last one that was added. */
void rnbd_list_end(struct rnbd_list_writer *w, uint32_t left);

/* ---- and at the client ---- */

struct rnbd_list_reader {
	const uint8_t *at, *end;
	uint32_t n, left;
};

/* The head of an answer: @r->n names are in it and @r->left are behind them.  -EINVAL: short, no
 * LIST_RSP, or none here and some left, so that asking would never end. */
int rnbd_list_rsp_decode(const void *buf, size_t len, struct rnbd_list_reader *r);
/* The next of the n names.  -EINVAL: cut off, empty, with a zero byte, or longer than a name may
 * be. */
int rnbd_list_rsp_name(struct rnbd_list_reader *r, char name[RNBD_NAME_MAX]);

#endif
