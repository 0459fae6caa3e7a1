/* SPDX-License-Identifier: BSD-3-Clause */
/* IO of an image: each operation is one of librbd's.  Owns nothing while librbd has an operation:
 * its memory is the request's until the answer.  Thread of the reactor, except image_answered() and
 * image_updated(). */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-life.h"
#include "rnbd-ext.h"
#include "store-driver.h"
#include "store-lead.h"
#include "store-rbd-priv.h"
#include "util.h"
#include "worker.h"

#define OPEN_AGAIN "remove the export and add it again, or restart the server"

/* An export on a ring. */
struct rbd_slot {
	struct worker worker;		/* for the calls of librbd that wait */
	_Atomic(unsigned) answering;	/* threads of librbd that call a reactor */
	/* on the control thread's ring */
	const struct export *ex;
	struct reactor *reactor;
	bool watches;
	uint64_t watch;			/* of rbd_update_watch() */
	struct loop_msg resized;
};

static rbd_image_t image_of(const struct export_io *io)
{
	return store_rbd(io->ex)->handle.image;
}

/* ---- operations ---- */

/* A thread of librbd. */
static void image_answered(rbd_completion_t answer, void *arg)
{
	struct export_io *io = arg;
	struct rbd_slot *slot = io->slot->own;
	ssize_t result = rbd_lib.rbd_aio_get_return_value(answer);

	rbd_lib.rbd_aio_release(answer);
	io->status = store_rbd_lost(store_rbd(io->ex), (int)MIN(result, 0));
	/* A READ has the number of its bytes: fewer is the end of an image that became smaller. */
	if (!io->status && io->op == RNBD_OP_READ && result < (ssize_t)io->len)
		io->status = -EIO;
	/* RACE: with the message the request may end, and with the request the ring. */
	atomic_fetch_add(&slot->answering, 1);
	loop_post(reactor_loop(io->reactor), &io->msg);
	atomic_fetch_sub(&slot->answering, 1);
}

/* ---- the end of a write ---- */

/* librbd clips what lies behind the end of an image that became smaller, and says nothing. */
struct reach {
	struct worker_job job;
	struct export_io *io;
};

/* Fail @io if the image ends before it. */
static void check_reach(struct export_io *io)
{
	struct store_rbd *r = store_rbd(io->ex);
	unsigned updates = atomic_load(&r->updates);
	uint64_t size;

	if (rbd_lib.rbd_get_size(r->handle.image, &size))
		return;
	/* ORDER: behind the answer, for which other threads would wait, too. */
	atomic_store(&r->seen, updates);
	if (io->len > size || io->offset > size - io->len)
		io->status = -EIO;
}

/* True if check_reach() may wait for the cluster. */
static bool reach_waits(const struct export_io *io)
{
	const struct store_rbd *r = store_rbd(io->ex);

	return atomic_load(&r->seen) != atomic_load(&r->updates);
}

/* Thread of the worker. */
static void reach_work(struct worker_job *job)
{
	check_reach(container_of(job, struct reach, job)->io);
}

static void reach_done(struct worker_job *job)
{
	struct reach *reach = container_of(job, struct reach, job);
	struct export_io *io = reach->io;

	free(reach);
	export_io_next(io, io->status);
}

/* Have the worker check @io, because librbd may wait for the cluster.  False: @io has failed. */
static bool reach_later(struct export_io *io)
{
	struct rbd_slot *slot = io->slot->own;
	struct reach *reach = malloc(sizeof(*reach));

	io->status = reach ? 0 : -ENOMEM;
	if (!reach)
		return false;
	*reach = (struct reach){ .job.work = reach_work, .job.done = reach_done, .io = io };
	io->status = worker_run(&slot->worker, &reach->job);
	if (io->status)
		free(reach);
	return !io->status;
}

static void image_msg(struct loop_msg *msg)
{
	struct export_io *io = container_of(msg, struct export_io, msg);
	bool writes = io->op == RNBD_OP_WRITE || io->op == RNBD_OP_WRITE_ZEROES;

	if (!io->status && writes) {
		if (reach_waits(io) && reach_later(io))
			return;
		if (!io->status)
			check_reach(io);
	}
	export_io_next(io, io->status);
}

/* ---- the begin ---- */

/* Begin @io: a completion for it, or NULL, and @io has failed. */
static rbd_completion_t image_begin(struct export_io *io)
{
	rbd_completion_t answer;
	int rc = store_rbd_lost(store_rbd(io->ex), 0);

	if (!rc)
		rc = rbd_lib.rbd_aio_create_completion(io, image_answered, &answer);
	io->need_sync = false;		/* no cache is on the way */
	loop_msg_init(&io->msg, image_msg);
	if (rc >= 0)
		return answer;
	export_io_next_later(io, rc);
	return NULL;
}

/* librbd has returned @rc, and answers unless it has refused @io. */
static void image_begun(struct export_io *io, rbd_completion_t answer, int rc)
{
	if (rc >= 0)
		return;
	rbd_lib.rbd_aio_release(answer);
	export_io_next_later(io, rc);
}

static void image_rw(struct export_io *io)
{
	rbd_completion_t answer = image_begin(io);

	if (!answer)
		return;
	if (io->op == RNBD_OP_READ)
		image_begun(io, answer, rbd_lib.rbd_aio_read2(image_of(io), io->offset, io->len,
							      io->buf, answer, 0));
	else
		image_begun(io, answer, rbd_lib.rbd_aio_write2(image_of(io), io->offset, io->len,
							       io->buf, answer, 0));
}

static void image_zero(struct export_io *io)
{
	rbd_completion_t answer = image_begin(io);
	int flags = io->flags & RNBD_F_NOUNMAP ? RBD_WRITE_ZEROES_FLAG_THICK_PROVISION : 0;

	if (!answer)
		return;
	if (io->op == RNBD_OP_DISCARD)
		image_begun(io, answer, rbd_lib.rbd_aio_discard(image_of(io), io->offset, io->len,
								answer));
	else
		image_begun(io, answer, rbd_lib.rbd_aio_write_zeroes(image_of(io), io->offset,
								     io->len, answer, flags, 0));
}

static void image_sync(struct export_io *io)
{
	rbd_completion_t answer = image_begin(io);

	if (answer)
		image_begun(io, answer, rbd_lib.rbd_aio_flush(image_of(io), answer));
}

static bool image_takes_at_once(const struct export_io *io)
{
	return true;
}

/* ---- extents ---- */

struct extents {
	struct worker_job job;
	struct export_io *io;
	struct rnbd_extents_writer w;
	uint64_t pos;
	bool full;
};

static int extents_found(uint64_t offset, size_t len, int exists, void *arg)
{
	struct extents *e = arg;
	uint64_t start = align_down(offset, RNBD_SECTOR_SIZE);
	uint64_t end = e->io->offset + e->io->len;

	if (!exists)
		return 0;
	start = MIN(MAX(start, e->pos), end);
	if (start > e->pos)
		e->full = !rnbd_extents_add(&e->w, start - e->pos,
					    RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO);
	if (e->full)
		return -ENOBUFS;	/* ends the walk */
	e->pos = start;
	end = MIN(align_up(offset + len, RNBD_SECTOR_SIZE), end);
	if (end <= e->pos)
		return 0;
	e->full = !rnbd_extents_add(&e->w, end - e->pos, 0);
	e->pos = end;
	return e->full ? -ENOBUFS : 0;
}

/* Thread of the worker. */
static void extents_work(struct worker_job *job)
{
	struct extents *e = container_of(job, struct extents, job);
	struct export_io *io = e->io;
	uint64_t end = io->offset + io->len;
	int rc;

	e->pos = io->offset;
	rnbd_extents_begin(&e->w, io->buf, io->room);
	rc = rbd_lib.rbd_diff_iterate2(image_of(io), NULL, io->offset, io->len, 1, 1, extents_found,
				       e);
	rc = store_rbd_lost(store_rbd(io->ex), e->full ? 0 : rc);
	/* librbd asks for several objects at once: when one fails, later ones may have been told,
	 * and the gap between them is no hole. */
	if (!e->full && rc < 0) {
		export_io_all_data(io);
		return;
	}
	if (!e->full && e->pos < end)
		rnbd_extents_add(&e->w, end - e->pos, RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO);
	rnbd_extents_end(&e->w);
}

static void extents_done(struct worker_job *job)
{
	struct extents *e = container_of(job, struct extents, job);
	struct export_io *io = e->io;

	free(e);
	export_io_next(io, 0);
}

static void image_extents(struct export_io *io)
{
	struct rbd_slot *slot = io->slot->own;
	struct store_rbd *r = store_rbd(io->ex);
	/* Behind LUKS offsets are not those of the objects. */
	struct extents *e = r->ex.spec.luks || store_rbd_lost(r, 0) ? NULL : calloc(1, sizeof(*e));

	if (e) {
		e->job = (struct worker_job){ .work = extents_work, .done = extents_done };
		e->io = io;
		if (!worker_run(&slot->worker, &e->job))
			return;
		free(e);
	}
	/* An unknown range counts as data. */
	export_io_all_data(io);
	export_io_next_later(io, 0);
}

/* ---- size ---- */

struct asked_size {
	struct worker_job job;
	struct export *ex;
	int64_t size;
	void (*done)(struct export *ex, int64_t size, void *arg);
	void *arg;
};

/* Thread of the worker: librbd may read the header of the image again. */
static void size_work(struct worker_job *job)
{
	struct asked_size *a = container_of(job, struct asked_size, job);
	struct store_rbd *r = store_rbd(a->ex);
	uint64_t size = export_size(a->ex);
	int rc = 0;

	pthread_mutex_lock(&r->renews);
	if (r->handle.image)
		rc = rbd_lib.rbd_get_size(r->handle.image, &size);
	pthread_mutex_unlock(&r->renews);
	rc = store_rbd_lost(r, rc);
	/* The image has not shrunk below what is known: the fenced server opens it again. */
	if (rc == -ESHUTDOWN && store_lead_fences(a->ex->store)) {
		store_lead_lost(a->ex->store);
		rc = 0;
	}
	a->size = rc < 0 ? rc : (int64_t)align_down(size, RNBD_SECTOR_SIZE);
}

static void size_done(struct worker_job *job)
{
	struct asked_size *a = container_of(job, struct asked_size, job);

	a->done(a->ex, a->size, a->arg);
	free(a);
}

static bool image_size(struct reactor *r, struct export *ex, int64_t *size,
		       void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	struct rbd_slot *slot = reactor_storage(r)->slots[ex->index]->own;
	struct asked_size *a = calloc(1, sizeof(*a));

	*size = -ENOMEM;
	if (!a)
		return true;
	*a = (struct asked_size){ .job.work = size_work, .job.done = size_done, .ex = ex,
				  .done = done, .arg = arg };
	*size = worker_run(&slot->worker, &a->job);
	if (!*size)
		return false;
	free(a);
	return true;
}

/* ---- errors ---- */

static const char *image_words(int err)
{
	switch (err) {
	case -ESHUTDOWN:
		return "the cluster has fenced this server (ceph osd blocklist ls): " OPEN_AGAIN;
	case -EROFS:
		return "another client has the lock of the image (rbd lock ls): " OPEN_AGAIN;
	case -ENOSPC:
	case -EDQUOT:
		return "the pool is full: make room in it, or raise its quota";
	case -EPERM:
	case -EACCES:
		return "the user of Ceph lacks the capability osd 'profile rbd'";
	case -ENOENT:
		return "the image is gone";
	default:
		return NULL;
	}
}

/* ---- another size ---- */

static void resized_msg(struct loop_msg *msg)
{
	export_life_resized(container_of(msg, struct rbd_slot, resized)->ex);
}

/* A thread of librbd. */
static void image_updated(void *arg)
{
	struct rbd_slot *own = arg;

	atomic_fetch_add(&store_rbd(own->ex)->updates, 1);
	atomic_fetch_add(&own->answering, 1);
	loop_post(reactor_loop(own->reactor), &own->resized);
	atomic_fetch_sub(&own->answering, 1);
}

/* Without the watch, "rtrsctl export resize" tells of sizes. */
static void hear_sizes(struct store_rbd *r, bool begin)
{
	struct rbd_slot *own = r->hearer;

	if (own->watches)
		rbd_lib.rbd_update_unwatch(r->handle.image, own->watch);
	own->watches = begin && rbd_lib.rbd_update_watch(r->handle.image, &own->watch,
							 image_updated, own) >= 0;
}

/* Only the control thread asks for sizes. */
static void watch_updates(struct export_slot *slot, struct rbd_slot *own)
{
	own->ex = slot->ex;
	own->reactor = slot->ring->reactor;
	loop_msg_init(&own->resized, resized_msg);
	if (slot->ring->index)
		return;
	store_rbd(slot->ex)->hearer = own;
	store_rbd(slot->ex)->hear = hear_sizes;
	hear_sizes(store_rbd(slot->ex), true);
	store_rbd(slot->ex)->asking = store_rbd_lost_watch(own->ex, reactor_loop(own->reactor));
}

static void unwatch_updates(struct rbd_slot *own)
{
	struct store_rbd *r = store_rbd(own->ex);

	if (r->hearer != own)
		return;
	store_rbd_lost_unwatch(r->asking);
	r->asking = NULL;
	hear_sizes(r, false);
	r->hear = NULL;
	r->hearer = NULL;
}

/* ---- a ring ---- */

static int image_attach(struct export_slot *slot, char *err, size_t errlen)
{
	struct rbd_slot *own = calloc(1, sizeof(*own));

	if (!own) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	worker_init(&own->worker, reactor_loop(slot->ring->reactor));
	watch_updates(slot, own);
	slot->own = own;
	return 0;
}

static void image_detach(struct export_slot *slot)
{
	struct rbd_slot *own = slot->own;

	unwatch_updates(own);
	while (atomic_load(&own->answering))
		sched_yield();
	loop_unpost(reactor_loop(own->reactor), &own->resized);
	worker_fini(&own->worker);
	free(own);
}

extern const struct store_io_ops store_rbd_io_ops;
const struct store_io_ops store_rbd_io_ops = {
	.attach = image_attach,
	.detach = image_detach,
	.rw = image_rw,
	.zero = image_zero,
	.extents = image_extents,
	.sync = image_sync,
	.takes_at_once = image_takes_at_once,
	.words = image_words,
	.size = image_size,
};
