/* SPDX-License-Identifier: BSD-3-Clause */
/* A table says which flags and lengths each command allows; another request gets an error.  A
 * message that hides the begin of the next request ends the connection. */
#include <errno.h>
#include <string.h>

#include "nbd-msg.h"
#include "util.h"

/* ---- requests ---- */

/* Both forms begin alike. */
_Static_assert(offsetof(struct nbd_msg_request, length) ==
	       offsetof(struct nbd_msg_request_ext, length), "layout");

int nbd_request_decode(struct nbd_request *req, enum nbd_headers headers, const void *buf,
		       const char **why)
{
	const struct nbd_msg_request *m = buf;
	const struct nbd_msg_request_ext *ext = buf;
	bool extended = headers == NBD_HEADERS_EXTENDED;

	*req = (struct nbd_request){
		.flags = be16_get(m->flags),
		.type = be16_get(m->type),
		.cookie = be64_get(m->cookie),
		.off = be64_get(m->offset),
		.len = extended ? be64_get(ext->length) : be32_get(m->length),
	};
	/* The data of a WRITE follows with the flag and without (doc/traps.md 39). */
	if (req->type == NBD_CMD_WRITE || (extended && (req->flags & NBD_CMD_FLAG_PAYLOAD_LEN)))
		req->payload = (uint32_t)MIN(req->len, (uint64_t)UINT32_MAX);
	*why = "a request does not begin with its magic number";
	if (be32_get(m->magic) != (extended ? NBD_EXTENDED_REQUEST_MAGIC : NBD_REQUEST_MAGIC))
		return -EPROTO;
	*why = "a payload is longer than the 64 MiB that one request may have";
	return req->payload > NBD_DATA_MAX ? -EPROTO : 0;
}

int nbd_request_payload(struct nbd_request *req, const void *payload, const char **why)
{
	const struct nbd_msg_status_payload *p = payload;

	*why = "the payload of a BLOCK_STATUS is a length and the number of base:allocation";
	/* The server has one context, so one number. */
	if (req->payload != sizeof(*p) + sizeof(p->context[0]) ||
	    be32_get(p->context[0]) != NBD_CONTEXT)
		return -EINVAL;
	req->len = be64_get(p->length);
	return 0;
}

/* The limits of a command. */
struct rule {
	uint16_t flags;			/* NBD_CMD_FLAG_* that are allowed */
	uint16_t needs;			/* NBD_FLAG_* of the export */
	int beyond;			/* the error of a request beyond the end; 0: no
					 * range */
	bool writes;
	uint64_t max;			/* bytes; 0: no limit */
};

static const struct rule rules[] = {
	[NBD_CMD_READ] = { .flags = NBD_CMD_FLAG_DF, .beyond = -EINVAL, .max = NBD_DATA_MAX },
	[NBD_CMD_WRITE] = { .beyond = -ENOSPC, .writes = true, .max = NBD_DATA_MAX },
	[NBD_CMD_FLUSH] = { .needs = NBD_FLAG_SEND_FLUSH },
	[NBD_CMD_TRIM] = { .needs = NBD_FLAG_SEND_TRIM, .beyond = -EINVAL, .writes = true },
	[NBD_CMD_CACHE] = { .beyond = -EINVAL },
	[NBD_CMD_WRITE_ZEROES] = { .flags = NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_FAST_ZERO,
				   .needs = NBD_FLAG_SEND_WRITE_ZEROES, .beyond = -ENOSPC,
				   .writes = true },
	[NBD_CMD_BLOCK_STATUS] = { .flags = NBD_CMD_FLAG_REQ_ONE, .beyond = -EINVAL },
};

static const struct rule *rule_of(const struct nbd_request *req)
{
	bool known = req->type < ARRAY_SIZE(rules) && req->type != NBD_CMD_DISC;

	return known ? &rules[req->type] : NULL;
}

/* The flags that @req may have.  Some clients set FUA in requests that write no data. */
static uint16_t flags_allowed(const struct nbd_request *req, const struct rule *c,
			      enum nbd_headers headers, const struct nbd_export *export)
{
	uint16_t allowed = c->flags;

	if (export->flags & NBD_FLAG_SEND_FUA)
		allowed |= NBD_CMD_FLAG_FUA;
	if (!(export->flags & NBD_FLAG_SEND_DF))
		allowed &= (uint16_t)~NBD_CMD_FLAG_DF;
	if (!(export->flags & NBD_FLAG_SEND_FAST_ZERO))
		allowed &= (uint16_t)~NBD_CMD_FLAG_FAST_ZERO;
	if (headers == NBD_HEADERS_EXTENDED &&
	    (req->type == NBD_CMD_WRITE ||
	     (req->type == NBD_CMD_BLOCK_STATUS &&
	      (export->flags & NBD_FLAG_BLOCK_STATUS_PAYLOAD))))
		allowed |= NBD_CMD_FLAG_PAYLOAD_LEN;
	return allowed;
}

/* The part of the check that depends on no range. */
static const char *refusal(const struct nbd_request *req, const struct rule *c,
			   enum nbd_headers headers, const struct nbd_export *export, bool status)
{
	if (!c)
		return "unknown command";
	if (req->flags & ~flags_allowed(req, c, headers, export))
		return "the command has a flag that it cannot have, or that was not negotiated";
	if ((c->needs & export->flags) != c->needs)
		return "the export does not have this command";
	if (req->type == NBD_CMD_BLOCK_STATUS && !status)
		return "base:allocation was not chosen by NBD_OPT_SET_META_CONTEXT";
	if (!c->beyond && (req->off || req->len))
		return "the command has no range";
	if (c->beyond && !req->len)
		return "the range is empty";
	return NULL;
}

int nbd_request_check(const struct nbd_request *req, enum nbd_headers headers,
		      const struct nbd_export *export, bool status, const char **why)
{
	const struct rule *c = rule_of(req);

	*why = "the export is read-only";
	if (c && c->writes && (export->flags & NBD_FLAG_READ_ONLY))
		return -EPERM;
	*why = refusal(req, c, headers, export, status);
	if (*why)
		return -EINVAL;
	*why = "the range goes beyond the end of the export";
	if (c->beyond && !range_ok(req->off, req->len, export->size))
		return c->beyond;
	*why = "a request has at most 64 MiB of data";
	return c->max && req->len > c->max ? -EINVAL : 0;
}

/* ---- replies ---- */

enum nbd_error nbd_error_of(int r)
{
	switch (-r) {
	case 0:
		return 0;
	case EPERM: case EROFS: case EACCES:
		return NBD_EPERM;
	case ENOMEM:
		return NBD_ENOMEM;
	case EINVAL:
		return NBD_EINVAL;
	case ENOSPC: case EDQUOT: case EFBIG:
		return NBD_ENOSPC;
	case EOVERFLOW:
		return NBD_EOVERFLOW;
	case EOPNOTSUPP:
		return NBD_ENOTSUP;
	default:
		return NBD_EIO;
	}
}

const char *nbd_error_text(enum nbd_error error)
{
	switch (error) {
	case NBD_EPERM:
		return "the export cannot be written to";
	case NBD_ENOMEM:
		return "no memory";
	case NBD_EINVAL:
		return "the server refuses the request as invalid";
	case NBD_ENOSPC:
		return "no space is left on the storage";
	case NBD_EOVERFLOW:
		return "a number is too large";
	case NBD_ENOTSUP:
		return "the storage does not support the request";
	default:
		return "the storage, or the way to it, has failed";
	}
}

_Static_assert(offsetof(struct nbd_msg_chunk, length) ==
	       offsetof(struct nbd_msg_chunk_ext, offset), "layout");

/* A chunk that ends its reply, with @len bytes of payload. */
static size_t encode_chunk(uint8_t *buf, enum nbd_headers headers, const struct nbd_request *req,
			   enum nbd_reply_type type, uint32_t len)
{
	struct nbd_msg_chunk *m = (void *)buf;
	struct nbd_msg_chunk_ext *ext = (void *)buf;
	bool extended = headers == NBD_HEADERS_EXTENDED;

	m->magic = be32_put(extended ? NBD_EXTENDED_REPLY_MAGIC : NBD_STRUCTURED_REPLY_MAGIC);
	m->flags = be16_put(NBD_REPLY_FLAG_DONE);
	m->type = be16_put((uint16_t)type);
	m->cookie = be64_put(req->cookie);
	if (!extended) {
		m->length = be32_put(len);
		return sizeof(*m);
	}
	ext->offset = be64_put(req->off);
	ext->length = be64_put(len);
	return sizeof(*ext);
}

/* @text: bytes of the text that follows. */
static size_t encode_error(uint8_t *buf, enum nbd_headers headers, const struct nbd_request *req,
			   enum nbd_error error, uint32_t text)
{
	struct nbd_msg_error m = { .error = be32_put(error), .length = be16_put((uint16_t)text) };
	size_t n = encode_chunk(buf, headers, req, NBD_REPLY_TYPE_ERROR,
				(uint32_t)sizeof(m) + text);

	memcpy(buf + n, &m, sizeof(m));
	return n + sizeof(m);
}

static size_t encode_simple(uint8_t *buf, const struct nbd_request *req, enum nbd_error error)
{
	struct nbd_msg_simple_reply *m = (void *)buf;

	*m = (struct nbd_msg_simple_reply){
		.magic = be32_put(NBD_SIMPLE_REPLY_MAGIC),
		.error = be32_put(error),
		.cookie = be64_put(req->cookie),
	};
	return sizeof(*m);
}

/* A READ's data has its offset in front. */
static size_t encode_read(uint8_t *buf, enum nbd_headers headers, const struct nbd_request *req,
			  uint32_t data)
{
	be64 off = be64_put(req->off);
	size_t n = encode_chunk(buf, headers, req, NBD_REPLY_TYPE_OFFSET_DATA,
				data + (uint32_t)sizeof(off));

	memcpy(buf + n, &off, sizeof(off));
	return n + sizeof(off);
}

bool nbd_reply_is_chunk(enum nbd_headers headers, const struct nbd_request *req)
{
	return headers == NBD_HEADERS_EXTENDED ||
	       (headers == NBD_HEADERS_STRUCTURED &&
		(req->type == NBD_CMD_READ || req->type == NBD_CMD_BLOCK_STATUS));
}

size_t nbd_reply_encode(uint8_t buf[NBD_REPLY_MAX], enum nbd_headers headers,
			const struct nbd_request *req, int status, uint32_t data)
{
	enum nbd_error error = nbd_error_of(status);

	if (!nbd_reply_is_chunk(headers, req))
		return encode_simple(buf, req, error);
	if (error)
		return encode_error(buf, headers, req, error, data);
	if (req->type == NBD_CMD_READ)
		return encode_read(buf, headers, req, data);
	if (!data)
		return encode_chunk(buf, headers, req, NBD_REPLY_TYPE_NONE, 0);
	return encode_chunk(buf, headers, req, headers == NBD_HEADERS_EXTENDED ?
			    NBD_REPLY_TYPE_BLOCK_STATUS_EXT : NBD_REPLY_TYPE_BLOCK_STATUS, data);
}

/* ---- extents ---- */

/* Lengths of 32 bits, in whole blocks. */
#define STATUS_LEN_MAX 0xfffff000u

void nbd_status_begin(struct nbd_status_writer *w, enum nbd_headers headers, void *buf, size_t room)
{
	const struct nbd_msg_status *m = buf;
	const struct nbd_msg_status_ext *ext = buf;
	bool extended = headers == NBD_HEADERS_EXTENDED;
	size_t max = extended ? (room - sizeof(*ext)) / sizeof(ext->extent[0]) :
				(room - sizeof(*m)) / sizeof(m->extent[0]);

	*w = (struct nbd_status_writer){ .headers = headers, .buf = buf, .max = (uint32_t)max };
}

/* Write the last extent into the buffer. */
static void status_put(struct nbd_status_writer *w)
{
	struct nbd_msg_status *m = (void *)w->buf;
	struct nbd_msg_status_ext *ext = (void *)w->buf;

	if (w->headers == NBD_HEADERS_EXTENDED) {
		ext->extent[w->n].length = be64_put(w->len);
		ext->extent[w->n].flags = be64_put(w->flags);
	} else {
		m->extent[w->n].length = be32_put((uint32_t)MIN(w->len, (uint64_t)STATUS_LEN_MAX));
		m->extent[w->n].flags = be32_put(w->flags);
	}
	w->n++;
}

bool nbd_status_add(struct nbd_status_writer *w, uint64_t len, uint32_t flags)
{
	if (w->len && w->flags == flags) {
		w->len += len;
		return true;
	}
	/* No extent may follow an extent that was cut. */
	if (w->n == w->max ||
	    (w->len > STATUS_LEN_MAX && w->headers != NBD_HEADERS_EXTENDED))
		return false;
	if (w->len) {
		if (w->n + 1 == w->max)
			return false;
		status_put(w);
	}
	w->len = len;
	w->flags = flags;
	return true;
}

uint32_t nbd_status_end(struct nbd_status_writer *w)
{
	struct nbd_msg_status *m = (void *)w->buf;
	struct nbd_msg_status_ext *ext = (void *)w->buf;

	if (!w->len)
		return 0;
	status_put(w);
	if (w->headers == NBD_HEADERS_EXTENDED) {
		ext->context = be32_put(NBD_CONTEXT);
		ext->count = be32_put(w->n);
		return (uint32_t)(sizeof(*ext) + w->n * sizeof(ext->extent[0]));
	}
	m->context = be32_put(NBD_CONTEXT);
	return (uint32_t)(sizeof(*m) + w->n * sizeof(m->extent[0]));
}
