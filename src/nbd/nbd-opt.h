/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of NBD, from the server's side: haggling about options.  Pure: bytes of the client
 * go in, bytes for the client come out, and a state asks for an answer of the backend.  One
 * thread. */
#ifndef NBD_OPT_H
#define NBD_OPT_H

#include <sys/types.h>

#include "nbd-buf.h"
#include "nbd-msg.h"
#include "nbd-tls.h"

/* Bytes of the longest option that is parsed.  A longer option is refused, and its data is
 * skipped. */
#define NBD_OPTION_MAX (16u << 10)
/* Bytes of the longest option that is skipped.  A longer option ends the connection. */
#define NBD_OPTION_SKIP_MAX (1u << 20)

enum nbd_haggle_state {
	NBD_HAGGLE_FLAGS,		/* the flags of the client are to come */
	NBD_HAGGLE_OPTION,		/* an option is to come */
	NBD_HAGGLE_SKIPS,		/* the data of a refused option is to come */
	NBD_HAGGLE_LISTS,		/* the backend is to list its exports */
	NBD_HAGGLE_LOOKS,		/* the backend is to open @name, for information */
	NBD_HAGGLE_OPENS,		/* the backend is to open @name, to be served */
	NBD_HAGGLE_SERVES,		/* requests follow */
	NBD_HAGGLE_LEFT,		/* the client has sent NBD_OPT_ABORT */
	NBD_HAGGLE_SECURES,		/* TLS is to begin behind the bytes for the client */
	NBD_HAGGLE_STATES
};

/* The rules of TLS for the client, or that TLS is up. */
enum nbd_haggle_tls {
	NBD_HAGGLE_NO_TLS,		/* refused */
	NBD_HAGGLE_MAY_TLS,		/* the client may ask */
	NBD_HAGGLE_MUST_TLS,		/* the client has to ask */
	NBD_HAGGLE_HAS_TLS,
};

struct nbd_haggle {
	enum nbd_haggle_state state;
	enum nbd_haggle_tls tls;
	enum nbd_headers headers;
	uint32_t flags;			/* NBD_FLAG_* of the client's greeting */
	uint32_t option;		/* which is being answered */
	uint32_t skip;			/* bytes */
	const char *why;		/* of a step that failed */
	char name[NBD_STRING_MAX + 1];	/* of the export, as the client spells the name */
	char query[NBD_STRING_MAX + 1];	/* which is being answered */
	/* of the export for which base:allocation was chosen, with a '/' in front; empty: none */
	char status[NBD_STRING_MAX + 2];
};

/* Begin, and append the greeting to @out. */
void nbd_haggle_begin(struct nbd_haggle *h, enum nbd_tls_mode tls, struct nbd_buf *out);
/* Take a whole piece at @buf: the greeting's flags, or an option.  Returns the bytes taken; 0: more
 * bytes are needed, or the backend's answer, or the handshake is over; -EPROTO: the connection is
 * to end, because of h->why. */
ssize_t nbd_haggle_step(struct nbd_haggle *h, const uint8_t *buf, size_t len, struct nbd_buf *out);

/* SECURES: TLS has begun.  All that was negotiated in clear is forgotten. */
void nbd_haggle_secured(struct nbd_haggle *h);
/* Has the client chosen base:allocation for the export that the client opens? */
bool nbd_haggle_status(const struct nbd_haggle *h);
/* LISTS: list an export of this name.  nbd_haggle_listed() ends the list. */
void nbd_haggle_name(struct nbd_haggle *h, const char *name, struct nbd_buf *out);
/* LISTS: end the list.  @status: 0, or -errno for the reason @why. */
void nbd_haggle_listed(struct nbd_haggle *h, int status, const char *why, struct nbd_buf *out);
/* LOOKS, OPENS: answer for the export.  @status: 0, or -errno for the reason @why.  With 0
 * @export->flags get the flags that the handshake decides.  0, or -EPROTO as nbd_haggle_step(). */
int nbd_haggle_opened(struct nbd_haggle *h, int status, const char *why, struct nbd_export *export,
		      struct nbd_buf *out);

#endif
