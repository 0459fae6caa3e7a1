/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the ring of a queue, and its requests.
 *
 * The happy path: queue_ready() takes completions, each a request of the kernel; req_begin() starts
 * the client's (dev-req.h); news put it on a list, and step_all() steps what is there after the
 * handlers that brought the news.  A request that ends is committed at once, and all commits go to
 * the kernel in a single call, right before the thread would sleep (queue_settle()).
 *
 * The end: the kernel gives up each tag when the device stops, or the caller leaves.  Both end when
 * no request runs; the ring is destroyed, or left, behind the pass.
 *
 * Possible failures: a request fails with the status of the client's; a command that the kernel
 * refuses, or a ring that fails, ends the queue, and the kernel keeps the requests for the next
 * process. */
#define FSM_PREFIX UBLK_QUEUE_
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clt-export.h"
#include "fsm.h"
#include "log.h"
#include "ublk-queue.h"
#include "util.h"

#define SECTOR 512u

struct ublk_req {
	struct dev_req req;
	struct ublk_queue *q;
	struct list ready;		/* ublk_queue.ready */
	enum {
		UBLK_REQ_KERNEL,	/* the tag is the kernel's */
		UBLK_REQ_RUNS,
		UBLK_REQ_LEFT,		/* for the next process */
		UBLK_REQ_OVER,		/* the kernel has given the tag up */
	} state;
};

static void queue_event(struct ublk_queue *q, unsigned event)
{
	char name[32];

	fsm_run(&ublk_queue_fsm, fsm_name(name, sizeof(name), dev_name(q->h->dev), q->id),
		&q->state, event, q);
}

/* A fault of the kernel's side, or of ours. */
static void queue_fail(struct ublk_queue *q, const char *what, int r)
{
	if (q->status)
		return;
	q->status = r;
	log_err(dev_name(q->h->dev), "queue %u of the block device: %s: %s", q->id, what,
		strerror(-r));
	queue_event(q, UBLK_QUEUE_EV_LEAVE);
}

static void queue_submit(struct ublk_queue *q)
{
	int r = ublk_ring_submit(q->ring);

	if (r < 0) {
		queue_fail(q, "io_uring_enter", r);
		return;
	}
	for (; q->nlosses; q->nlosses--)
		dev_handle_arrived(q->h);
}

/* ---- the end ---- */

static void queue_over(void *object)
{
	struct ublk_queue *q = object;

	/* ORDER: the last answers, before the ring goes. */
	if (!q->status)
		queue_submit(q);
	loop_unwatch(&q->watch);
	loop_undefer(&q->step);
	loop_undefer(&q->settle);
	loop_undefer(&q->take);
	if (q->nover == q->depth)
		ublk_ring_destroy(q->ring);
	else
		ublk_ring_leave(q->ring);
	free(q->reqs);
	q->over(q, q->status);
}

/* Is nothing left to be done?  Then end behind all that this pass still does. */
static void queue_look(struct ublk_queue *q)
{
	if (q->nover == q->depth || (q->state == UBLK_QUEUE_LEAVES && !q->nrunning))
		loop_defer(q->loop, &q->end);
}

static void end_task(struct loop_task *task)
{
	queue_event(container_of(task, struct ublk_queue, end), UBLK_QUEUE_EV_OVER);
}

static void leave_now(void *object)
{
	queue_look(object);
}

/* ---- requests ---- */

static uint16_t tag_of(const struct ublk_req *r)
{
	return (uint16_t)(r - r->q->reqs);
}

static void *buf_of(const struct ublk_req *r)
{
	return ublk_ring_buf(r->q->ring, tag_of(r));
}

static const struct ublk_abi_desc *desc_of(const struct ublk_req *r)
{
	return ublk_ring_desc(r->q->ring, tag_of(r));
}

static void req_news(struct dev_req *req)
{
	struct ublk_req *r = container_of(req, struct ublk_req, req);

	if (list_empty(&r->ready))
		list_add_tail(&r->q->ready, &r->ready);
	loop_defer(r->q->loop, &r->q->step);
}

static const char *name_of(uint32_t op)
{
	static const char *const names[] = {
		[UBLK_OP_READ] = "read", [UBLK_OP_WRITE] = "write", [UBLK_OP_FLUSH] = "flush",
		[UBLK_OP_DISCARD] = "discard", [UBLK_OP_WRITE_ZEROES] = "zero",
	};

	return op < ARRAY_SIZE(names) && names[op] ? names[op] : "unknown request";
}

static void req_answer(struct ublk_req *r, int status)
{
	const struct ublk_abi_desc *d = desc_of(r);
	uint32_t op = d->op_flags & UBLK_OP_MASK;
	struct ublk_queue *q = r->q;
	int32_t result = status;

	if (status < 0)
		clt_export_failed(q->h->dev, name_of(op), (uint64_t)d->sectors * SECTOR,
				  d->start * SECTOR, status);
	else if (op == UBLK_OP_READ || op == UBLK_OP_WRITE)
		result = (int32_t)(d->sectors * SECTOR);
	/* The kernel takes a FLUSH that is not supported for one that nobody needs: fsync(2) would
	 * succeed (findings/ublk-results). */
	if (op == UBLK_OP_FLUSH && status == -EOPNOTSUPP)
		result = -EIO;
	ublk_ring_commit(q->ring, tag_of(r), result);
	loop_before_sleep(q->loop, &q->settle);
}

/* The next process does again what fails while this one leaves, unless nobody else would tell of
 * the loss. */
static void req_end(struct ublk_req *r, int status, bool tells_loss)
{
	struct ublk_queue *q = r->q;
	bool left = status < 0 && q->state == UBLK_QUEUE_LEAVES && !tells_loss;

	list_del(&r->ready);
	r->state = left ? UBLK_REQ_LEFT : UBLK_REQ_KERNEL;
	q->nrunning--;
	q->nlosses += tells_loss;
	if (!left)
		req_answer(r, status);
	queue_look(q);
}

static void req_step(struct ublk_req *r)
{
	if (dev_req_step(&r->req))
		req_end(r, dev_req_status(&r->req), dev_req_tells_loss(&r->req));
}

/* The kernel has checked the range, and cuts requests at blocks and limits. */
static void req_begin(struct ublk_req *r)
{
	const struct ublk_abi_desc *d = desc_of(r);
	uint64_t off = d->start * SECTOR, len = (uint64_t)d->sectors * SECTOR;
	struct dev_handle *h = r->q->h;
	bool fua = d->op_flags & UBLK_F_FUA;

	r->state = UBLK_REQ_RUNS;
	r->q->nrunning++;
	switch (d->op_flags & UBLK_OP_MASK) {
	case UBLK_OP_READ:
		dev_req_read(&r->req, h, buf_of(r), (uint32_t)len, off);
		break;
	case UBLK_OP_WRITE:
		dev_req_write(&r->req, h, buf_of(r), (uint32_t)len, off, fua);
		break;
	case UBLK_OP_FLUSH:
		dev_req_flush(&r->req, h);
		break;
	case UBLK_OP_DISCARD:
		dev_req_discard(&r->req, h, len, off, fua);
		break;
	case UBLK_OP_WRITE_ZEROES:
		dev_req_zero(&r->req, h, len, off, !(d->op_flags & UBLK_F_NOUNMAP), fua);
		break;
	default:
		req_end(r, -EOPNOTSUPP, false);
		return;
	}
	req_step(r);
}

static void step_all(struct loop_task *task)
{
	struct ublk_queue *q = container_of(task, struct ublk_queue, step);
	struct ublk_req *r;

	clt_pass_begin();
	while ((r = list_pop_entry(&q->ready, struct ublk_req, ready)))
		req_step(r);
	clt_pass_end();
}

/* ---- completions ---- */

/* The kernel has completed the command of @r with @result. */
static void req_completed(struct ublk_req *r, int result)
{
	struct ublk_queue *q = r->q;

	if (result == 0) {
		if (q->state == UBLK_QUEUE_SERVES)
			req_begin(r);
		return;
	}
	r->state = UBLK_REQ_OVER;
	q->nover++;
	if (result != UBLK_IO_ABORTED)
		queue_fail(q, "the kernel refuses a command", result);
	queue_look(q);
}

static void queue_take(struct ublk_queue *q)
{
	uint16_t tag;
	int result;

	while (ublk_ring_next(q->ring, &tag, &result))
		req_completed(&q->reqs[tag], result);
}

static bool queue_ready(struct loop_watch *watch)
{
	struct ublk_queue *q = container_of(watch, struct ublk_queue, watch);

	queue_submit(q);
	queue_take(q);
	return false;
}

static void take_task(struct loop_task *task)
{
	queue_take(container_of(task, struct ublk_queue, take));
}

/* What a request begins is sent before the sleep, which is next: so requests are work of another
 * pass. */
static void queue_settle(struct loop_task *task)
{
	struct ublk_queue *q = container_of(task, struct ublk_queue, settle);

	queue_submit(q);
	if (ublk_ring_ready(q->ring))
		loop_defer(q->loop, &q->take);
}

/* ---- the beginning ---- */

static int queue_alloc(struct ublk_queue *q)
{
	q->reqs = calloc(q->depth, sizeof(*q->reqs));
	if (!q->reqs)
		return -ENOMEM;
	for (unsigned tag = 0; tag < q->depth; tag++) {
		q->reqs[tag].q = q;
		q->reqs[tag].req.fn = req_news;
		list_init(&q->reqs[tag].ready);
	}
	return 0;
}

/* A FETCH that is refused completes at once, and START_DEV would wait for it forever. */
static int fetch_all(struct ublk_queue *q)
{
	uint16_t tag;
	int r, result;

	for (tag = 0; tag < q->depth; tag++)
		ublk_ring_fetch(q->ring, tag);
	r = ublk_ring_submit(q->ring);
	while (r == 0 && ublk_ring_next(q->ring, &tag, &result))
		r = result;
	return r;
}

static int queue_begin(struct ublk_queue *q)
{
	int r = queue_alloc(q);

	if (r == 0)
		r = ublk_ring_create(&q->ring, q->fd, q->id, q->depth, q->io_bytes);
	if (r == 0)
		r = fetch_all(q);
	if (r == 0) {
		q->watch = (struct loop_watch){ .fd = ublk_ring_fd(q->ring), .events = POLLIN,
						.ready = queue_ready };
		r = loop_watch(q->loop, &q->watch);
	}
	if (r == 0) {
		queue_event(q, UBLK_QUEUE_EV_BEGIN);
		return 0;
	}
	ublk_ring_destroy(q->ring);
	free(q->reqs);
	return r;
}

static const struct fsm_row queue_rows[] = {
	ROW(IN(IDLE), BEGIN, SERVES, NULL),
	ROW(IN(SERVES), LEAVE, LEAVES, leave_now),
	ROW(IN(SERVES) | IN(LEAVES), OVER, IDLE, queue_over),
	STAY(IN(IDLE) | IN(LEAVES), LEAVE),
};

static const char *const queue_states[UBLK_QUEUE_NSTATES] = { "idle", "serves", "leaves" };
static const char *const queue_events[UBLK_QUEUE_NEVENTS] = { "begin", "leave", "over" };

const struct fsm ublk_queue_fsm = FSM("queue", queue_rows, queue_states, queue_events);

int ublk_queue_begin(struct ublk_queue *q)
{
	assert(q->state == UBLK_QUEUE_IDLE);
	list_init(&q->ready);
	loop_task_init(&q->step, step_all);
	loop_task_init(&q->settle, queue_settle);
	loop_task_init(&q->take, take_task);
	loop_task_init(&q->end, end_task);
	return queue_begin(q);
}

void ublk_queue_leave(struct ublk_queue *q)
{
	queue_event(q, UBLK_QUEUE_EV_LEAVE);
}
