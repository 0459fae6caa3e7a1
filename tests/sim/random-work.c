/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but what is going on: a worker has one operation at a time, and tells the history of
 * it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev-req.h"
#include "dev.h"
#include "random-work.h"

_Noreturn void random_work_failed(const char *what)
{
	sim_test_failed("history", 0, what);
}

/* Requests are for the eye only, when a seed is replayed.  @status 1: it begins. */
static void tell(const struct random_worker *wk, const char *what, unsigned sector, unsigned n,
		 bool fua, int status)
{
	if (getenv("SIM_TRACE"))
		world_note(wk->w, "worker %u: %s %u+%u%s: %s", wk->number, what, sector, n,
			   fua ? " fua" : "",
			   status == 1 ? "begins" : status ? strerror(-status) : "ok");
}

static void check_status(const struct random_worker *wk, int status)
{
	if (status && !(wk->lenient && status == -EIO)) {
		world_note(wk->w, "status %d", status);
		random_work_failed("a request failed for no reason");
	}
}

static int carry_out(struct random_worker *wk, struct random_io io)
{
	uint64_t off = io.sector * 512ull;
	uint32_t len = io.n * 512;

	io.buf = wk->buf;
	if (wk->carry)
		return wk->carry(wk, &io);
	switch (io.op) {
	case RNBD_OP_READ:
		return dev_call_read(wk->handle, io.buf, len, off);
	case RNBD_OP_WRITE:
		return dev_call_write(wk->handle, io.buf, len, off, io.fua);
	case RNBD_OP_FLUSH:
		return dev_call_flush(wk->handle);
	case RNBD_OP_DISCARD:
		return dev_call_discard(wk->handle, len, off, io.fua);
	default:
		return dev_call_zero(wk->handle, len, off, io.unmap, io.fua);
	}
}

static void do_write(struct random_worker *wk, unsigned sector, unsigned n)
{
	bool fua = sim_chance(150), zero = sim_chance(100), discard = zero && sim_chance(500);
	struct history_op *op;
	bool tells;
	int status;

	if (!history_may_write(wk->h, sector, n))
		return;
	op = history_write(wk->h, sector, n, zero, wk->buf);
	history_by(op, wk->user);
	if (discard && fua)
		history_will_flush(op);
	if (!discard && !fua)
		history_needs_flush(op);
	tell(wk, zero ? "zero" : "write", sector, n, fua, 1);
	status = carry_out(wk, (struct random_io){
		.op = discard ? RNBD_OP_DISCARD : zero ? RNBD_OP_WRITE_ZEROES : RNBD_OP_WRITE,
		.sector = sector, .n = n, .fua = fua,
		.unmap = zero && !discard && sim_chance(500) });
	tell(wk, zero ? "zero" : "write", sector, n, fua, status);
	/* FUA of a discard is a FLUSH behind it, which leaves it to the next one to tell. */
	tells = status == -EIO && fua && (discard ? history_may_tell(op) : history_tells(op));
	if (zero && fua)
		history_maybe_flushed(wk->h);
	if (discard)
		history_discard_end(op, status);
	else
		history_write_end(op, status, fua);
	if (!tells)
		check_status(wk, status);
}

static void do_read(struct random_worker *wk, unsigned sector, unsigned n)
{
	struct history_op *op = history_read(wk->h, sector, n);
	int status = carry_out(wk, (struct random_io){ .op = RNBD_OP_READ, .sector = sector,
						      .n = n });
	const char *why = history_read_end(op, status, wk->buf);

	tell(wk, "read", sector, n, false, status);
	if (why)
		random_work_failed(why);
	check_status(wk, status);
}

struct holes {
	uint64_t off;
	bool sector[RANDOM_MAX_SECTORS];	/* from off on */
};

static int take_extent(void *arg, uint64_t off, const struct rnbd_extent *e)
{
	struct holes *holes = arg;

	CHECK(off >= holes->off && off + e->len <= holes->off + sizeof(holes->sector) * 512);
	for (uint64_t at = off; e->what && at < off + e->len; at += 512)
		holes->sector[(at - holes->off) / 512] = true;
	return 0;
}

/* Nothing that is there is called a hole. */
static void do_extents(struct random_worker *wk, unsigned sector, unsigned n)
{
	struct history_op *op = history_read(wk->h, sector, n);
	struct holes holes = { .off = sector * 512ull };
	int status = dev_extents(wk->handle, n * 512, holes.off, sim_chance(100), take_extent,
				 &holes);
	const char *why = history_extents_end(op, status, holes.sector);

	tell(wk, "extents", sector, n, false, status);
	if (why)
		random_work_failed(why);
	check_status(wk, status);
}

static void do_flush(struct random_worker *wk)
{
	struct history_op *op = history_flush(wk->h);
	const char *why;
	int status;

	history_by(op, wk->user);
	tell(wk, "flush", 0, 0, false, 1);
	status = carry_out(wk, (struct random_io){ .op = RNBD_OP_FLUSH });
	tell(wk, "flush", 0, 0, false, status);
	if (wk->lenient && status) {
		history_flush_failed(op);
		return;
	}
	why = history_flush_end(op, status);
	if (why)
		random_work_failed(why);
	/* The user may hear of a write's end behind the begin of a FLUSH that has covered it. */
	if (wk->carry)
		history_maybe_flushed(wk->h);
}

static bool pause_over(void *arg)
{
	return sim_now_us() >= *(uint64_t *)arg;
}

void random_work_pause(uint64_t us)
{
	uint64_t until_us = sim_now_us() + us;

	sim_fiber_wait(pause_over, &until_us);
}

void random_work(void *arg)
{
	struct random_worker *wk = arg;

	while (wk->ops--) {
		unsigned n = 1 + sim_rand(sim_chance(200) ? RANDOM_MAX_SECTORS : 8);
		unsigned sector = sim_rand(RANDOM_AREA - n);
		unsigned what = sim_rand(100);
		uint64_t us = sim_rand(wk->pause_us);

		if (what < 50)
			do_write(wk, sector, n);
		else if (what < 80)
			do_read(wk, sector, n);
		else if (what < 90 && !wk->carry)
			do_extents(wk, sector, n);
		else if (what < 90)
			do_read(wk, sector, n);
		else
			do_flush(wk);
		if (sim_chance(300))
			random_work_pause(us);
	}
}
