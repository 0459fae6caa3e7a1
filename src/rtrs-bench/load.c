/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the IOs and the memory of these.  The loop's thread: an IO with news is put on a list, and
 * stepped after the handlers that brought the news.  In the place of an IO that ends the next
 * begins at once.  The first error ends the load; differing blocks are counted and logged. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"
#include "clock.h"
#include "log.h"
#include "loop.h"
#include "rnbd-proto.h"
#include "wire-int.h"

#define BUSY 0x80000000u		/* load.written: an IO of the block is in flight */
#define TOLD_MAX 10			/* differing blocks to log */
#define ALIGN 4096
#define LOOK_MS 1000

struct load_io {
	struct dev_io op;
	struct load *load;
	struct list ready;
	uint8_t *buf;
	uint64_t block;
	unsigned dir;
	uint32_t seq;			/* verify: of a write */
};

/* ---- verified blocks: a head, and words of a generator, whose first state follows from it ---- */

#define MAGIC UINT64_C(0x68636e6562737472)	/* "rtsbench" */

struct head {
	le64 magic, off, writer, seq;
};

static uint64_t first_state(uint64_t off, const struct verify_id *id)
{
	uint64_t state = off;

	state = random_next(&state) ^ id->writer;
	return random_next(&state) ^ id->seq;
}

/* Fill @buf, a block of @len bytes for @off, with the data of write @id. */
static void verify_fill(void *buf, size_t len, uint64_t off, const struct verify_id *id)
{
	struct head head = { le64_put(MAGIC), le64_put(off), le64_put(id->writer),
			     le64_put(id->seq) };
	uint64_t state = first_state(off, id);

	memcpy(buf, &head, sizeof(head));
	for (size_t at = sizeof(head); at < len; at += sizeof(uint64_t)) {
		le64 word = le64_put(random_next(&state));

		memcpy((char *)buf + at, &word, sizeof(word));
	}
}

/* Check that @buf is a block of @off, by write @id, or, if @id is NULL, by any write.  0, or
 * -EBADMSG with @why. */
static int verify_check(const void *buf, size_t len, uint64_t off, const struct verify_id *id,
			char *why, size_t whylen)
{
	struct verify_id is;
	struct head head;
	uint64_t state;

	memcpy(&head, buf, sizeof(head));
	is = (struct verify_id){ le64_get(head.writer), le64_get(head.seq) };
	if (le64_get(head.magic) != MAGIC) {
		snprintf(why, whylen, "no block that was written with --verify");
		return -EBADMSG;
	}
	if (le64_get(head.off) != off) {
		snprintf(why, whylen, "the block of offset %" PRIu64, le64_get(head.off));
		return -EBADMSG;
	}
	if (id && (id->writer != is.writer || id->seq != is.seq)) {
		snprintf(why, whylen, "write %" PRIu64 " of writer %016" PRIx64
			 " instead of write %" PRIu64
			 " of writer %016" PRIx64, is.seq, is.writer, id->seq, id->writer);
		return -EBADMSG;
	}
	state = first_state(off, &is);
	for (size_t at = sizeof(head); at < len; at += sizeof(uint64_t)) {
		le64 word = le64_put(random_next(&state));

		if (memcmp((const char *)buf + at, &word, sizeof(word))) {
			snprintf(why, whylen, "other bytes from byte %zu of the block on", at);
			return -EBADMSG;
		}
	}
	return 0;
}

/* ---- which block ---- */

static uint64_t pick_block(struct load *l)
{
	uint64_t block = l->conf.random ? random_next(&l->random) % l->nblocks : l->next;

	/* IOs in flight together have no order, so a block has a single IO at a time.  The load has
	 * more blocks than IOs. */
	while (l->written && (l->written[block] & BUSY))
		block = (block + 1) % l->nblocks;
	if (!l->conf.random)
		l->next = (block + 1) % l->nblocks;
	return block;
}

static unsigned pick_dir(struct load *l)
{
	if (l->conf.read_percent == 0 || l->conf.read_percent == 100)
		return l->conf.read_percent ? LOAD_READ : LOAD_WRITE;
	return random_next(&l->random) % 100 < l->conf.read_percent ? LOAD_READ : LOAD_WRITE;
}

/* Find the next block written by this run, from l->next on; false: none is left. */
static bool next_written(struct load *l, uint64_t *block)
{
	while (l->next < l->nblocks && !l->written[l->next])
		l->next++;
	*block = l->next++;
	return *block < l->nblocks;
}

/* ---- an IO ---- */

static uint64_t io_off(const struct load_io *io)
{
	return io->load->conf.off + io->block * io->load->conf.block;
}

/* The function of the waiter: only schedules a step. */
static void io_news(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct load_io *io = container_of(container_of(op, struct dev_io, clt), struct load_io, op);

	if (list_empty(&io->ready))
		list_add_tail(&io->load->ready, &io->ready);
	loop_defer(io->load->loop, &io->load->step);
}

/* Choose direction and block of @io.  False: nothing is left to do. */
static bool io_choose(struct load_io *io)
{
	struct load *l = io->load;

	switch (l->phase) {
	case LOAD_RUNS:
		if (l->conf.ios && l->begun == l->conf.ios)
			return false;
		io->dir = pick_dir(l);
		io->block = pick_block(l);
		return true;
	case LOAD_READS_BACK:
		io->dir = LOAD_READ;
		return next_written(l, &io->block);
	case LOAD_ENDS:
	case LOAD_ENDED:
		break;
	}
	return false;
}

static bool io_begin(struct load_io *io, uint64_t now_ns)
{
	struct load *l = io->load;
	uint32_t flags = RNBD_F_SYNC;

	if (!io_choose(io))
		return false;
	l->begun++;
	l->inflight++;
	if (io->dir == LOAD_WRITE) {
		flags = l->conf.fua ? RNBD_F_FUA : 0;
		io->seq = (uint32_t)l->begun & ~BUSY;
	}
	if (l->written) {
		l->written[io->block] |= BUSY;
		if (io->dir == LOAD_WRITE)
			verify_fill(io->buf, l->conf.block, io_off(io),
				    &(struct verify_id){ .writer = l->id.writer, .seq = io->seq });
	}
	io->op.began_ns = now_ns;
	dev_io_start(&io->op, l->h, io->dir == LOAD_READ ? RNBD_OP_READ : RNBD_OP_WRITE, flags,
		     io->buf, l->conf.block, io_off(io), io_news);
	return true;
}

static void io_verify(struct load_io *io)
{
	struct load *l = io->load;
	struct verify_id id = { .writer = l->id.writer, .seq = l->written[io->block] };
	char why[160];

	/* Blocks that a mixed load has not written yet may have any data. */
	if (!id.seq && l->conf.read_percent != 100)
		return;
	l->verified++;
	if (verify_check(io->buf, l->conf.block, io_off(io), id.seq ? &id : NULL, why,
			 sizeof(why)) == 0)
		return;
	if (l->differing++ < TOLD_MAX)
		log_err(dev_name(l->h->dev), "verify: block at offset %" PRIu64 ": %s", io_off(io),
			why);
}

static void io_end(struct load_io *io, uint64_t now_ns)
{
	struct load *l = io->load;
	int r = dev_io_end(&io->op);

	list_del(&io->ready);
	l->inflight--;
	if (l->written)
		l->written[io->block] &= ~BUSY;
	if (r < 0) {
		if (!l->status)
			snprintf(l->error, sizeof(l->error), "%s of %" PRIu32 " bytes at offset %"
				 PRIu64 ": %s", io->dir == LOAD_READ ? "read" : "write",
				 l->conf.block, io_off(io), strerror(-r));
		l->status = l->status ? l->status : r;
		l->phase = LOAD_ENDS;
		return;
	}
	if (l->phase != LOAD_READS_BACK) {
		l->side[io->dir].ios++;
		lat_count(&l->side[io->dir].lat, now_ns - io->op.began_ns);
	}
	if (!l->written)
		return;
	if (io->dir == LOAD_WRITE)
		l->written[io->block] = io->seq;
	else
		io_verify(io);
}

/* Step @io; if @io ends, begin the next IO in the same place. */
static void io_step(struct load_io *io)
{
	while (clt_op_step(&io->op.clt)) {
		uint64_t now_ns = clock_measure_ns();

		io_end(io, now_ns);
		if (!io_begin(io, now_ns))
			break;
	}
}

/* ---- the whole ---- */

static void begin_all(struct load *l)
{
	uint64_t now_ns = clock_measure_ns();

	for (unsigned i = 0; i < l->conf.depth; i++) {
		if (io_begin(&l->ios[i], now_ns))
			io_step(&l->ios[i]);
	}
}

/* Tell load_run(), which waits. */
static void load_tell(struct load *l)
{
	struct loop_call *hearer = l->hearer;

	l->hearer = NULL;
	hearer->rc = l->phase == LOAD_ENDED;
	loop_call_end(hearer);
}

static void time_to_look(struct loop_timer *timer)
{
	struct load *l = container_of(timer, struct load, look_timer);

	/* A terminal may block load_run(): the next look then has the time in between, too. */
	if (l->hearer) {
		lat_look(&l->look_now, &l->back, l, clock_measure_ns());
		load_tell(l);
	}
	loop_timer_set(l->loop, timer, clock_now_ms() + LOOK_MS);
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Nothing is in flight: the next phase, or the end. */
static void next_phase(struct load *l)
{
	bool wrote = l->side[LOAD_WRITE].ios > 0, ran = !l->elapsed_ns;

	loop_timer_cancel(&l->timer);
	if (ran) {
		l->elapsed_ns = clock_measure_ns() - l->began_ns;
		l->cpu_ns = cpu_ns() - l->began_cpu_ns;
	}
	if (ran && l->written && wrote && !l->status) {
		l->phase = LOAD_READS_BACK;
		l->next = 0;
		begin_all(l);
		if (l->inflight)
			return;
	}
	l->phase = LOAD_ENDED;
	loop_timer_cancel(&l->look_timer);
	if (l->hearer)
		load_tell(l);
}

static void step_all(struct loop_task *task)
{
	struct load *l = container_of(task, struct load, step);
	struct load_io *io;

	while ((io = list_pop_entry(&l->ready, struct load_io, ready)))
		io_step(io);
	if (!l->inflight && l->phase != LOAD_ENDED)
		next_phase(l);
}

static void time_is_over(struct loop_timer *timer)
{
	struct load *l = container_of(timer, struct load, timer);

	if (l->phase == LOAD_RUNS)
		l->phase = LOAD_ENDS;
}

static void load_stop_msg(struct loop_msg *msg)
{
	struct load *l = container_of(msg, struct load, stop_msg);

	if (l->phase != LOAD_ENDED)
		l->phase = LOAD_ENDS;
}

static void load_start_call(struct loop_call *call)
{
	struct load *l = call->arg;

	if (l->conf.runtime_s)
		loop_timer_set(l->loop, &l->timer, clock_now_ms() + l->conf.runtime_s * 1000);
	if (l->look)
		loop_timer_set(l->loop, &l->look_timer, clock_now_ms() + LOOK_MS);
	l->began_ns = clock_measure_ns();
	l->began_cpu_ns = cpu_ns();
	begin_all(l);
	loop_defer(l->loop, &l->step);
	loop_call_end(call);
}

/* Wait for the next look, or, with rc 1, for the end. */
static void load_hear_call(struct loop_call *call)
{
	struct load *l = call->arg;

	l->hearer = call;
	if (l->phase == LOAD_ENDED)
		load_tell(l);
}

int load_init(struct load *l, struct loop *loop, struct dev_handle *h, const struct load_conf *conf)
{
	memset(l, 0, sizeof(*l));
	l->conf = *conf;
	l->h = h;
	l->loop = loop;
	l->nblocks = conf->size / conf->block;
	l->random = conf->seed;
	random_bytes(&l->id.writer, sizeof(l->id.writer));
	list_init(&l->ready);
	loop_task_init(&l->step, step_all);
	loop_timer_init(&l->timer, time_is_over);
	loop_timer_init(&l->look_timer, time_to_look);
	loop_msg_init(&l->stop_msg, load_stop_msg);
	l->ios = calloc(conf->depth, sizeof(*l->ios));
	l->mem = aligned_alloc(ALIGN, align_up((uint64_t)conf->depth * conf->block, ALIGN));
	l->written = conf->verify ? calloc(l->nblocks, sizeof(*l->written)) : NULL;
	if (!l->ios || !l->mem || (conf->verify && !l->written)) {
		load_fini(l);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < conf->depth; i++) {
		struct load_io *io = &l->ios[i];

		io->load = l;
		list_init(&io->ready);
		io->buf = l->mem + (size_t)i * conf->block;
		/* No zeroes, which a storage might treat in another way. */
		verify_fill(io->buf, conf->block, i, &l->id);
	}
	return 0;
}

void load_fini(struct load *l)
{
	free(l->ios);
	free(l->mem);
	free(l->written);
}

void load_run(struct load *l, load_look_fn *look)
{
	l->look = look;
	loop_call(l->loop, load_start_call, l);
	while (!loop_call(l->loop, load_hear_call, l))
		look(&l->look_now);
}

void load_stop(struct load *l)
{
	loop_post(l->loop, &l->stop_msg);
}
