/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of requests in flight.  The end of a stream leaves requests in doubt.  A request
 * that was sent whole may have been done, be done now or not at all.  A request that was not sent
 * whole is never done, not even in part. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbd-op.h"
#include "sim-fiber.h"
#include "sim-test.h"
#include "trace.h"
#include "world-gate.h"

#define SECTOR RNBD_SECTOR_SIZE

static _Noreturn void judge_fails(const char *why)
{
	sim_test_failed("history", 0, why);
}

static bool changes(enum nbd_cmd cmd)
{
	return cmd == NBD_CMD_WRITE || cmd == NBD_CMD_WRITE_ZEROES || cmd == NBD_CMD_TRIM;
}

static bool writes(const struct nbd_op *o)
{
	return changes(o->req.cmd);
}

static bool has_fua(const struct nbd_op *o)
{
	return o->req.flags & NBD_CMD_FLAG_FUA;
}

/* Print the request for a reader of a replayed seed. */
static void op_tell(const struct nbd_op *o, const char *what)
{
	static const char *const names[] = {
		[NBD_CMD_READ] = "read", [NBD_CMD_WRITE] = "write", [NBD_CMD_FLUSH] = "flush",
		[NBD_CMD_TRIM] = "trim", [NBD_CMD_WRITE_ZEROES] = "zero",
		[NBD_CMD_BLOCK_STATUS] = "status",
	};

	char who[16], text[96];

	if (!getenv("SIM_TRACE"))
		return;
	snprintf(who, sizeof(who), "nbd %u", o->by->user);
	snprintf(text, sizeof(text), "%s %u+%u%s: %s", names[o->req.cmd], o->sector, o->n,
		 has_fua(o) ? " fua" : "", what);
	trace_line(who, text);
}

/* ---- begin ---- */

static struct history_op *history_begin(struct nbd_op *o)
{
	struct history *h = o->by->h;

	switch (o->req.cmd) {
	case NBD_CMD_READ:
	case NBD_CMD_BLOCK_STATUS:
		return history_read(h, o->sector, o->n);
	case NBD_CMD_FLUSH:
		return history_flush(h);
	default:
		return history_write(h, o->sector, o->n, o->req.cmd != NBD_CMD_WRITE, o->buf);
	}
}

/* No data is called a hole. */
static void take_extent(struct sim_nbd_req *req, uint64_t off, uint64_t len, uint64_t flags)
{
	struct nbd_op *o = container_of(req, struct nbd_op, req);

	for (uint64_t at = off; flags && at < off + len; at += SECTOR)
		o->hole[at / SECTOR - o->sector] = true;
}

/* A TRIM without a whole block changes nothing, and its FUA is no FLUSH. */
static bool trims_block(const struct nbd_op *o)
{
	unsigned block = o->by->block;

	return align_up(o->sector, block) + block <= o->sector + o->n;
}

bool nbd_op_start(struct nbd_op *o, struct nbd_user *by, enum nbd_cmd cmd, uint16_t flags,
		  unsigned sector, unsigned n)
{
	o->by = by;
	o->sector = sector;
	o->n = n;
	if (changes(cmd) && !history_may_write(by->h, sector, n))
		return false;
	o->buf = malloc(n * SECTOR + 1);
	o->hole = calloc(n + 1, sizeof(*o->hole));
	assert(o->buf && o->hole);
	o->req = (struct sim_nbd_req){
		.cmd = cmd, .flags = flags, .buf = o->buf, .off = sector * (uint64_t)SECTOR,
		.len = n * SECTOR, .extent = take_extent,
	};
	/* A READ that brings nothing must not look like one that did. */
	memset(o->buf, 0xEE, n * SECTOR);
	o->op = history_begin(o);
	history_by(o->op, by->user);
	if (cmd == NBD_CMD_FLUSH)
		history_queued(o->op);
	if (cmd == NBD_CMD_TRIM && has_fua(o) && (trims_block(o) || by->flushes_fua))
		history_will_flush(o->op);
	if (writes(o) && cmd != NBD_CMD_TRIM && (!has_fua(o) || by->flushes_fua))
		history_needs_flush(o->op);
	op_tell(o, "begins");
	sim_nbd_start(by->nbd, &o->req);
	return true;
}

/* ---- end ---- */

static void check_status(const struct nbd_op *o, int status)
{
	static char why[96];

	if (!status || (o->by->lenient && status == -EIO))
		return;
	snprintf(why, sizeof(why), "request %u failed for no reason: %s", o->req.cmd,
		 strerror(-status));
	judge_fails(why);
}

/* FUA that is a FLUSH behind the write tells as a FLUSH does.  On a server with FUA, the FUA of a
 * discard fails and leaves the telling to the next FLUSH. */
static bool fua_tells(struct nbd_op *o)
{
	if (o->req.cmd == NBD_CMD_TRIM && !o->by->flushes_fua)
		return history_may_tell(o->op);
	return history_tells(o->op);
}

static void write_ends(struct nbd_op *o, int status)
{
	bool fua = has_fua(o), tells = status == -EIO && fua && fua_tells(o);

	if (fua && (o->by->flushes_fua || o->req.cmd != NBD_CMD_WRITE))
		history_maybe_flushed_by(o->op);
	if (o->req.cmd == NBD_CMD_TRIM)
		history_discard_end(o->op, status);
	else
		history_write_end(o->op, status, fua);
	if (!tells)
		check_status(o, status);
}

/* Until the gate has forgotten the connection, the write may come over a write to the same sectors
 * on another connection: no protocol orders these two. */
static void write_in_doubt(struct nbd_op *o)
{
	if (o->req.fate == SIM_NBD_UNSENT) {
		history_write_never(o->op);
		return;
	}
	sim_fiber_wait(world_gate_forgot, o->by->nbd);
	if (has_fua(o))
		history_maybe_flushed_by(o->op);
	if (o->req.cmd == NBD_CMD_TRIM)
		history_discard_end(o->op, -EIO);
	else
		history_write_end(o->op, -EIO, false);
}

static const char *read_ends(struct nbd_op *o, int status)
{
	if (o->req.cmd == NBD_CMD_READ)
		return history_read_end(o->op, status, o->buf);
	return history_extents_end(o->op, status, o->hole);
}

static void flush_ends(struct nbd_op *o, int status)
{
	const char *why;

	if (o->by->lenient && status) {
		history_flush_failed(o->op);
		return;
	}
	why = history_flush_end(o->op, status);
	if (why)
		judge_fails(why);
}

static void op_in_doubt(struct nbd_op *o)
{
	if (writes(o))
		write_in_doubt(o);
	else if (o->req.cmd == NBD_CMD_FLUSH)
		history_flush_in_doubt(o->op);
	else
		read_ends(o, -EIO);
}

static void op_judge(struct nbd_op *o)
{
	int status = o->req.status;
	const char *why;

	if (o->req.fate != SIM_NBD_ANSWERED) {
		op_tell(o, o->req.fate == SIM_NBD_LOST ? "lost" : "not sent");
		op_in_doubt(o);
		return;
	}
	op_tell(o, status ? strerror(-status) : "ok");
	if (writes(o)) {
		write_ends(o, status);
	} else if (o->req.cmd == NBD_CMD_FLUSH) {
		flush_ends(o, status);
	} else {
		why = read_ends(o, status);
		if (why)
			judge_fails(why);
		check_status(o, status);
	}
}

void nbd_op_end(struct nbd_op *o)
{
	sim_nbd_wait(&o->req);
	op_judge(o);
	free(o->buf);
	free(o->hole);
	o->buf = NULL;
	o->hole = NULL;
}
