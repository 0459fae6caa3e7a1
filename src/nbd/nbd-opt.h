/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of NBD, from the server's side: haggling about options.  Pure: bytes of the client
 * go in, bytes for the client come out, and what only the backend knows is asked for by a state.
 * One thread. */
#ifndef NBD_OPT_H
#define NBD_OPT_H

#include <sys/types.h>

#include "nbd-buf.h"
#include "nbd-msg.h"

/* Bytes of one option that are looked at.  A longer one is refused, and its data is skipped. */
#define NBD_OPTION_MAX (16u << 10)
/* Bytes that are skipped; an option longer than this ends the connection. */
#define NBD_OPTION_SKIP_MAX (1u << 20)

enum nbd_haggle_state {
	NBD_HAGGLE_FLAGS,		/* the flags of the client are to come */
	NBD_HAGGLE_OPTION,		/* an option is to come */
	NBD_HAGGLE_SKIPS,		/* the data of an option that was refused is to come */
	NBD_HAGGLE_LISTS,		/* the backend is to list its exports */
	NBD_HAGGLE_LOOKS,		/* the backend is to open @name, for what it tells of it */
	NBD_HAGGLE_OPENS,		/* the backend is to open @name, to be served */
	NBD_HAGGLE_SERVES,		/* requests follow */
	NBD_HAGGLE_LEFT,		/* the client has said that it leaves */
	NBD_HAGGLE_STATES
};

struct nbd_haggle {
	enum nbd_haggle_state state;
	enum nbd_headers headers;
	uint32_t flags;			/* NBD_FLAG_* of the client's greeting */
	uint32_t option;		/* that is being answered */
	uint32_t skip;			/* bytes */
	const char *why;		/* of a step that failed */
	char name[NBD_STRING_MAX + 1];	/* of the export, as the client says it */
	char query[NBD_STRING_MAX + 1];	/* that is being looked at */
	/* of the export for which base:allocation was chosen, with a '/' in front; empty: none */
	char status[NBD_STRING_MAX + 2];
};

/* Begin, with the greeting in @out. */
void nbd_haggle_begin(struct nbd_haggle *h, struct nbd_buf *out);
/* Take what is whole at @buf: the greeting's flags, an option.  Returns the bytes taken; 0: more
 * bytes are needed, or the backend's answer, or the handshake is over; -EPROTO: the connection is
 * to end, because of h->why. */
ssize_t nbd_haggle_step(struct nbd_haggle *h, const uint8_t *buf, size_t len, struct nbd_buf *out);

/* Has the client chosen base:allocation for the export that it opens? */
bool nbd_haggle_status(const struct nbd_haggle *h);
/* LISTS: there is an export of this name; then nbd_haggle_listed(). */
void nbd_haggle_name(struct nbd_haggle *h, const char *name, struct nbd_buf *out);
/* LISTS: that is all; @status 0, or -errno for the reason @why. */
void nbd_haggle_listed(struct nbd_haggle *h, int status, const char *why, struct nbd_buf *out);
/* LOOKS, OPENS: the export is open, @status 0; or it cannot be opened for the reason @why.  With
 * 0 @export->flags get those that the handshake decides.  0, or -EPROTO as nbd_haggle_step(). */
int nbd_haggle_opened(struct nbd_haggle *h, int status, const char *why, struct nbd_export *export,
		      struct nbd_buf *out);

#endif
