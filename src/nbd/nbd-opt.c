/* SPDX-License-Identifier: BSD-3-Clause */
/* Options as a table, each with its function.  A function gets all data of its option, and either
 * answers the option or sets the state that asks the backend.  A mistake inside an option gets an
 * error reply; a mistake that hides the begin of the next option ends the connection. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nbd-opt.h"
#include "util.h"

#define CONTEXT_NAME "base:allocation"

static void negotiate_forget(struct nbd_negotiation *h)
{
	h->headers = NBD_HEADERS_SIMPLE;
	h->option = h->skip = 0;
	h->why = NULL;
	h->name[0] = h->query[0] = h->status[0] = '\0';
}

void nbd_negotiate_begin(struct nbd_negotiation *h, enum nbd_tls_mode tls, struct nbd_buf *out)
{
	static const enum nbd_negotiate_tls begins[] = {
		[NBD_TLS_OFF] = NBD_NEGOTIATE_NO_TLS, [NBD_TLS_ON] = NBD_NEGOTIATE_MAY_TLS,
		[NBD_TLS_REQUIRE] = NBD_NEGOTIATE_MUST_TLS,
	};
	const struct nbd_msg_greeting m = {
		.magic = be64_put(NBD_MAGIC),
		.opt_magic = be64_put(NBD_OPT_MAGIC),
		.flags = be16_put(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES),
	};

	h->state = NBD_NEGOTIATE_FLAGS;
	h->tls = begins[tls];
	h->flags = 0;
	negotiate_forget(h);
	nbd_buf_add(out, &m, sizeof(m));
}

static int negotiate_fail(struct nbd_negotiation *h, const char *why)
{
	h->why = why;
	return -EPROTO;
}

/* ---- replies ---- */

static void reply_head(const struct nbd_negotiation *h, uint32_t type, size_t len,
		       struct nbd_buf *out)
{
	const struct nbd_msg_option_reply m = {
		.magic = be64_put(NBD_REP_MAGIC),
		.option = be32_put(h->option),
		.type = be32_put(type),
		.len = be32_put((uint32_t)len),
	};

	nbd_buf_add(out, &m, sizeof(m));
}

/* Reply with @type: NBD_REP_ACK, or an error with a reason for people. */
static int negotiate_reply(struct nbd_negotiation *h, uint32_t type, const char *text,
			   struct nbd_buf *out)
{
	size_t len = text ? strnlen(text, NBD_STRING_MAX) : 0;

	reply_head(h, type, len, out);
	nbd_buf_add(out, text, len);
	h->state = NBD_NEGOTIATE_OPTION;
	return 0;
}

static int reply_invalid(struct nbd_negotiation *h, const char *text, struct nbd_buf *out)
{
	return negotiate_reply(h, NBD_REP_ERR_INVALID, text, out);
}

static void reply_info_text(const struct nbd_negotiation *h, enum nbd_info type, const char *text,
			    struct nbd_buf *out)
{
	be16 t = be16_put((uint16_t)type);

	reply_head(h, NBD_REP_INFO, sizeof(t) + strlen(text), out);
	nbd_buf_add(out, &t, sizeof(t));
	nbd_buf_add(out, text, strlen(text));
}

static void reply_info(const struct nbd_negotiation *h, const struct nbd_export *export,
		       struct nbd_buf *out)
{
	const struct nbd_msg_info_export m = {
		.type = be16_put(NBD_INFO_EXPORT),
		.size = be64_put(export->size),
		.flags = be16_put(export->flags),
	};
	const struct nbd_msg_info_block_size blocks = {
		.type = be16_put(NBD_INFO_BLOCK_SIZE),
		.minimum = be32_put(export->block_min),
		.preferred = be32_put(export->block_preferred),
		.maximum = be32_put(NBD_DATA_MAX),
	};

	reply_head(h, NBD_REP_INFO, sizeof(m), out);
	nbd_buf_add(out, &m, sizeof(m));
	reply_info_text(h, NBD_INFO_NAME, export->name, out);
	if (export->description[0])
		reply_info_text(h, NBD_INFO_DESCRIPTION, export->description, out);
	reply_head(h, NBD_REP_INFO, sizeof(blocks), out);
	nbd_buf_add(out, &blocks, sizeof(blocks));
}

/* ---- data of options ---- */

struct reader {
	const uint8_t *at;
	size_t left;
};

static bool read_u16(struct reader *r, uint16_t *x)
{
	be16 v;

	if (r->left < sizeof(v))
		return false;
	memcpy(&v, r->at, sizeof(v));
	*x = be16_get(v);
	r->at += sizeof(v);
	r->left -= sizeof(v);
	return true;
}

static bool read_u32(struct reader *r, uint32_t *x)
{
	be32 v;

	if (r->left < sizeof(v))
		return false;
	memcpy(&v, r->at, sizeof(v));
	*x = be32_get(v);
	r->at += sizeof(v);
	r->left -= sizeof(v);
	return true;
}

/* A string of @len bytes without a NUL. */
static bool read_bytes(struct reader *r, uint32_t len, char text[NBD_STRING_MAX + 1])
{
	if (len > NBD_STRING_MAX || r->left < len || memchr(r->at, '\0', len))
		return false;
	memcpy(text, r->at, len);
	text[len] = '\0';
	r->at += len;
	r->left -= len;
	return true;
}

/* A string with its length in front. */
static bool reader_text(struct reader *r, char text[NBD_STRING_MAX + 1])
{
	uint32_t len;

	return read_u32(r, &len) && read_bytes(r, len, text);
}

/* ---- options ---- */

static const char name_too_long[] =
	"the name in NBD_OPT_EXPORT_NAME is longer than 4096 bytes, or has a NUL";

static int opt_export_name(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	if (h->headers == NBD_HEADERS_EXTENDED)
		return negotiate_fail(h, "NBD_OPT_EXPORT_NAME after NBD_OPT_EXTENDED_HEADERS");
	if (!read_bytes(r, (uint32_t)r->left, h->name))
		return negotiate_fail(h, name_too_long);
	h->state = NBD_NEGOTIATE_OPENS;
	return 0;
}

static int opt_abort(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	negotiate_reply(h, NBD_REP_ACK, NULL, out);
	h->state = NBD_NEGOTIATE_LEFT;
	return 0;
}

static int opt_list(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	if (r->left)
		return reply_invalid(h, "NBD_OPT_LIST takes no data", out);
	h->state = NBD_NEGOTIATE_LISTS;
	return 0;
}

static int opt_starttls(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	if (r->left)
		return reply_invalid(h, "NBD_OPT_STARTTLS takes no data", out);
	if (h->tls == NBD_NEGOTIATE_HAS_TLS)
		return reply_invalid(h, "TLS has been negotiated already", out);
	if (h->tls == NBD_NEGOTIATE_NO_TLS)
		return negotiate_reply(h, NBD_REP_ERR_POLICY, "this server has no TLS", out);
	negotiate_reply(h, NBD_REP_ACK, NULL, out);
	h->state = NBD_NEGOTIATE_SECURES;
	return 0;
}

void nbd_negotiate_secured(struct nbd_negotiation *h)
{
	negotiate_forget(h);
	h->tls = NBD_NEGOTIATE_HAS_TLS;
	h->state = NBD_NEGOTIATE_OPTION;
}

/* INFO and GO.  The reply has all information, asked for or not. */
static int opt_go(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	uint16_t n;

	if (!reader_text(r, h->name) || !read_u16(r, &n) || r->left != (size_t)2 * n)
		return reply_invalid(h, "expected the length of a name, the name, a number, and "
				     "as many kinds of information", out);
	h->state = h->option == NBD_OPT_GO ? NBD_NEGOTIATE_OPENS : NBD_NEGOTIATE_LOOKS;
	return 0;
}

static int opt_structured(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	if (r->left)
		return reply_invalid(h, "NBD_OPT_STRUCTURED_REPLY takes no data", out);
	if (h->headers == NBD_HEADERS_EXTENDED)
		return negotiate_reply(h, NBD_REP_ERR_EXT_HEADER_REQD,
				    "extended headers have been negotiated already", out);
	h->headers = NBD_HEADERS_STRUCTURED;
	return negotiate_reply(h, NBD_REP_ACK, NULL, out);
}

static int opt_extended(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	if (r->left)
		return reply_invalid(h, "NBD_OPT_EXTENDED_HEADERS takes no data", out);
	if (h->headers == NBD_HEADERS_EXTENDED)
		return reply_invalid(h, "extended headers have been negotiated already", out);
	h->headers = NBD_HEADERS_EXTENDED;
	return negotiate_reply(h, NBD_REP_ACK, NULL, out);
}

static void reply_context(const struct nbd_negotiation *h, uint32_t id, struct nbd_buf *out)
{
	be32 v = be32_put(id);

	reply_head(h, NBD_REP_META_CONTEXT, sizeof(v) + strlen(CONTEXT_NAME), out);
	nbd_buf_add(out, &v, sizeof(v));
	nbd_buf_add(out, CONTEXT_NAME, strlen(CONTEXT_NAME));
}

/* Does a query mean our context?  "base:" stands for all of that namespace in a LIST. */
static bool query_matches(const struct nbd_negotiation *h)
{
	return !strcmp(h->query, CONTEXT_NAME) ||
	       (h->option == NBD_OPT_LIST_META_CONTEXT && !strcmp(h->query, "base:"));
}

/* LIST_META_CONTEXT and SET_META_CONTEXT. */
static int opt_meta(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	bool set = h->option == NBD_OPT_SET_META_CONTEXT, found;
	uint32_t n;

	if (h->headers == NBD_HEADERS_SIMPLE)
		return reply_invalid(h, "structured replies or extended headers come first", out);
	if (!reader_text(r, h->name) || !read_u32(r, &n))
		return reply_invalid(h, "expected the length of a name, the name, and a number of "
				     "queries", out);
	found = !set && !n;
	for (; n; n--) {
		if (!reader_text(r, h->query))
			return reply_invalid(h, "expected as many queries as the option says", out);
		found |= query_matches(h);
	}
	if (r->left)
		return reply_invalid(h, "bytes follow the last query", out);
	if (found)
		reply_context(h, set ? NBD_CONTEXT : 0, out);
	if (found && set)
		snprintf(h->status, sizeof(h->status), "/%s", h->name);
	return negotiate_reply(h, NBD_REP_ACK, NULL, out);
}

static const struct {
	enum nbd_opt option;
	int (*run)(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out);
} options[] = {
	{ NBD_OPT_EXPORT_NAME, opt_export_name },
	{ NBD_OPT_ABORT, opt_abort },
	{ NBD_OPT_LIST, opt_list },
	{ NBD_OPT_STARTTLS, opt_starttls },
	{ NBD_OPT_INFO, opt_go },
	{ NBD_OPT_GO, opt_go },
	{ NBD_OPT_STRUCTURED_REPLY, opt_structured },
	{ NBD_OPT_LIST_META_CONTEXT, opt_meta },
	{ NBD_OPT_SET_META_CONTEXT, opt_meta },
	{ NBD_OPT_EXTENDED_HEADERS, opt_extended },
};

/* An option in clear, where TLS is required. */
static bool is_refused_in_clear(const struct nbd_negotiation *h)
{
	return h->tls == NBD_NEGOTIATE_MUST_TLS && h->option != NBD_OPT_STARTTLS &&
	       h->option != NBD_OPT_ABORT;
}

static int refuse_in_clear(struct nbd_negotiation *h, struct nbd_buf *out)
{
	/* NBD_OPT_EXPORT_NAME has no error reply. */
	if (h->option == NBD_OPT_EXPORT_NAME)
		return negotiate_fail(h, "NBD_OPT_EXPORT_NAME without TLS, which is required here");
	return negotiate_reply(h, NBD_REP_ERR_TLS_REQD, "TLS is required: NBD_OPT_STARTTLS comes "
			    "first", out);
}

/* Refuse a known option that is longer than NBD_OPTION_MAX. */
static int refuse_too_long(struct nbd_negotiation *h, struct nbd_buf *out)
{
	/* NBD_OPT_EXPORT_NAME has no error reply. */
	if (h->option == NBD_OPT_EXPORT_NAME)
		return negotiate_fail(h, name_too_long);
	return negotiate_reply(h, NBD_REP_ERR_TOO_BIG, "an option has at most 16384 bytes", out);
}

/* Answer an option.  @r has no bytes of an option that is longer than NBD_OPTION_MAX, or in clear
 * where TLS is required. */
static int option_run(struct nbd_negotiation *h, struct reader *r, struct nbd_buf *out)
{
	unsigned i = 0;

	if (!(h->flags & NBD_FLAG_FIXED_NEWSTYLE) && h->option != NBD_OPT_EXPORT_NAME)
		return negotiate_fail(
			h, "an option other than NBD_OPT_EXPORT_NAME from a client that does "
			   "not speak fixed newstyle");
	if (is_refused_in_clear(h))
		return refuse_in_clear(h, out);
	/* A choice that fails, for its length, too, leaves none. */
	if (h->option == NBD_OPT_SET_META_CONTEXT)
		h->status[0] = '\0';
	while (i < ARRAY_SIZE(options) && options[i].option != h->option)
		i++;
	if (i == ARRAY_SIZE(options))
		return negotiate_reply(h, NBD_REP_ERR_UNSUP, "unknown option", out);
	if (r->left > NBD_OPTION_MAX)
		return refuse_too_long(h, out);
	return options[i].run(h, r, out);
}

/* ---- steps ---- */

static ssize_t step_flags(struct nbd_negotiation *h, const uint8_t *buf, size_t len)
{
	be32 flags;

	if (len < sizeof(flags))
		return 0;
	memcpy(&flags, buf, sizeof(flags));
	h->flags = be32_get(flags);
	if (h->flags & ~(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES))
		return negotiate_fail(h, "unknown flags in the client's greeting");
	h->state = NBD_NEGOTIATE_OPTION;
	return sizeof(flags);
}

/* Answer an option with @len bytes of data by its header: no answer depends on the data of an
 * option that is too long, or in clear where TLS is required.  That data has no memory. */
static ssize_t step_header(struct nbd_negotiation *h, uint32_t len, struct nbd_buf *out)
{
	struct reader r = { .left = len };
	int rc;

	if (len > NBD_OPTION_SKIP_MAX)
		return negotiate_fail(h, "an option is longer than 1 MiB");
	rc = option_run(h, &r, out);
	if (rc < 0)
		return rc;
	h->skip = len;
	if (len && h->state == NBD_NEGOTIATE_OPTION)
		h->state = NBD_NEGOTIATE_SKIPS;
	return sizeof(struct nbd_msg_option);
}

static ssize_t step_option(struct nbd_negotiation *h, const uint8_t *buf, size_t len,
			   struct nbd_buf *out)
{
	const struct nbd_msg_option *m = (const void *)buf;
	uint32_t data;
	struct reader r;
	int rc;

	if (len < sizeof(*m))
		return 0;
	if (be64_get(m->magic) != NBD_OPT_MAGIC)
		return negotiate_fail(h, "an option does not begin with its magic number");
	data = be32_get(m->len);
	h->option = be32_get(m->option);
	if (h->tls == NBD_NEGOTIATE_MUST_TLS || data > NBD_OPTION_MAX)
		return step_header(h, data, out);
	if (len - sizeof(*m) < data)
		return 0;
	r = (struct reader){ .at = buf + sizeof(*m), .left = data };
	rc = option_run(h, &r, out);
	return rc < 0 ? rc : (ssize_t)(sizeof(*m) + data);
}

static ssize_t step_skip(struct nbd_negotiation *h, size_t len)
{
	uint32_t n = (uint32_t)MIN((size_t)h->skip, len);

	h->skip -= n;
	if (!h->skip)
		h->state = NBD_NEGOTIATE_OPTION;
	return n;
}

ssize_t nbd_negotiate_step(struct nbd_negotiation *h, const uint8_t *buf, size_t len,
			   struct nbd_buf *out)
{
	switch (h->state) {
	case NBD_NEGOTIATE_FLAGS:
		return step_flags(h, buf, len);
	case NBD_NEGOTIATE_OPTION:
		return step_option(h, buf, len, out);
	case NBD_NEGOTIATE_SKIPS:
		return step_skip(h, len);
	default:
		return 0;
	}
}

/* ---- answers of the backend ---- */

bool nbd_negotiate_status(const struct nbd_negotiation *h)
{
	return h->status[0] && !strcmp(h->status + 1, h->name);
}

void nbd_negotiate_name(struct nbd_negotiation *h, const char *name, struct nbd_buf *out)
{
	be32 len = be32_put((uint32_t)strlen(name));

	reply_head(h, NBD_REP_SERVER, sizeof(len) + strlen(name), out);
	nbd_buf_add(out, &len, sizeof(len));
	nbd_buf_add(out, name, strlen(name));
}

static uint32_t rep_error(int status)
{
	switch (-status) {
	case ENOENT:
		return NBD_REP_ERR_UNKNOWN;
	case EPERM: case EROFS: case EACCES:
		return NBD_REP_ERR_POLICY;
	case ESHUTDOWN:
		return NBD_REP_ERR_SHUTDOWN;
	default:
		/* The document has no number for an export that exists and fails. */
		return NBD_REP_ERR_UNKNOWN;
	}
}

void nbd_negotiate_listed(struct nbd_negotiation *h, int status, const char *why,
			  struct nbd_buf *out)
{
	if (status)
		negotiate_reply(h, status == -ESHUTDOWN ? NBD_REP_ERR_SHUTDOWN : NBD_REP_ERR_POLICY,
			     why, out);
	else
		negotiate_reply(h, NBD_REP_ACK, NULL, out);
}

static int opened_by_name(struct nbd_negotiation *h, const struct nbd_export *export,
			  struct nbd_buf *out)
{
	static const uint8_t zeroes[NBD_EXPORT_NAME_ZEROES];
	const struct nbd_msg_export_name m = {
		.size = be64_put(export->size),
		.flags = be16_put(export->flags),
	};

	nbd_buf_add(out, &m, sizeof(m));
	if (!(h->flags & NBD_FLAG_NO_ZEROES))
		nbd_buf_add(out, zeroes, sizeof(zeroes));
	h->state = NBD_NEGOTIATE_SERVES;
	return 0;
}

int nbd_negotiate_opened(struct nbd_negotiation *h, int status, const char *why,
			 struct nbd_export *export, struct nbd_buf *out)
{
	bool serves = h->state == NBD_NEGOTIATE_OPENS;

	if (status && h->option == NBD_OPT_EXPORT_NAME)
		return negotiate_fail(h, why); /* NBD_OPT_EXPORT_NAME has no error reply */
	if (status)
		return negotiate_reply(h, rep_error(status), why, out);
	export->flags |= NBD_FLAG_HAS_FLAGS;
	if (h->headers != NBD_HEADERS_SIMPLE)
		export->flags |= NBD_FLAG_SEND_DF;
	/* The document wants a choice first, and the same flags for INFO and GO. */
	if (h->headers == NBD_HEADERS_EXTENDED && nbd_negotiate_status(h))
		export->flags |= NBD_FLAG_BLOCK_STATUS_PAYLOAD;
	if (h->option == NBD_OPT_EXPORT_NAME)
		return opened_by_name(h, export, out);
	reply_info(h, export, out);
	negotiate_reply(h, NBD_REP_ACK, NULL, out);
	if (serves)
		h->state = NBD_NEGOTIATE_SERVES;
	return 0;
}
