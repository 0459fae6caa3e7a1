/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the transmission phase: requests decoded and checked, replies encoded.  Pure; any
 * thread. */
#ifndef NBD_MSG_H
#define NBD_MSG_H

#include <stdbool.h>
#include <stddef.h>

#include "nbd-proto.h"

#define NBD_DATA_MAX (64u << 20)	/* bytes of a READ or a WRITE, as in nbdkit */
#define NBD_CONTEXT 1u			/* our number of base:allocation */

/* The form of requests and replies, which the handshake settles. */
enum nbd_headers {
	NBD_HEADERS_SIMPLE,
	NBD_HEADERS_STRUCTURED,
	NBD_HEADERS_EXTENDED,
};

/* An export as its clients see it. */
struct nbd_export {
	uint64_t size;			/* bytes */
	uint16_t flags;			/* NBD_FLAG_*, but the flags of the handshake */
	uint32_t block_min, block_preferred;	/* bytes */
	char name[256];			/* as a list has it, whatever the client calls it */
	char description[160];		/* empty: none */
};

struct nbd_request {
	uint16_t flags;			/* NBD_CMD_FLAG_* */
	uint16_t type;			/* enum nbd_cmd, or an unknown number */
	uint64_t cookie;
	uint64_t off, len;		/* of the export, bytes */
	uint32_t payload;		/* bytes that follow */
};

#define NBD_REQUEST_MAX 32u		/* bytes of a request without its payload */

/* Bytes of a request without its payload. */
static inline size_t nbd_request_size(enum nbd_headers headers)
{
	return headers == NBD_HEADERS_EXTENDED ? sizeof(struct nbd_msg_request_ext) :
						 sizeof(struct nbd_msg_request);
}

/* Decode the nbd_request_size() bytes at @buf.  0; or -EPROTO: the connection is to end, for the
 * reason *@why, a wrong magic number or a payload beyond NBD_DATA_MAX. */
int nbd_request_decode(struct nbd_request *req, enum nbd_headers headers, const void *buf,
		       const char **why);
/* Decode the payload of a BLOCK_STATUS, @req->payload bytes, into @req->len.  0, or -EINVAL with
 * the reason *@why. */
int nbd_request_payload(struct nbd_request *req, const void *payload, const char **why);
/* May @req be carried out on @export?  @export->flags are the flags that the client was told.
 * @status: the client has chosen base:allocation.  0, or -errno for the answer with the reason
 * *@why. */
int nbd_request_check(const struct nbd_request *req, enum nbd_headers headers,
		      const struct nbd_export *export, bool status, const char **why);

/* NBD's number for -errno @r; 0 for 0. */
enum nbd_error nbd_error_of(int r);
/* What it means, for people.  Constant; @error is not 0. */
const char *nbd_error_text(enum nbd_error error);

#define NBD_REPLY_MAX 40u		/* bytes in front of the data of a reply */

/* Is the reply to @req a chunk?  Only a chunk has room for the text of an error. */
bool nbd_reply_is_chunk(enum nbd_headers headers, const struct nbd_request *req);
/* Encode into @buf the bytes in front of the data of the reply to @req.  @data: bytes of the data.
 * With @status -errno the reply is an error; its data is a text, if it is a chunk.  Returns the
 * bytes written. */
size_t nbd_reply_encode(uint8_t buf[NBD_REPLY_MAX], enum nbd_headers headers,
			const struct nbd_request *req, int status, uint32_t data);

/* ---- the data of the reply to a BLOCK_STATUS ---- */

struct nbd_status_writer {
	enum nbd_headers headers;
	uint8_t *buf;
	uint32_t n, max;		/* extents */
	uint64_t len;			/* of the last extent, which is not in @buf yet */
	uint32_t flags;
};

/* Begin in @buf, of @room bytes: one extent at least fits. */
void nbd_status_begin(struct nbd_status_writer *w, enum nbd_headers headers, void *buf,
		      size_t room);
/* Append @len bytes, not 0, with @flags, NBD_STATE_*.  False: no room is left. */
bool nbd_status_add(struct nbd_status_writer *w, uint64_t len, uint32_t flags);
/* Write the last extent and the header.  Returns the bytes of the whole; 0: no extent. */
uint32_t nbd_status_end(struct nbd_status_writer *w);

#endif
