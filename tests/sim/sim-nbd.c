/* SPDX-License-Identifier: BSD-3-Clause */
/* A fiber of the client reads all that the server says.  Owns the requests in flight, but not their
 * memory.  Cookies are random, so that a wrong one is nobody's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "sim-fiber.h"
#include "sim-nbd.h"
#include "sim-test.h"

#define TEXT_MAX 2048u			/* bytes of an option's reply */

const struct sim_nbd_conf sim_nbd_defaults = {
	.export_name = "disk0",
	.stream = { .send_max = UINT64_MAX, .receive_max = UINT64_MAX },
};

static bool take(struct sim_nbd *c, void *buf, size_t len)
{
	return sim_stream_take(&c->stream, buf, len);
}

static void put(struct sim_nbd *c, const void *bytes, size_t len)
{
	sim_stream_put(&c->stream, bytes, len);
}

/* ---- handshake ---- */

static void put_option(struct sim_nbd *c, enum nbd_opt option, const void *data, size_t len)
{
	const struct nbd_msg_option m = {
		.magic = be64_put(NBD_OPT_MAGIC),
		.option = be32_put(option),
		.len = be32_put((uint32_t)len),
	};

	put(c, &m, sizeof(m));
	put(c, data, len);
}

static void take_info(struct sim_nbd *c, const uint8_t *data, uint32_t len)
{
	const struct nbd_msg_info_export *m = (const void *)data;

	if (len != sizeof(*m) || be16_get(m->type) != NBD_INFO_EXPORT)
		return;
	c->size = be64_get(m->size);
	c->flags = be16_get(m->flags);
}

/* Take the replies to @option up to the last.  False: a refusal, or the stream has ended. */
static bool take_option_replies(struct sim_nbd *c, enum nbd_opt option)
{
	struct nbd_msg_option_reply m;
	uint8_t data[TEXT_MAX];

	do {
		if (!take(c, &m, sizeof(m)))
			return false;
		CHECK(be64_get(m.magic) == NBD_REP_MAGIC && be32_get(m.option) == option);
		CHECK(be32_get(m.len) <= sizeof(data));
		if (!take(c, data, be32_get(m.len)))
			return false;
		if (be32_get(m.type) & NBD_REP_ERR) {
			c->refused = be32_get(m.type);
			return false;
		}
		if (be32_get(m.type) == NBD_REP_INFO)
			take_info(c, data, be32_get(m.len));
	} while (be32_get(m.type) != NBD_REP_ACK);
	return true;
}

static bool negotiate_by_name(struct sim_nbd *c)
{
	struct nbd_msg_export_name m;
	uint8_t zeroes[NBD_EXPORT_NAME_ZEROES];

	put_option(c, NBD_OPT_EXPORT_NAME, c->conf.export_name, strlen(c->conf.export_name));
	if (!take(c, &m, sizeof(m)) || !take(c, zeroes, sizeof(zeroes)))
		return false;
	c->size = be64_get(m.size);
	c->flags = be16_get(m.flags);
	return true;
}

/* Append a text with its length in front to @buf; returns the end. */
static uint8_t *text_put(uint8_t *buf, const char *text)
{
	be32 len = be32_put((uint32_t)strlen(text));

	memcpy(buf, &len, sizeof(len));
	memcpy(buf + sizeof(len), text, strlen(text));
	return buf + sizeof(len) + strlen(text);
}

static bool negotiate_go(struct sim_nbd *c)
{
	uint8_t data[256], *end = text_put(data, c->conf.export_name);

	memset(end, 0, 2);		/* asks for no information */
	put_option(c, NBD_OPT_GO, data, (size_t)(end + 2 - data));
	return take_option_replies(c, NBD_OPT_GO);
}

static bool negotiate_status(struct sim_nbd *c)
{
	const be32 one = be32_put(1);
	uint8_t data[256], *end = text_put(data, c->conf.export_name);

	memcpy(end, &one, sizeof(one));
	end = text_put(end + sizeof(one), "base:allocation");
	put_option(c, NBD_OPT_SET_META_CONTEXT, data, (size_t)(end - data));
	return take_option_replies(c, NBD_OPT_SET_META_CONTEXT);
}

static bool negotiate_headers(struct sim_nbd *c)
{
	enum nbd_opt option = c->conf.headers == NBD_HEADERS_EXTENDED ?
				      NBD_OPT_EXTENDED_HEADERS : NBD_OPT_STRUCTURED_REPLY;

	if (c->conf.headers == NBD_HEADERS_SIMPLE)
		return true;
	put_option(c, option, NULL, 0);
	return take_option_replies(c, option);
}

static bool negotiate(struct sim_nbd *c)
{
	bool go = c->conf.option == SIM_NBD_GO;
	be32 flags = be32_put(NBD_FLAG_FIXED_NEWSTYLE | (go ? NBD_FLAG_NO_ZEROES : 0));
	struct nbd_msg_greeting m;

	if (!take(c, &m, sizeof(m)))
		return false;
	CHECK(be64_get(m.magic) == NBD_MAGIC && be64_get(m.opt_magic) == NBD_OPT_MAGIC);
	put(c, &flags, sizeof(flags));
	return negotiate_headers(c) && (!c->conf.status || negotiate_status(c)) &&
	       (go ? negotiate_go(c) : negotiate_by_name(c));
}

/* ---- replies ---- */

static struct sim_nbd_req *req_of(struct sim_nbd *c, uint64_t cookie)
{
	struct sim_nbd_req *req;

	list_for_each(req, &c->reqs, link) {
		if (req->cookie == cookie)
			return req;
	}
	sim_test_failed(__FILE__, __LINE__, "a reply has the cookie of no request in flight");
}

static int status_of(uint32_t error)
{
	switch (error) {
	case 0: case NBD_EPERM: case NBD_EIO: case NBD_ENOMEM: case NBD_EINVAL: case NBD_ENOSPC:
		return -(int)error;
	case NBD_EOVERFLOW:
		return -EOVERFLOW;
	case NBD_ENOTSUP:
		return -EOPNOTSUPP;
	default:
		sim_test_failed(__FILE__, __LINE__, "a reply has an unknown error");
	}
}

static void req_end(struct sim_nbd *c, struct sim_nbd_req *req, enum sim_nbd_fate fate, int status)
{
	list_del(&req->link);
	list_add_tail(&c->ended, &req->link);
	req->status = status;
	req->fate = fate;
}

/* Take the reply behind @magic. */
static bool take_simple(struct sim_nbd *c, be32 magic)
{
	struct nbd_msg_simple_reply m = { .magic = magic };
	struct sim_nbd_req *req;
	int status;

	if (!take(c, (uint8_t *)&m + sizeof(magic), sizeof(m) - sizeof(magic)))
		return false;
	req = req_of(c, be64_get(m.cookie));
	status = status_of(be32_get(m.error));
	CHECK(c->conf.headers == NBD_HEADERS_SIMPLE || req->cmd != NBD_CMD_READ);
	if (req->cmd == NBD_CMD_READ && !status && !take(c, req->buf, req->len))
		return false;
	req_end(c, req, SIM_NBD_ANSWERED, status);
	return true;
}

static bool take_data(struct sim_nbd *c, struct sim_nbd_req *req, uint64_t len)
{
	be64 off;

	CHECK(req->cmd == NBD_CMD_READ && len == sizeof(off) + req->len);
	if (!take(c, &off, sizeof(off)) || !take(c, req->buf, req->len))
		return false;
	CHECK(be64_get(off) == req->off);
	return true;
}

static bool take_error(struct sim_nbd *c, uint64_t len, int *status)
{
	struct nbd_msg_error m;
	uint8_t text[TEXT_MAX];

	CHECK(len >= sizeof(m) && len - sizeof(m) <= sizeof(text));
	if (!take(c, &m, sizeof(m)) || !take(c, text, len - sizeof(m)))
		return false;
	*status = status_of(be32_get(m.error));
	CHECK(*status < 0);
	return true;
}

/* Take an extent, with its length and flags in @words. */
static bool take_extent(struct sim_nbd *c, uint64_t words[2])
{
	be64 wide[2];
	be32 narrow[2];

	if (c->conf.headers == NBD_HEADERS_EXTENDED) {
		if (!take(c, wide, sizeof(wide)))
			return false;
		words[0] = be64_get(wide[0]);
		words[1] = be64_get(wide[1]);
		return true;
	}
	if (!take(c, narrow, sizeof(narrow)))
		return false;
	words[0] = be32_get(narrow[0]);
	words[1] = be32_get(narrow[1]);
	return true;
}

/* Extents follow each other from the begin of the request, inside it. */
static bool take_extents(struct sim_nbd *c, struct sim_nbd_req *req, uint64_t len)
{
	bool ext = c->conf.headers == NBD_HEADERS_EXTENDED;
	size_t head = ext ? sizeof(struct nbd_msg_status_ext) : sizeof(struct nbd_msg_status);
	size_t each = ext ? 2 * sizeof(be64) : 2 * sizeof(be32);
	uint64_t at = req->off, end = req->off + req->len, words[2];
	uint8_t text[sizeof(struct nbd_msg_status_ext)];

	CHECK(req->cmd == NBD_CMD_BLOCK_STATUS && c->conf.status);
	CHECK(len > head && (len - head) % each == 0);
	if (!take(c, text, head))
		return false;
	for (size_t i = head; i < len; i += each) {
		if (!take_extent(c, words))
			return false;
		CHECK(words[0] && words[0] <= end - at);
		req->extent(req, at, words[0], words[1]);
		at += words[0];
	}
	return true;
}

/* A reply is one chunk here. */
static bool take_chunk(struct sim_nbd *c, uint64_t cookie, uint16_t flags, uint16_t type,
		       uint64_t len)
{
	struct sim_nbd_req *req = req_of(c, cookie);
	bool ext = c->conf.headers == NBD_HEADERS_EXTENDED, whole;
	int status = 0;

	CHECK(flags == NBD_REPLY_FLAG_DONE);
	switch (type) {
	case NBD_REPLY_TYPE_NONE:
		CHECK(!len && req->cmd != NBD_CMD_READ && req->cmd != NBD_CMD_BLOCK_STATUS);
		whole = true;
		break;
	case NBD_REPLY_TYPE_OFFSET_DATA:
		whole = take_data(c, req, len);
		break;
	case NBD_REPLY_TYPE_ERROR:
		whole = take_error(c, len, &status);
		break;
	default:
		CHECK(type == (ext ? NBD_REPLY_TYPE_BLOCK_STATUS_EXT :
				     NBD_REPLY_TYPE_BLOCK_STATUS));
		whole = take_extents(c, req, len);
		break;
	}
	if (whole)
		req_end(c, req, SIM_NBD_ANSWERED, status);
	return whole;
}

static bool take_structured(struct sim_nbd *c)
{
	struct nbd_msg_chunk m;

	return take(c, (uint8_t *)&m + sizeof(m.magic), sizeof(m) - sizeof(m.magic)) &&
	       take_chunk(c, be64_get(m.cookie), be16_get(m.flags), be16_get(m.type),
			  be32_get(m.length));
}

static bool take_extended(struct sim_nbd *c)
{
	struct nbd_msg_chunk_ext m;

	if (!take(c, (uint8_t *)&m + sizeof(m.magic), sizeof(m) - sizeof(m.magic)))
		return false;
	CHECK(be64_get(m.offset) == req_of(c, be64_get(m.cookie))->off);
	return take_chunk(c, be64_get(m.cookie), be16_get(m.flags), be16_get(m.type),
			  be64_get(m.length));
}

/* False: the stream has ended. */
static bool take_reply(struct sim_nbd *c)
{
	be32 magic;

	if (!take(c, &magic, sizeof(magic)))
		return false;
	switch (be32_get(magic)) {
	case NBD_SIMPLE_REPLY_MAGIC:
		CHECK(c->conf.headers != NBD_HEADERS_EXTENDED);
		return take_simple(c, magic);
	case NBD_STRUCTURED_REPLY_MAGIC:
		CHECK(c->conf.headers == NBD_HEADERS_STRUCTURED);
		return take_structured(c);
	case NBD_EXTENDED_REPLY_MAGIC:
		CHECK(c->conf.headers == NBD_HEADERS_EXTENDED);
		return take_extended(c);
	default:
		sim_test_failed(__FILE__, __LINE__, "a reply does not begin with its number");
	}
}

/* The server closes the stream behind DISC, with all requests answered, or behind the end of what
 * the client sends. */
static void check_end(const struct sim_nbd *c)
{
	const struct sim_stream *s = &c->stream;

	if (c->excused || s->cause != SIM_STREAM_SERVER)
		return;
	if (c->disc && s->sent >= c->disc)
		CHECK(list_empty(&c->reqs));
	else
		CHECK(s->out_state == SIM_STREAM_IS_SHUT);
}

static void reqs_are_lost(struct sim_nbd *c)
{
	const struct sim_stream *s = &c->stream;
	struct sim_nbd_req *req;

	while ((req = list_pop_entry(&c->reqs, struct sim_nbd_req, link)))
		req_end(c, req, s->sent >= req->last_byte ? SIM_NBD_LOST : SIM_NBD_UNSENT, 0);
}

static void read_all(void *arg)
{
	struct sim_nbd *c = arg;

	if (negotiate(c)) {
		c->state = SIM_NBD_SERVED;
		while (take_reply(c))
			;
		check_end(c);
	}
	sim_stream_close(&c->stream);
	c->state = SIM_NBD_OVER;
	reqs_are_lost(c);
}

/* ---- requests ---- */

static uint64_t put_request(struct sim_nbd *c, const struct sim_nbd_req *req)
{
	const struct nbd_msg_request m = {
		.magic = be32_put(NBD_REQUEST_MAGIC),
		.flags = be16_put(req->flags), .type = be16_put((uint16_t)req->cmd),
		.cookie = be64_put(req->cookie),
		.offset = be64_put(req->off), .length = be32_put(req->len),
	};
	bool write = req->cmd == NBD_CMD_WRITE;
	bool flagged = write && req->cookie % 2;	/* or as QEMU 10 */
	struct nbd_msg_request_ext ext = {
		.magic = be32_put(NBD_EXTENDED_REQUEST_MAGIC),
		.flags = be16_put((uint16_t)(req->flags |
					     (flagged ? NBD_CMD_FLAG_PAYLOAD_LEN : 0))),
		.type = m.type, .cookie = m.cookie, .offset = m.offset,
		.length = be64_put(req->len),
	};

	if (c->conf.headers == NBD_HEADERS_EXTENDED)
		put(c, &ext, sizeof(ext));
	else
		put(c, &m, sizeof(m));
	return sim_stream_put(&c->stream, req->buf, write ? req->len : 0);
}

void sim_nbd_start(struct sim_nbd *c, struct sim_nbd_req *req)
{
	list_init(&req->link);
	req->fate = SIM_NBD_WAITS;
	if (c->state == SIM_NBD_OVER) {
		req_end(c, req, SIM_NBD_UNSENT, 0);
		return;
	}
	CHECK(c->state == SIM_NBD_SERVED && !c->disc);
	random_bytes(&req->cookie, sizeof(req->cookie));
	list_add_tail(&c->reqs, &req->link);
	req->last_byte = put_request(c, req);
}

static bool req_has_fate(void *arg)
{
	return ((const struct sim_nbd_req *)arg)->fate != SIM_NBD_WAITS;
}

void sim_nbd_wait(struct sim_nbd_req *req)
{
	sim_fiber_wait(req_has_fate, req);
	list_del(&req->link);
}

static bool some_has_fate(void *arg)
{
	return !list_empty(&((const struct sim_nbd *)arg)->ended);
}

struct sim_nbd_req *sim_nbd_first(struct sim_nbd *c)
{
	sim_fiber_wait(some_has_fate, c);
	return list_entry(c->ended.next, struct sim_nbd_req, link);
}

void sim_nbd_disc(struct sim_nbd *c)
{
	const struct sim_nbd_req req = { .cmd = NBD_CMD_DISC };

	if (c->state == SIM_NBD_SERVED)
		c->disc = put_request(c, &req);
}

void sim_nbd_excuse(struct sim_nbd *c)
{
	c->excused = true;
}

/* ---- life ---- */

int sim_nbd_open(struct sim_nbd *c, const struct sim_nbd_conf *conf)
{
	int fd;

	*c = (struct sim_nbd){ .conf = *conf };
	list_init(&c->reqs);
	list_init(&c->ended);
	fd = sim_stream_open(&c->stream, &conf->stream);
	c->reader = sim_fiber_start(read_all, c);
	return fd;
}

bool sim_nbd_opened(void *arg)
{
	return ((const struct sim_nbd *)arg)->state != SIM_NBD_NEGOTIATES;
}

bool sim_nbd_over(void *arg)
{
	return sim_fiber_done(((const struct sim_nbd *)arg)->reader);
}

void sim_nbd_fini(struct sim_nbd *c)
{
	sim_fiber_free(c->reader);
	sim_stream_fini(&c->stream);
}
