/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver (store-driver.h) on memory.  Owns the disks and every operation from start to
 * completion.  One thread; completions run on the reactor that started the operation.  An operation
 * of a dead server completes with -EIO towards its ghost; what it was to do to the disk goes on
 * without it, as a request of a killed process does. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "rnbd-ext.h"
#include "sim-core.h"
#include "sim-loop.h"
#include "sim-storage.h"
#include "sim-test.h"
#include "store-driver.h"

#define SECTOR RNBD_SECTOR_SIZE
#define SIM_MAX_IO 65536u
#define LINGER_US 20000u
#define NRULES (RNBD_OP_WRITE_ZEROES + 2)

struct rule {
	enum sim_hold hold;
	unsigned nhold;
	int err;
	unsigned nskip, nfail;		/* so many pass, then so many fail */
};

struct sim_disk {
	struct list link, ops;
	char *path;
	uint64_t size;
	uint8_t *now, *durable;
	uint64_t *dirty;	/* per sector: when the first write since it was made durable was
				 * completed, as a count; 0: none */
	uint64_t count;
	uint32_t delay_us, jitter_us;
	struct rule rules[NRULES];
	unsigned nheld;
	uint16_t prio;		/* of the operation that was started last */
	bool size_held;
	int size_err;
	struct list asks;	/* struct ask: who waits for the size */
	struct sim_share *share;
	unsigned nrenew_fails;
	enum sim_disk_step fails;	/* of the next export that comes */
	unsigned fails_ring;		/* ATTACH: there */
	void (*refused)(const struct export_io *io);	/* NULL: nobody asks */
	void (*started)(const struct export_io *io);	/* likewise */
};

struct sim_export {
	struct export ex;
	unsigned number;	/* of sim_share_join(); 0: no other server has the disk */
	enum { OPEN_IS_OVER, OPEN_IS_HALF } open;
};

struct ask {
	struct list link;
	struct sim_cqe cqe;
	struct reactor *reactor;
	struct export *ex;
	int64_t size;		/* when it was asked for */
	void (*done)(struct export *ex, int64_t size, void *arg);
	void *arg;
};

enum stage {
	OP_WAITING,		/* has not reached the medium */
	OP_APPLIED,
	OP_COMPLETED,		/* waits for the reactor's pass */
};

struct op {
	struct list link;
	struct sim_event ev;
	struct sim_cqe cqe;
	struct sim_disk *disk;
	struct export_io *io;
	struct reactor *reactor;
	struct sim_host *host;
	unsigned epoch;
	unsigned number;	/* of the export when the operation was started */
	bool lingers;		/* in the memory of its server until it is due; a frozen server
				 * keeps it there */
	enum stage stage;
	enum sim_hold hold;
	bool held;
	enum rnbd_io_op kind;	/* FLUSH: a sync, whatever @io is */
	bool is_durable;	/* a write of a direct export that is durable by itself */
	struct export_state *in_sync;	/* of export_sync_begun(); NULL: not in a sync */
	/* by a server that was killed: @io is own_io, whose export is gone, and nobody waits */
	bool left;
	struct export_io own_io;
	uint64_t started;	/* what was completed by then is covered by this FLUSH */
	int status;
};

static struct list disks = LIST_INIT(disks);

struct sim_disk *sim_disk_create(const char *path, uint64_t size)
{
	struct sim_disk *d = calloc(1, sizeof(*d));

	assert(d && size % SECTOR == 0 && !sim_disk_find(path));
	d->path = strdup(path);
	d->size = size;
	d->now = calloc(1, size);
	d->durable = calloc(1, size);
	d->dirty = calloc(size / SECTOR, sizeof(*d->dirty));
	assert(d->path && d->now && d->durable && d->dirty);
	d->delay_us = 100;
	list_init(&d->ops);
	list_init(&d->asks);
	d->share = sim_share_create();
	list_add_tail(&disks, &d->link);
	return d;
}

void sim_disk_destroy(struct sim_disk *d)
{
	assert(list_empty(&d->ops) && list_empty(&d->asks));
	list_del(&d->link);
	sim_share_destroy(d->share);
	free(d->path);
	free(d->now);
	free(d->durable);
	free(d->dirty);
	free(d);
}

struct sim_disk *sim_disk_find(const char *path)
{
	struct sim_disk *d;

	list_for_each(d, &disks, link) {
		if (!strcmp(d->path, path))
			return d;
	}
	return NULL;
}

static void *resized(void *mem, size_t from, size_t to)
{
	char *p = realloc(mem, to);

	assert(p);
	if (to > from)
		memset(p + from, 0, to - from);
	return p;
}

void sim_disk_resize(struct sim_disk *d, uint64_t size)
{
	assert(size % SECTOR == 0);
	d->now = resized(d->now, d->size, size);
	d->durable = resized(d->durable, d->size, size);
	d->dirty = resized(d->dirty, d->size / SECTOR * sizeof(*d->dirty),
			   size / SECTOR * sizeof(*d->dirty));
	d->size = size;
}

const uint8_t *sim_disk_content(const struct sim_disk *d)
{
	return d->now;
}

uint64_t sim_disk_size(const struct sim_disk *d)
{
	return d->size;
}

unsigned sim_disk_inflight(const struct sim_disk *d)
{
	struct op *op;
	unsigned n = 0;

	list_for_each(op, &d->ops, link)
		n++;
	return n;
}

unsigned sim_disk_held(const struct sim_disk *d)
{
	return d->nheld;
}

uint16_t sim_disk_prio(const struct sim_disk *d)
{
	return d->prio;
}

void sim_disk_delay(struct sim_disk *d, uint32_t us, uint32_t jitter_us)
{
	d->delay_us = us;
	d->jitter_us = jitter_us;
}

static struct rule *rule_of(struct sim_disk *d, enum rnbd_io_op op)
{
	assert(op <= RNBD_OP_WRITE_ZEROES || op == RNBD_OP_EXTENTS);
	return &d->rules[MIN((unsigned)op, NRULES - 1u)];
}

void sim_disk_hold(struct sim_disk *d, enum rnbd_io_op op, enum sim_hold hold, unsigned n)
{
	rule_of(d, op)->hold = hold;
	rule_of(d, op)->nhold = n;
}

void sim_disk_fail(struct sim_disk *d, enum rnbd_io_op op, int err, unsigned n)
{
	rule_of(d, op)->err = err;
	rule_of(d, op)->nskip = 0;
	rule_of(d, op)->nfail = n;
}

void sim_disk_fail_behind(struct sim_disk *d, enum rnbd_io_op op, int err, unsigned skip)
{
	sim_disk_fail(d, op, err, 1);
	rule_of(d, op)->nskip = skip;
}

struct sim_share *sim_disk_share(struct sim_disk *d)
{
	return d->share;
}

void sim_disk_watch_refused(struct sim_disk *d, void (*fn)(const struct export_io *io))
{
	d->refused = fn;
}

void sim_disk_watch_started(struct sim_disk *d, void (*fn)(const struct export_io *io))
{
	d->started = fn;
}

void sim_disk_fail_renew(struct sim_disk *d, unsigned n)
{
	d->nrenew_fails = n;
}

void sim_disk_fail_step(struct sim_disk *d, enum sim_disk_step step, unsigned ring)
{
	d->fails = step;
	d->fails_ring = ring;
}

/* Does @step fail now? */
static bool step_fails(struct sim_disk *d, enum sim_disk_step step)
{
	bool fails = d->fails == step;

	if (fails)
		d->fails = SIM_STEP_NONE;
	return fails;
}

/* ---- the medium ---- */

static void medium_sync(struct sim_disk *d, uint64_t s)
{
	memcpy(d->durable + s * SECTOR, d->now + s * SECTOR, SECTOR);
	d->dirty[s] = 0;
}

/* Make durable what was completed when a FLUSH began at @started; of what came later some. */
static void medium_flush(struct sim_disk *d, uint64_t started)
{
	for (uint64_t s = 0; s < d->size / SECTOR; s++) {
		if ((d->dirty[s] && d->dirty[s] <= started) || sim_chance(500))
			medium_sync(d, s);
	}
}

static void medium_change(struct sim_disk *d, const struct export_io *io)
{
	if (io->op == RNBD_OP_WRITE)
		memcpy(d->now + io->offset, io->buf, io->len);
	else
		memset(d->now + io->offset, 0, io->len);
}

static bool only_reads(const struct export_io *io)
{
	return io->op == RNBD_OP_READ || io->op == RNBD_OP_EXTENTS;
}

/* A sector of zeroes is a hole. */
static void medium_extents(const struct sim_disk *d, const struct export_io *io)
{
	static const uint8_t zeroes[SECTOR];
	struct rnbd_extents_writer w;

	rnbd_extents_begin(&w, io->buf, io->room);
	for (uint64_t at = io->offset; at < io->offset + io->len; at += SECTOR) {
		bool hole = !memcmp(d->now + at, zeroes, SECTOR);

		if (!rnbd_extents_add(&w, SECTOR, hole ? RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO : 0))
			break;
	}
	rnbd_extents_end(&w);
}

static void sync_apply(struct op *op)
{
	if (!op->status && !op->left)
		op->status = export_sync_error(op->io->ex);
	if (!op->status)
		medium_flush(op->disk, op->started);
	else if (!op->left)
		export_sync_failed(op->io->ex, op->status);
}

/* True if @op may not be done, because another server has the lock. */
static bool op_is_fenced(const struct op *op)
{
	if (!op->number)
		return false;
	if (sim_share_fenced(op->disk->share, op->number))
		return true;
	if ((op->kind == RNBD_OP_FLUSH || !only_reads(op->io)) &&
	    !sim_share_owns(op->disk->share, op->number))
		sim_test_failed(__FILE__, __LINE__, "a server writes without the lock");
	return false;
}

static void op_apply(struct op *op)
{
	struct sim_disk *d = op->disk;
	const struct export_io *io = op->io;

	op->stage = OP_APPLIED;
	if (op_is_fenced(op)) {
		op->status = -ESHUTDOWN;
		return;
	}
	if (op->kind == RNBD_OP_FLUSH) {
		/* A disk that several servers have has no cache. */
		if (!op->number)
			sync_apply(op);
		return;
	}
	/* Behind the end of a file that was cut, which a READ meets; here a WRITE does, too. */
	if (!op->status && !range_ok(io->offset, io->len, d->size))
		op->status = -EIO;
	if (op->status)
		return;
	if (op->kind == RNBD_OP_READ)
		memcpy(io->buf, d->now + io->offset, io->len);
	else if (op->kind == RNBD_OP_EXTENTS)
		medium_extents(d, io);
	else
		medium_change(d, io);
	if (op->is_durable)
		memcpy(d->durable + io->offset, d->now + io->offset, io->len);
}

/* ---- operations ---- */

static void op_free(struct op *op)
{
	list_del(&op->link);
	if (op->left)
		free(op->own_io.buf);
	free(op);
}

static void op_done(struct sim_cqe *cqe)
{
	struct op *op = container_of(cqe, struct op, cqe);
	struct export_io *io = op->io;
	struct sim_disk *d = op->disk;
	int status = op->status;
	bool refused = op->number && status == -ESHUTDOWN;

	if (op->in_sync)
		export_sync_ended(op->in_sync);
	if (refused)
		sim_share_told(d->share, op->number);
	op_free(op);
	export_io_next(io, status);
	if (refused && d->refused)
		d->refused(io);
}

static void op_complete(struct op *op)
{
	struct sim_disk *d = op->disk;
	const struct export_io *io = op->io;

	op->stage = OP_COMPLETED;
	d->count++;
	if (!op->status && !only_reads(io) && op->kind != RNBD_OP_FLUSH) {
		for (uint64_t s = io->offset / SECTOR; s < (io->offset + io->len) / SECTOR; s++)
			d->dirty[s] = d->dirty[s] ? d->dirty[s] : d->count;
	}
	if (op->left)
		op_free(op);
	else
		sim_loop_complete(reactor_loop(op->reactor), &op->cqe);
}

static void op_hold(struct op *op)
{
	op->held = true;
	op->disk->nheld++;
}

static void op_event(struct sim_event *ev)
{
	struct op *op = container_of(ev, struct op, ev);
	struct sim_disk *d = op->disk;

	if (op->lingers && op->host->frozen && !op->left && op->stage == OP_WAITING) {
		sim_event_at(&op->ev, sim_now_us() + LINGER_US);
		return;
	}
	if (op->stage == OP_WAITING) {
		if (op->hold == SIM_HOLD_BEFORE) {
			op_hold(op);
			return;
		}
		op_apply(op);
		sim_event_at(&op->ev, sim_now_us() + sim_rand(d->jitter_us + 1));
		return;
	}
	if (op->hold == SIM_HOLD_AFTER)
		op_hold(op);
	else
		op_complete(op);
}

/* ---- sizes ---- */

static void ask_done(struct sim_cqe *cqe)
{
	struct ask *a = container_of(cqe, struct ask, cqe);
	struct ask copy = *a;

	free(a);
	copy.done(copy.ex, copy.size, copy.arg);
}

static void ask_answer(struct ask *a)
{
	list_del(&a->link);
	sim_loop_complete(reactor_loop(a->reactor), &a->cqe);
}

void sim_disk_hold_size(struct sim_disk *d)
{
	d->size_held = true;
}

void sim_disk_fail_size(struct sim_disk *d, int err)
{
	d->size_err = err;
}

static void release_asks(struct sim_disk *d)
{
	struct ask *a, *tmp;

	d->size_held = false;
	list_for_each_safe(a, tmp, &d->asks, link)
		ask_answer(a);
}

static bool sim_size(struct reactor *r, struct export *ex, int64_t *size,
		     void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	struct sim_disk *d = sim_disk_find(ex->path);
	struct ask *a;

	*size = d->size_err ? d->size_err : (int64_t)d->size;
	if (!d->size_held || sim_is_ghost(sim_host(), sim_epoch()))
		return true;
	a = calloc(1, sizeof(*a));
	assert(a);
	*a = (struct ask){ .size = *size, .reactor = r, .ex = ex, .done = done, .arg = arg,
			   .cqe.fn = ask_done };
	list_init(&a->cqe.link);
	list_add_tail(&d->asks, &a->link);
	return false;
}

void sim_disk_release(struct sim_disk *d)
{
	struct op *op;

	for (unsigned i = 0; i < NRULES; i++)
		d->rules[i].nhold = 0;
	list_for_each(op, &d->ops, link) {
		op->hold = SIM_HOLD_NOTHING;
		if (op->held)
			sim_event_at(&op->ev, sim_now_us());
		op->held = false;
	}
	d->nheld = 0;
	release_asks(d);
}

static struct sim_export *sim_export(const struct export *ex)
{
	return (struct sim_export *)container_of(ex, struct sim_export, ex);
}

static void sim_anew(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg)
{
	atomic_store(&ex->store->sync_error, 0);
	ex->store->reopen = EXPORT_REOPEN_DONE;
	done(arg);
}

static void op_end_for_ghost(struct op *op)
{
	sim_event_cancel(&op->ev);
	op->in_sync = NULL;
	op->stage = OP_COMPLETED;
	op->status = -EIO;
	sim_loop_complete(reactor_loop(op->reactor), &op->cqe);
}

/* @kind: of @io, or FLUSH for a sync. */
static struct op *op_create(struct export_io *io, enum rnbd_io_op kind)
{
	struct sim_disk *d = sim_disk_find(io->ex->path);
	struct rule *rule = rule_of(d, kind);
	struct op *op = calloc(1, sizeof(*op));

	assert(op);
	op->disk = d;
	op->io = io;
	op->kind = kind;
	op->reactor = io->reactor;
	op->host = sim_host();
	op->epoch = sim_epoch();
	op->number = sim_export(io->ex)->number;
	op->lingers = op->number && sim_chance(300);
	op->started = d->count;
	op->cqe.fn = op_done;
	list_init(&op->cqe.link);
	sim_event_init(&op->ev, op_event);
	if (rule->nhold) {
		rule->nhold--;
		op->hold = rule->hold;
	}
	if (rule->nfail && rule->nskip) {
		rule->nskip--;
	} else if (rule->nfail) {
		rule->nfail--;
		op->status = rule->err;
	}
	list_add_tail(&d->ops, &op->link);
	return op;
}

static void op_start(struct export_io *io, enum rnbd_io_op kind)
{
	struct sim_disk *d = sim_disk_find(io->ex->path);
	struct op *op;

	if (d->started)
		d->started(io);
	op = op_create(io, kind);
	if (sim_is_ghost(sim_host(), sim_epoch())) {
		op_end_for_ghost(op);
		return;
	}
	op->is_durable = kind != RNBD_OP_FLUSH && !only_reads(io) && io->ex->direct &&
			 (io->flags & RNBD_F_FUA);
	if (kind == RNBD_OP_FLUSH || op->is_durable)
		op->in_sync = export_sync_begun(io->ex);
	sim_event_at(&op->ev, sim_now_us() + d->delay_us + sim_rand(d->jitter_us + 1));
}

static void sim_work(struct export_io *io)
{
	assert(io->op != RNBD_OP_SECURE_ERASE &&
	       range_ok(io->offset, io->len, export_size(io->ex)));
	assert(io->offset % SECTOR == 0 && io->len % SECTOR == 0);
	sim_disk_find(io->ex->path)->prio = io->prio;
	io->need_sync = !io->ex->direct;
	op_start(io, io->op);
}

static void sim_sync(struct export_io *io)
{
	op_start(io, RNBD_OP_FLUSH);
}

/* What @op was to do to the disk, for nobody, with the data that it has now. */
static void op_leave(const struct op *op)
{
	struct op *left = calloc(1, sizeof(*left));
	const struct export_io *io = op->io;

	assert(left);
	*left = *op;
	left->left = true;
	left->in_sync = NULL;
	left->own_io = *io;
	left->own_io.buf = op->kind == RNBD_OP_WRITE ? malloc(io->len) : NULL;
	if (left->own_io.buf)
		memcpy(left->own_io.buf, io->buf, io->len);
	left->io = &left->own_io;
	sim_event_init(&left->ev, op_event);
	if (!left->held)
		sim_event_at(&left->ev, op->ev.at_us);
	list_add_tail(&op->disk->ops, &left->link);
}

void sim_disk_process_killed(struct sim_disk *d, const struct sim_host *host)
{
	struct op *op, *tmp;
	struct list ops = LIST_INIT(ops);

	release_asks(d);
	list_splice_tail(&ops, &d->ops);
	list_for_each_safe(op, tmp, &ops, link) {
		list_del(&op->link);
		list_add_tail(&d->ops, &op->link);
		if (op->stage == OP_COMPLETED || op->left || op->host != host)
			continue;
		if (op->kind == RNBD_OP_FLUSH || !only_reads(op->io))
			op_leave(op);
		else
			d->nheld -= op->held;
		op->held = false;
		op_end_for_ghost(op);
	}
}

bool sim_disk_left(const struct sim_disk *d)
{
	const struct op *op;

	list_for_each(op, &d->ops, link) {
		if (op->left)
			return true;
	}
	return false;
}

static void op_drop(struct op *op)
{
	op->disk->nheld -= op->held;
	sim_event_cancel(&op->ev);
	op_free(op);
}

/* The power is gone before they are done, or not quite. */
static void drop_left(struct sim_disk *d)
{
	struct op *op, *tmp;

	list_for_each_safe(op, tmp, &d->ops, link) {
		if (!op->left)
			continue;
		if (op->stage == OP_WAITING && sim_chance(500))
			op_apply(op);
		op_drop(op);
	}
}

void sim_disk_host_died(struct sim_disk *d, const struct sim_host *host)
{
	struct op *op, *tmp;

	sim_disk_process_killed(d, host);
	list_for_each_safe(op, tmp, &d->ops, link) {
		if (op->left && op->host == host && (op->lingers || sim_chance(500)))
			op_drop(op);
	}
}

void sim_disk_power_cut(struct sim_disk *d, const struct sim_host *host)
{
	sim_disk_process_killed(d, host);
	drop_left(d);
	for (uint64_t s = 0; s < d->size / SECTOR; s++) {
		if (sim_chance(500))
			memcpy(d->now + s * SECTOR, d->durable + s * SECTOR, SECTOR);
		else
			medium_sync(d, s);
		d->dirty[s] = 0;
	}
}

/* ---- the driver ---- */

static struct export *sim_create(void)
{
	struct sim_export *s = calloc(1, sizeof(*s));

	return s ? &s->ex : NULL;
}

static int sim_check(const struct export_spec *spec, char *err, size_t errlen)
{
	return 0;
}

static int sim_open(struct export *ex, char *err, size_t errlen)
{
	struct sim_disk *d = sim_disk_find(ex->path);

	assert(d);
	if (step_fails(d, SIM_STEP_OPEN)) {
		sim_export(ex)->open = OPEN_IS_HALF;
		return -EIO;
	}
	ex->kind = ex->kind_text = "disk";
	ex->id.len = (uint8_t)strlen(ex->path);
	memcpy(ex->id.bytes, ex->path, ex->id.len);
	ex->ident = fnv1a(FNV1A_INIT, ex->path, strlen(ex->path));
	atomic_store(&ex->size, d->size);
	ex->geometry = (struct rnbd_dev_info){
		.max_hw_sectors = SIM_MAX_IO / SECTOR,
		.max_write_zeroes_sectors = (uint32_t)(d->size / SECTOR),
		.max_discard_sectors = (uint32_t)(d->size / SECTOR),
		.discard_granularity = SECTOR,
		.physical_block_size = SECTOR,
		.logical_block_size = SECTOR,
		.max_segments = 128,
		.fua = true,
		.writeback = true,
	};
	if (ex->spec.shared)
		sim_export(ex)->number = sim_share_join(d->share);
	return 0;
}

static void sim_let_go(struct export *ex)
{
	sim_export(ex)->open = OPEN_IS_OVER;
}

static void sim_close(struct export *ex)
{
	struct sim_export *s = sim_export(ex);

	assert(s->open == OPEN_IS_OVER);
	if (s->number)
		sim_share_leave(sim_disk_find(ex->path)->share, s->number);
	free(s);
}

static int sim_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
		    size_t len)
{
	return sim_share_take(sim_disk_find(ex->path)->share, sim_export(ex)->number, may_break_ms,
			      since_ms, &ex->all->stopping, why, len);
}

static int sim_yield(struct export *ex)
{
	return sim_share_yield(sim_disk_find(ex->path)->share, sim_export(ex)->number);
}

static int sim_renew(struct export *ex, char *why, size_t len)
{
	struct sim_disk *d = sim_disk_find(ex->path);

	if (d->nrenew_fails) {
		d->nrenew_fails--;
		return -EIO;
	}
	sim_share_leave(d->share, sim_export(ex)->number);
	sim_export(ex)->number = sim_share_join(d->share);
	return 0;
}

static const struct store_driver sim_driver = {
	.create = sim_create,
	.check = sim_check,
	.open = sim_open,
	.take = sim_take,
	.yield = sim_yield,
	.renew = sim_renew,
	.let_go = sim_let_go,
	.close = sim_close,
};

static int sim_attach(struct export_slot *slot, char *err, size_t errlen)
{
	struct sim_disk *d = sim_disk_find(slot->ex->path);

	return slot->ring->index == d->fails_ring && step_fails(d, SIM_STEP_ATTACH) ? -EIO : 0;
}

static bool sim_takes_at_once(const struct export_io *io)
{
	return false;
}

static const struct store_io_ops sim_io_ops = {
	.attach = sim_attach,
	.rw = sim_work,
	.zero = sim_work,
	.extents = sim_work,
	.sync = sim_sync,
	.takes_at_once = sim_takes_at_once,
	.reopen = sim_anew,
	.size = sim_size,
};

const struct store_driver *const store_drivers[] = { &sim_driver };
const struct store_io_ops *const store_drivers_io[] = { &sim_io_ops };
