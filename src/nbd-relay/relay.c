/* SPDX-License-Identifier: BSD-3-Clause */
/* The backend of the NBD server (relay.h): exports that are open, and requests of NBD on devices.
 *
 * The happy path: relay_open() asks the session for the device, and opened_msg() brings the answer
 * to the loop of the client; relay_io_begin() starts a request; news put it on a list, and
 * relay_step_all() steps it when what brought the news is done with; relay_io_end() ends it.  A
 * handle is one NBD connection's, so that each is notified of lost writes by itself
 * (doc/decisions.md D13).
 *
 * Possible failures: an export that cannot be opened is refused, with the reason in the log; a
 * request that fails is one line in the log, unless its client gets no error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "clt-export.h"
#include "dev-req.h"
#include "dev.h"
#include "log.h"
#include "relay.h"

struct relay_handle {
	struct relay *g;
	struct dev_handle io;
	bool readonly;
};

enum relay_stage {
	RELAY_REQ,			/* @req is under way */
	RELAY_REQ_FUA,			/* likewise; a flush is to follow */
	RELAY_ASK,			/* @ask is */
};

/* A BLOCK_STATUS of more than one question of RNBD (2 GiB) goes on asking while each answer
 * covers its question.  At these bounds the client gets what is known. */
#define RELAY_ASKS 512u			/* questions: 1 TiB */
#define RELAY_ASKS_MS 30000u		/* since the first one; the last one may end later */

struct relay_io {
	struct nbd_io *io;
	struct list ready;		/* relay.ready */
	enum relay_stage stage;
	/* ASK */
	uint64_t known;			/* the end of what the client's answer covers */
	uint64_t since_ms;
	unsigned asks;
	union {
		struct dev_req req;
		struct dev_extents_ask ask;
	};
};

/* ---- requests ---- */

static void relay_io_news(struct relay_io *o)
{
	struct relay *g = relay_of(o->io->handle);

	if (list_empty(&o->ready))
		list_add_tail(&g->ready, &o->ready);
	loop_defer(g->loop, &g->step);
}

static void req_news(struct dev_req *q)
{
	relay_io_news(container_of(q, struct relay_io, req));
}

static void ask_news(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct dev_io *io = container_of(op, struct dev_io, clt);

	relay_io_news(
		container_of(container_of(io, struct dev_extents_ask, io), struct relay_io, ask));
}

static const char *name_of(enum nbd_cmd cmd)
{
	static const char *const names[] = {
		[NBD_CMD_READ] = "read", [NBD_CMD_WRITE] = "write", [NBD_CMD_FLUSH] = "flush",
		[NBD_CMD_TRIM] = "trim", [NBD_CMD_WRITE_ZEROES] = "zero",
		[NBD_CMD_BLOCK_STATUS] = "extents",
	};

	return names[cmd];
}

static void relay_io_end(struct relay_io *o, int r)
{
	struct relay_handle *h = o->io->handle;

	list_del(&o->ready);
	if (r < 0 && nbd_io_error_is_sent(o->io))
		clt_export_failed(h->io.dev, name_of(o->io->cmd), o->io->len, o->io->off, r);
	nbd_io_done(o->io, r);
}

/* Cut what the server answers to what the client asked for.  1: no more is wanted. */
static int relay_add_extent(void *arg, uint64_t off, const struct rnbd_extent *e)
{
	struct relay_io *o = arg;
	struct nbd_io *io = o->io;
	uint64_t begin = MAX(off, o->known), end = MIN(off + e->len, io->off + io->len);
	uint32_t flags = (e->what & RNBD_EXTENT_HOLE ? NBD_STATE_HOLE : 0) |
			 (e->what & RNBD_EXTENT_ZERO ? NBD_STATE_ZERO : 0);

	if (begin >= end)
		return begin > io->off;
	if (!nbd_io_extent(io, end - begin, flags))
		return 1;
	o->known = end;
	return 0;
}

/* Ask about what follows the known part. */
static void ask_start(struct relay_io *o)
{
	struct nbd_io *io = o->io;
	struct relay_handle *h = io->handle;

	o->asks++;
	dev_extents_start(&o->ask, &h->io, io->off + io->len - o->known, o->known,
			  io->flags & NBD_CMD_FLAG_REQ_ONE, ask_news);
}

/* An answer that ends inside its question is followed by another kind, or the server had no
 * room. */
static bool ask_goes_on(const struct relay_io *o)
{
	return o->known < o->io->off + o->io->len &&
	       o->known == o->ask.start + o->ask.io.span &&
	       o->asks < RELAY_ASKS && clock_now_ms() - o->since_ms < RELAY_ASKS_MS &&
	       nbd_io_may_go_on(o->io);
}

/* True: the questions have ended, with *@r. */
static bool ask_step(struct relay_io *o, int *r)
{
	while (clt_op_step(&o->ask.io.clt)) {
		*r = dev_extents_end(&o->ask, relay_add_extent, o);
		if (*r || !ask_goes_on(o)) {
			/* What is known is an answer, whatever became of the last question. */
			*r = o->known > o->io->off ? 0 : MIN(*r, 0);
			return true;
		}
		ask_start(o);
	}
	return false;
}

/* True: it has ended, with *@r. */
static bool io_step_one(struct relay_io *o, int *r)
{
	if (o->stage == RELAY_ASK)
		return ask_step(o, r);
	if (!dev_req_step(&o->req))
		return false;
	if (dev_req_tells_loss(&o->req))
		o->io->error = NBD_IO_LASTS;
	*r = dev_req_status(&o->req);
	return true;
}

static void relay_io_step(struct relay_io *o)
{
	struct relay_handle *h = o->io->handle;
	int r;

	while (io_step_one(o, &r)) {
		if (r < 0 || o->stage != RELAY_REQ_FUA) {
			relay_io_end(o, r);
			return;
		}
		o->stage = RELAY_REQ;
		dev_req_flush(&o->req, &h->io);
	}
}

static void relay_step_all(struct loop_task *task)
{
	struct relay *g = container_of(task, struct relay, step);
	struct relay_io *o;

	clt_pass_begin();
	while ((o = list_pop_entry(&g->ready, struct relay_io, ready)))
		relay_io_step(o);
	clt_pass_end();
}

static void start_status(struct relay_io *o)
{
	o->stage = RELAY_ASK;
	o->ask.answer = o->io->buf;
	o->known = o->io->off;
	o->since_ms = clock_now_ms();
	o->asks = 0;
	ask_start(o);
}

static void start_req(struct relay_io *o)
{
	struct nbd_io *io = o->io;
	struct dev_handle *h = &((struct relay_handle *)io->handle)->io;
	bool fua = io->flags & NBD_CMD_FLAG_FUA;

	if (fua && io->cmd != NBD_CMD_READ && io->cmd != NBD_CMD_FLUSH &&
	    clt_export_flushes_fua(h->dev)) {
		o->stage = RELAY_REQ_FUA;
		fua = false;
	}
	switch (io->cmd) {
	case NBD_CMD_READ:
		dev_req_read(&o->req, h, io->buf, (uint32_t)io->len, io->off);
		break;
	case NBD_CMD_WRITE:
		dev_req_write(&o->req, h, io->buf, (uint32_t)io->len, io->off, fua);
		break;
	case NBD_CMD_TRIM:
		dev_req_discard(&o->req, h, io->len, io->off, fua);
		break;
	case NBD_CMD_WRITE_ZEROES:
		dev_req_zero(&o->req, h, io->len, io->off, !(io->flags & NBD_CMD_FLAG_NO_HOLE),
			     fua);
		break;
	default:
		dev_req_flush(&o->req, h);
		break;
	}
}

static void relay_io_begin(struct nbd_io *io)
{
	struct relay_io *o = io->own;

	o->io = io;
	list_init(&o->ready);
	if (io->cmd == NBD_CMD_WRITE_ZEROES && (io->flags & NBD_CMD_FLAG_FAST_ZERO) &&
	    (io->flags & NBD_CMD_FLAG_NO_HOLE)) {
		relay_io_end(o, -EOPNOTSUPP);
		return;
	}
	if (io->cmd == NBD_CMD_BLOCK_STATUS) {
		start_status(o);
	} else {
		o->stage = RELAY_REQ;
		o->req.fn = req_news;
		start_req(o);
	}
	relay_io_step(o);
}

/* ---- exports ---- */

/* The session's answers come on the service thread, and go on to the loop that has asked. */
struct opening {
	struct clt_export_req req;
	struct loop_msg msg;
	struct relay *g;
	struct nbd_ask *ask;
	char name[RNBD_NAME_MAX];
};

void *relay_handle_create(struct relay *g, struct dev *dev)
{
	struct relay_handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->g = g;
	h->readonly = g->readonly;
	dev_handle_init(&h->io, dev);
	return h;
}

static struct log_limit open_limit = LOG_LIMIT_INIT(10, 10000);

/* The client cannot have the export @name, for the reason @why. */
static void relay_refuse(struct nbd_ask *ask, const char *name, int r, const char *why)
{
	log_event_limited(&open_limit, LOG_LEVEL_WARN,
			  LOG_FIELDS(OPEN_REFUSED, .export = name), NULL, "%s", why);
	nbd_ask_opened(ask, r, why, NULL);
}

static void opened_msg(struct loop_msg *msg)
{
	struct opening *o = container_of(msg, struct opening, msg);
	struct clt_export_req *req = &o->req;
	void *h = req->status == 0 ? relay_handle_create(o->g, req->dev) : NULL;

	if (h) {
		nbd_ask_opened(o->ask, 0, NULL, h);
	} else if (req->status == 0) {
		dev_close(req->dev);
		relay_refuse(o->ask, o->name, -ENOMEM, "no memory for a connection");
	} else {
		relay_refuse(o->ask, o->name, req->status, req->err);
	}
	free(o);
}

static void relay_opened(struct clt_export_req *req)
{
	struct opening *o = container_of(req, struct opening, req);

	loop_post(o->g->loop, &o->msg);
}

static void relay_open(void *arg, struct nbd_ask *ask, const char *asked)
{
	struct relay *g = arg;
	const char *name = g->conf->export_name ? g->conf->export_name : asked;
	struct opening *o;

	if (!*name) {
		relay_refuse(ask, name, -ENOENT,
			    "the NBD client asks for no export: put the name into its URI "
			    "(nbd+unix:///NAME?socket=...), or give export=NAME here");
		return;
	}
	if (strlen(name) >= RNBD_NAME_MAX) {
		relay_refuse(ask, name, -ENOENT, "the name of an export has at most 254 bytes");
		return;
	}
	o = malloc(sizeof(*o));
	if (!o) {
		relay_refuse(ask, name, -ENOMEM, "no memory for a connection");
		return;
	}
	snprintf(o->name, sizeof(o->name), "%s", name);
	loop_msg_init(&o->msg, opened_msg);
	o->g = g;
	o->ask = ask;
	o->req.name = o->name;
	o->req.done = relay_opened;
	clt_export_open_start(&o->req, g->clt, g->conf);
}

struct listing {
	struct loop_msg msg;
	struct relay *g;
	struct nbd_ask *ask;
	int status;
	struct dev_list list;
};

static void listed_msg(struct loop_msg *msg)
{
	struct listing *l = container_of(msg, struct listing, msg);

	for (unsigned i = 0; l->status == 0 && i < l->list.n; i++)
		nbd_ask_name(l->ask, l->list.names[i]);
	/* A server without a list has nothing to tell. */
	nbd_ask_listed(l->ask, l->status == -EOPNOTSUPP ? 0 : l->status,
		       "the server's exports cannot be listed");
	dev_list_fini(&l->list);
	free(l);
}

static void relay_listed(void *arg, int status, struct dev_list *list)
{
	struct listing *l = arg;

	l->status = status;
	l->list = *list;
	*list = (struct dev_list){ 0 };
	loop_post(l->g->loop, &l->msg);
}

static void relay_list(void *arg, struct nbd_ask *ask)
{
	struct relay *g = arg;
	struct listing *l;

	if (g->conf->export_name) {
		nbd_ask_name(ask, g->conf->export_name);
		nbd_ask_listed(ask, 0, NULL);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (l) {
		loop_msg_init(&l->msg, listed_msg);
		l->g = g;
		l->ask = ask;
	}
	if (!l || dev_list_start(g->clt, relay_listed, l) < 0) {
		free(l);
		nbd_ask_listed(ask, -ENOMEM, "no memory for a list");
	}
}

static void relay_info(void *handle, struct nbd_export *export)
{
	const struct relay_handle *h = handle;
	const struct dev *dev = h->io.dev;

	*export = (struct nbd_export){
		.size = dev_size(dev),
		/* One session serves all connections, and a FLUSH covers the file, not the
		 * connection. */
		.flags = NBD_FLAG_SEND_FLUSH | NBD_FLAG_SEND_FUA | NBD_FLAG_CAN_MULTI_CONN |
			 NBD_FLAG_SEND_CACHE,
		.block_min = 1,
		.block_preferred = clt_export_block(dev),
	};
	if (h->readonly || dev_mode(dev) == RNBD_ACCESS_RO)
		export->flags |= NBD_FLAG_READ_ONLY;
	if (dev_info(dev)->rotational)
		export->flags |= NBD_FLAG_ROTATIONAL;
	if (dev_can_discard(dev))
		export->flags |= NBD_FLAG_SEND_TRIM;
	/* ORDER: another server may come in between, and FAST_ZERO needs WRITE_ZEROES. */
	if (dev_can_zero(dev)) {
		export->flags |= NBD_FLAG_SEND_WRITE_ZEROES;
		if (clt_export_fast_zeroes(dev))
			export->flags |= NBD_FLAG_SEND_FAST_ZERO;
	}
	snprintf(export->name, sizeof(export->name), "%s", dev_name(dev));
	snprintf(export->description, sizeof(export->description), "RNBD export '%.64s' of %.64s",
		 dev_name(dev), h->g->conf->server);
}

struct relay *relay_of(const void *handle)
{
	return ((const struct relay_handle *)handle)->g;
}

void relay_handle_destroy(void *handle)
{
	struct relay_handle *h = handle;

	dev_handle_fini(&h->io);
	free(h);
}

void relay_told(void *handle)
{
	dev_handle_arrived(&((struct relay_handle *)handle)->io);
}

static void relay_close(void *handle)
{
	struct dev *dev = ((struct relay_handle *)handle)->io.dev;

	relay_handle_destroy(handle);
	dev_close(dev);
}

const char *relay_name(const void *handle)
{
	return dev_name(((const struct relay_handle *)handle)->io.dev);
}

const char *relay_mode(const void *handle)
{
	const struct relay_handle *h = handle;

	return rnbd_access_names[h->readonly ? RNBD_ACCESS_RO : dev_mode(h->io.dev)];
}

const struct nbd_backend relay_backend = {
	.io_size = sizeof(struct relay_io),
	.list = relay_list,
	.open = relay_open,
	.info = relay_info,
	.close = relay_close,
	.start = relay_io_begin,
};

void relay_init(struct relay *g, struct loop *loop, struct client *clt,
		       const struct clt_conf *conf, bool readonly)
{
	g->loop = loop;
	g->clt = clt;
	g->conf = conf;
	g->readonly = readonly;
	list_init(&g->ready);
	loop_task_init(&g->step, relay_step_all);
}
