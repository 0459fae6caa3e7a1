/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of NBD, from the server's side: negotiation of options.  Pure: bytes of the client
 * go in, bytes for the client come out, and a state asks for an answer of the backend.  One
 * thread. */
#ifndef NBD_OPT_H
#define NBD_OPT_H

#include <sys/types.h>

#include "nbd-mem.h"
#include "nbd-msg.h"
#include "nbd-tls.h"

/* Bytes of the longest option that is parsed.  A longer option is refused, and its data is
 * skipped. */
#define NBD_OPTION_MAX (16u << 10)
/* Bytes of the longest option that is skipped.  A longer option ends the connection. */
#define NBD_OPTION_SKIP_MAX (1u << 20)

enum nbd_negotiate_state {
	NBD_NEGOTIATE_FLAGS,		/* the flags of the client are to come */
	NBD_NEGOTIATE_OPTION,		/* an option is to come */
	NBD_NEGOTIATE_SKIPS,		/* the data of a refused option is to come */
	NBD_NEGOTIATE_LISTS,		/* the backend is to list its exports */
	NBD_NEGOTIATE_LOOKS,		/* the backend is to open @name, for information */
	NBD_NEGOTIATE_OPENS,		/* the backend is to open @name, to be served */
	NBD_NEGOTIATE_SERVES,		/* requests follow */
	NBD_NEGOTIATE_LEFT,		/* the client has sent NBD_OPT_ABORT */
	NBD_NEGOTIATE_SECURES,		/* TLS is to begin behind the bytes for the client */
	NBD_NEGOTIATE_STATES
};

/* The rules of TLS for the client, or that TLS is up. */
enum nbd_negotiate_tls {
	NBD_NEGOTIATE_NO_TLS,		/* refused */
	NBD_NEGOTIATE_MAY_TLS,		/* the client may ask */
	NBD_NEGOTIATE_MUST_TLS,		/* the client has to ask */
	NBD_NEGOTIATE_HAS_TLS,
};

struct nbd_negotiation {
	enum nbd_negotiate_state state;
	enum nbd_negotiate_tls tls;
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
void nbd_negotiate_begin(struct nbd_negotiation *h, enum nbd_tls_mode tls, struct nbd_buf *out);
/* Take a whole piece at @buf: the greeting's flags, or an option.  Returns the bytes taken; 0: more
 * bytes are needed, or the backend's answer, or the handshake is over; -EPROTO: the connection is
 * to end, because of h->why. */
ssize_t nbd_negotiate_step(struct nbd_negotiation *h, const uint8_t *buf, size_t len,
			   struct nbd_buf *out);

/* SECURES: TLS has begun.  All that was negotiated in clear is forgotten. */
void nbd_negotiate_secured(struct nbd_negotiation *h);
/* Has the client chosen base:allocation for the export that the client opens? */
bool nbd_negotiate_status(const struct nbd_negotiation *h);
/* LISTS: list an export of this name.  nbd_negotiate_listed() ends the list. */
void nbd_negotiate_name(struct nbd_negotiation *h, const char *name, struct nbd_buf *out);
/* LISTS: end the list.  @status: 0, or -errno for the reason @why. */
void nbd_negotiate_listed(struct nbd_negotiation *h, int status, const char *why,
			  struct nbd_buf *out);
/* LOOKS, OPENS: answer for the export.  @status: 0, or -errno for the reason @why.  With 0
 * @export->flags get the flags that the handshake decides.  0, or -EPROTO as
 * nbd_negotiate_step(). */
int nbd_negotiate_opened(struct nbd_negotiation *h, int status, const char *why,
			 struct nbd_export *export, struct nbd_buf *out);

#endif
