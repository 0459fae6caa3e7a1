/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the requests in flight of nbd_work_many(). */
#include <assert.h>
#include <stdlib.h>

#include "nbd-work.h"
#include "sim-fiber.h"
#include "sim-test.h"
#include "util.h"

/* ---- one by one ---- */

static const struct {
	enum nbd_cmd cmd;
	unsigned percent;
} mix[] = {
	{ NBD_CMD_WRITE, 40 }, { NBD_CMD_WRITE_ZEROES, 5 }, { NBD_CMD_TRIM, 5 },
	{ NBD_CMD_READ, 30 }, { NBD_CMD_BLOCK_STATUS, 8 }, { NBD_CMD_FLUSH, 12 },
};

static enum nbd_cmd random_cmd(void)
{
	unsigned what = sim_rand(100), i = 0;

	while (what >= mix[i].percent)
		what -= mix[i++].percent;
	return mix[i].cmd;
}

static uint16_t random_flags(enum nbd_cmd cmd)
{
	bool changes = cmd == NBD_CMD_WRITE || cmd == NBD_CMD_WRITE_ZEROES || cmd == NBD_CMD_TRIM;
	uint16_t flags = changes && sim_chance(150) ? NBD_CMD_FLAG_FUA : 0;

	if (cmd == NBD_CMD_WRITE_ZEROES && sim_chance(500))
		flags |= NBD_CMD_FLAG_NO_HOLE;
	if (cmd == NBD_CMD_BLOCK_STATUS && sim_chance(100))
		flags |= NBD_CMD_FLAG_REQ_ONE;
	return flags;
}

static unsigned random_len(const struct nbd_work *work)
{
	unsigned most = sim_chance(100) ? 8 : work->most;

	return MIN(work->least, most) + sim_rand(most + 1 - MIN(work->least, most));
}

bool nbd_work_goes_on(const struct sim_nbd *nbd)
{
	return nbd->state == SIM_NBD_SERVED && !nbd->disc;
}

static bool pause_over(void *arg)
{
	return sim_now_us() >= *(uint64_t *)arg;
}

void nbd_work_rest(uint32_t most_us)
{
	uint64_t until_us = sim_now_us() + sim_rand(most_us);

	sim_fiber_wait(pause_over, &until_us);
}

/* Begin @op.  False: another write is under way there. */
static bool op_start(struct nbd_op *op, struct nbd_user *by, enum nbd_cmd cmd, unsigned sector,
		     unsigned n)
{
	if (cmd == NBD_CMD_BLOCK_STATUS && !by->nbd->conf.status)
		cmd = NBD_CMD_READ;
	if (cmd == NBD_CMD_FLUSH)
		n = sector = 0;
	return nbd_op_start(op, by, cmd, random_flags(cmd), sector, n);
}

void nbd_work_one_by_one(void *arg)
{
	struct nbd_work *work = arg;
	struct nbd_op op;

	while (work->ops-- && nbd_work_goes_on(work->by->nbd)) {
		enum nbd_cmd cmd = random_cmd();
		unsigned n = random_len(work), sector = sim_rand(work->area - n);

		if (op_start(&op, work->by, cmd, sector, n))
			nbd_op_end(&op);
		if (sim_chance(300))
			nbd_work_rest(5000);
	}
}

/* ---- many ---- */

/* Requests of a kind, one behind the other. */
struct kind {
	unsigned permille;
	unsigned least, most;		/* sectors of a request */
	unsigned longest;		/* requests of a run */
	enum { RUN_MIXED, RUN_WRITES } what;	/* WRITES: of one length */
};

static const struct kind kinds[] = {
	{ 500, 1, 4, 100, RUN_MIXED },
	{ 50, 16, 56, 10, RUN_MIXED },		/* data in a block, with others */
	{ 250, 65, 96, 12, RUN_WRITES },	/* memory of their own, and ahead */
	{ 100, 257, 512, 4, RUN_WRITES },	/* the same in several parts */
	{ 100, 257, 2048, 2, RUN_MIXED },
};

struct many {
	struct nbd_work *work;
	struct nbd_op ops[NBD_WORK_DEPTH];
	struct nbd_op *free[NBD_WORK_DEPTH];
	unsigned nfree;
	/* the run */
	const struct kind *kind;
	unsigned left, n;
	unsigned sector;		/* behind the last WRITE */
};

static void run_begin(struct many *m)
{
	unsigned what = sim_rand(1000), i = 0;

	while (what >= kinds[i].permille)
		what -= kinds[i++].permille;
	m->kind = &kinds[i];
	m->left = 1 + sim_rand(m->kind->longest);
	m->n = m->kind->least + sim_rand(m->kind->most + 1 - m->kind->least);
}

static void many_end(struct many *m)
{
	struct nbd_op *op = container_of(sim_nbd_first(m->work->by->nbd), struct nbd_op, req);

	nbd_op_end(op);
	m->free[m->nfree++] = op;
}

/* Begin the next request of the run.  Where another write is under way, a READ comes. */
static void many_start(struct many *m)
{
	const struct nbd_work *work = m->work;
	enum nbd_cmd cmd = NBD_CMD_WRITE;
	struct nbd_op *op = m->free[--m->nfree];

	if (!m->left)
		run_begin(m);
	m->left--;
	if (m->kind->what == RUN_MIXED) {
		cmd = random_cmd();
		/* A FLUSH costs the model as much as the disk is large. */
		if (cmd == NBD_CMD_FLUSH && sim_chance(800))
			cmd = NBD_CMD_READ;
		m->n = m->kind->least + sim_rand(m->kind->most + 1 - m->kind->least);
	}
	if (m->sector + m->n > work->area || sim_chance(50))
		m->sector = sim_rand(work->area - m->n);
	if (!op_start(op, work->by, cmd, m->sector, m->n))
		CHECK(op_start(op, work->by, NBD_CMD_READ, m->sector, m->n));
	m->sector += m->n;
}

void nbd_work_many(void *arg)
{
	struct nbd_work *work = arg;
	const struct sim_nbd *nbd = work->by->nbd;
	struct many *m = calloc(1, sizeof(*m));

	assert(m && work->depth <= NBD_WORK_DEPTH);
	m->work = work;
	for (unsigned i = 0; i < work->depth; i++)
		m->free[m->nfree++] = &m->ops[i];
	for (; work->ops && nbd_work_goes_on(nbd); work->ops--) {
		many_start(m);
		if (!m->nfree)
			many_end(m);
	}
	while (m->nfree < work->depth)
		many_end(m);
	free(m);
}
