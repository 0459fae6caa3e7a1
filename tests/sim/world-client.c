/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns simulated clients and their requests.  A client is what the plugin is below nbdkit's
 * callbacks: a session on a service loop, one device, and a thread (a fiber) for each request. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dev-req.h"
#include "sim-loop.h"
#include "sim-wait.h"
#include "world-priv.h"

const struct world_client_conf world_client_defaults = { WORLD_CLIENT_DEFAULTS };

static enum clt_registration registration_from_env(void)
{
	const char *name = getenv("SIM_REGISTRATION");
	unsigned i = 0;

	if (!name)
		return CLT_REG_AUTO;
	while (strcmp(name, clt_registration_names[i]))
		assert(++i < CLT_NREGS);
	return (enum clt_registration)i;
}

static void open_done(struct dev_open_req *req)
{
	struct world_client *c = container_of(req, struct world_client, open);

	c->open_done = true;
	if (!req->status)
		dev_handle_init(&c->handle, req->dev);
}

struct world_client *world_client_start(struct world *w, const struct world_client_conf *conf)
{
	struct world_client *c = calloc(1, sizeof(*c));
	static const char *const addrs[WORLD_PATHS] = { "srv", "srv/1", "srv/2", "srv/3" };
	static struct clt_sess_addr paths[WORLD_PATHS];	/* no fiber runs meanwhile */
	struct clt_sess_conf sess = { .paths = paths,
				      .npaths = MAX(conf ? conf->npaths : 1, 1u) };
	const char *const *names;
	struct sim_place before;

	conf = conf ? conf : &world_client_defaults;
	names = conf->paths ? conf->paths : addrs;
	assert(c && conf->nloops <= WORLD_LOOPS);
	c->nloops = MAX(conf->nloops, 1u);
	c->w = w;
	c->host = sim_host_find(conf->host);
	c->epoch = c->host->epoch;
	c->device = strdup(conf->device ? conf->device : "disk0");
	assert(c->device);
	list_init(&c->ios);
	list_add_tail(&w->clients, &c->link);

	sess.wait = conf->wait ? conf->wait : &sim_wait_fibers;
	sess.loops = c->loops;
	sess.nloops = c->nloops;
	sess.name = conf->name;
	for (unsigned i = 0; i < sess.npaths; i++)
		paths[i].dst = sim_addr(names[i], RTRS_PORT);
	sess.policy = conf->policy;
	sess.path.hb_interval_ms = conf->hb_interval_ms;
	sess.path.hb_misses = conf->hb_misses;
	sess.max_reconnect_attempts = conf->max_reconnect_attempts - 1;
	sess.connections = conf->connections;
	sess.io_timeout_ms = conf->io_timeout_ms;
	sess.path.registration = conf->registration ? conf->registration : registration_from_env();
	sess.path.digest = getenv("SIM_DIGEST") && rtrs_digest_works() ? RTRS_DIGEST_CRC32C :
								   conf->digest;
	sess.path.once = conf->once;
	sess.path.auth = conf->auth;
	if (conf->kept) {
		c->kept_file = conf->kept;
		c->kept = malloc(sizeof(*c->kept));
		assert(c->kept);
		memcpy(c->kept, conf->kept, sizeof(*c->kept));
		sess.kept = c->kept;
	}
	before = sim_enter(c->host, c->epoch);
	for (unsigned i = 0; i < c->nloops; i++)
		CHECK(sim_loop_create(&c->loops[i]) == 0);
	CHECK(client_init(&c->clt, c->loops[0], &sess) == 0);
	sim_leave(before);
	world_client_open(c, conf->mode);
	return c;
}

void world_client_open(struct world_client *c, enum rnbd_access_mode mode)
{
	struct sim_place before = sim_enter(c->host, c->epoch);

	c->open_done = false;
	c->open = (struct dev_open_req){
		.name = c->device, .mode = mode, .done = open_done,
	};
	dev_open_start(&c->clt, &c->open);
	sim_leave(before);
}

int world_client_opened(const struct world_client *c)
{
	return c->open_done ? c->open.status : 1;
}

static bool is_open(void *client)
{
	return world_client_opened(client) <= 0;
}

int world_wait_open(struct world_client *c, uint64_t ms)
{
	sim_run_until(is_open, c, ms);
	return world_client_opened(c);
}

struct world_client *world_client_opens(struct world *w, const struct world_client_conf *conf)
{
	struct world_client *c = world_client_start(w, conf);

	CHECK(world_wait_open(c, 1000) == 0);
	return c;
}

struct client *world_client_clt(struct world_client *c)
{
	return &c->clt;
}

struct dev *world_client_dev(struct world_client *c)
{
	return c->open.dev;
}

struct dev_handle *world_client_handle(struct world_client *c)
{
	return &c->handle;
}

struct sim_fiber *world_client_fiber(struct world_client *c, void (*fn)(void *arg), void *arg)
{
	struct sim_place before = sim_enter(c->host, c->epoch);
	struct sim_fiber *f = sim_fiber_start(fn, arg);

	sim_leave(before);
	return f;
}

struct loop *const *world_client_loops(const struct world_client *c, unsigned *n)
{
	*n = c->nloops;
	return c->loops;
}

static void loops_destroy(struct world_client *c)
{
	for (unsigned i = 0; i < c->nloops; i++)
		sim_loop_destroy(c->loops[i]);
}

static void client_end(void *arg)
{
	struct world_client *c = arg;

	if (c->open_done && !c->open.status)
		dev_close(c->open.dev);
	client_close(&c->clt);
	CHECK(list_empty(&c->clt.devs));
	CHECK(bitmap_weight(&c->clt.sess.io.slots.permits) == 0);
	loops_destroy(c);
	client_fini(&c->clt);
}

static bool fiber_ended(void *arg)
{
	return sim_fiber_done(arg);
}

/* What outlives the process is as it is now. */
static void client_leave_kept(struct world_client *c)
{
	if (c->kept)
		memcpy(c->kept_file, c->kept, sizeof(*c->kept));
}

void world_client_stop(struct world *w, struct world_client *c)
{
	struct sim_place before = sim_enter(c->host, c->epoch);

	CHECK(list_empty(&c->ios));
	c->closer = sim_fiber_start(client_end, c);
	sim_leave(before);
	CHECK(sim_run_until(fiber_ended, c->closer, 60000));
	client_leave_kept(c);
	world_client_reap(c);
}

void world_client_reap(struct world_client *c)
{
	CHECK(sim_run_until(fiber_ended, c->closer, 60000));
	sim_fiber_free(c->closer);
	if (c->over)
		c->free_more(c->more);
	list_del(&c->link);
	free(c->kept);
	free(c->device);
	free(c);
}

/* ---- a client that was killed ---- */

static bool ios_ended(void *arg)
{
	const struct world_client *c = arg;
	const struct world_io *io;

	list_for_each(io, &c->ios, link) {
		if (!io->done)
			return false;
	}
	return c->open_done;
}

static bool clt_ended(void *arg)
{
	struct world_client *c = arg;

	return client_closed(&c->clt) && list_empty(&c->clt.devs);
}

/* Cut off from the world it can only give up: requests fail when the session has closed. */
static void client_fall_apart(void *arg)
{
	struct world_client *c = arg;

	client_close_start(&c->clt);
	sim_fiber_wait(ios_ended, c);
	if (c->over)
		sim_fiber_wait(c->over, c->more);
	if (!c->open.status)
		dev_close(c->open.dev);
	sim_fiber_wait(clt_ended, c);
	CHECK(bitmap_weight(&c->clt.sess.io.slots.permits) == 0);
	loops_destroy(c);
	client_fini(&c->clt);
}

void world_client_kill(struct world *w, struct world_client *c, enum sim_kill how)
{
	struct sim_place before;

	client_leave_kept(c);
	sim_kill(c->host->name, how);
	world_note(w, "%s %s", c->host->name, how == SIM_KILL_POWER ? "loses power" : "killed");
	before = sim_enter(c->host, c->epoch);
	c->closer = sim_fiber_start(client_fall_apart, c);
	sim_leave(before);
}

void world_client_kill_later(struct world *w, struct world_client *c, enum sim_kill how,
			     bool (*over)(void *arg), void *arg, void (*free_arg)(void *arg))
{
	c->over = over;
	c->more = arg;
	c->free_more = free_arg;
	world_client_kill(w, c, how);
}

/* ---- requests ---- */

static int io_do(struct world_io *io)
{
	switch (io->op) {
	case RNBD_OP_READ:
		return dev_call_read(io->h, io->buf, io->len, io->off);
	case RNBD_OP_WRITE:
		return dev_call_write(io->h, io->buf, io->len, io->off, io->fua);
	case RNBD_OP_FLUSH:
		return dev_call_flush(io->h);
	case RNBD_OP_DISCARD:
		return dev_call_discard(io->h, io->len, io->off, io->fua);
	default:
		return dev_call_zero(io->h, io->len, io->off, true, io->fua);
	}
}

static void io_thread(void *arg)
{
	struct world_io *io = arg;

	io->status = io_do(io);
	io->done = true;
	io->done_us = sim_now_us();
}

struct world_io *world_io_start_by(struct world_client *c, struct dev_handle *h, enum rnbd_io_op op,
				   uint64_t off, uint32_t len, uint8_t fill, bool fua)
{
	struct world_io *io = calloc(1, sizeof(*io));
	struct sim_place before = sim_enter(c->host, c->epoch);

	assert(io && world_client_opened(c) == 0);
	io->h = h;
	io->op = op;
	io->off = off;
	io->len = len;
	io->fua = fua;
	io->buf = malloc(len ? len : 1);
	assert(io->buf);
	/* A READ that brings nothing must not look like one that did. */
	memset(io->buf, op == RNBD_OP_READ ? 0xEE : fill, len);
	list_add_tail(&c->ios, &io->link);
	io->fiber = sim_fiber_start(io_thread, io);
	sim_leave(before);
	return io;
}

struct world_io *world_io_start(struct world_client *c, enum rnbd_io_op op, uint64_t off,
				uint32_t len, uint8_t fill, bool fua)
{
	return world_io_start_by(c, &c->handle, op, off, len, fill, fua);
}

int world_io_end(struct world_io *io, uint8_t fill, uint64_t ms)
{
	int status;

	CHECK(sim_run_until(fiber_ended, io->fiber, ms));
	status = io->status;
	for (uint32_t i = 0; !status && io->op == RNBD_OP_READ && i < io->len; i++)
		CHECK(io->buf[i] == fill);
	world_io_free(io);
	return status;
}

void world_io_free(struct world_io *io)
{
	list_del(&io->link);
	sim_fiber_free(io->fiber);
	free(io->buf);
	free(io);
}

int world_write(struct world_client *c, uint64_t off, uint32_t len, uint8_t fill)
{
	return world_io_end(world_io_start(c, RNBD_OP_WRITE, off, len, fill, false), fill, 120000);
}

int world_read(struct world_client *c, uint64_t off, uint32_t len, uint8_t fill)
{
	return world_io_end(world_io_start(c, RNBD_OP_READ, off, len, fill, false), fill, 120000);
}

int world_flush(struct world_client *c)
{
	return world_io_end(world_io_start(c, RNBD_OP_FLUSH, 0, 0, 0, false), 0, 120000);
}

void world_ios_start(struct world_client *c, enum rnbd_io_op op, struct world_io **ios, unsigned n,
		     uint8_t fill)
{
	for (unsigned i = 0; i < n; i++)
		ios[i] = world_io_start(c, op, i * 4096, 4096, (uint8_t)(fill + i), false);
}

bool world_ios_end(struct world_io **ios, unsigned n, int status, uint8_t fill, uint64_t ms)
{
	bool all = true;

	for (unsigned i = 0; i < n; i++) {
		if (world_io_end(ios[i], (uint8_t)(fill + i), ms) != status)
			all = false;
	}
	return all;
}

bool world_blocks_are(struct world_client *c, unsigned n, uint8_t fill)
{
	for (unsigned i = 0; i < n; i++) {
		if (world_read(c, i * 4096, 4096, (uint8_t)(fill + i)))
			return false;
	}
	return true;
}
