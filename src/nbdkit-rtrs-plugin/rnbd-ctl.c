/* SPDX-License-Identifier: BSD-3-Clause */
/* Control of RNBD: session info, opening and closing devices, and all of it again when a path comes
 * back.  Owns the list of devices.
 *
 * Everything runs on the service thread; other threads post tasks.  One message is in flight per
 * device, one for the handshake.  A device ends when its last reference was dropped and CLOSE was
 * answered, or the path that knew it is gone.  A device that cannot be opened again is LOST: it is
 * tried once a second, and fails IO when io_timeout is over. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "rnbd-priv.h"

#define REOPEN_MS 1000
#define CLOSE_MS 5000			/* for the CLOSEs when the session ends */

static void dev_pump(struct rnbd_dev *dev);
static void handshake_next(struct rnbd_clt *clt);

/* ---- messages ---- */

static size_t ctl_encode(const struct clt_op *op, uint64_t off, uint32_t len, uint8_t *usr)
{
	const struct rnbd_ctl *ctl = container_of(op, struct rnbd_ctl, op);

	memcpy(usr, &ctl->msg, ctl->len);
	return ctl->len;
}

static int ctl_lost(const struct clt_op *op)
{
	return -ECONNABORTED;
}

/* A bound message is not sent to another life of the path than it was made for. */
static int ctl_ready(const struct clt_op *op)
{
	const struct rnbd_ctl *ctl = container_of(op, struct rnbd_ctl, op);
	struct clt_path *path = &ctl->clt->sess.path;

	if (!ctl->bound)
		return 0;
	if (ctl->life != path->life || path->state < CLT_OPENING || path->state > CLT_UP)
		return -ECONNABORTED;
	return clt_path_is_up(path) ? 0 : CLT_AGAIN;
}

static void ctl_step(struct clt_task *task)
{
	struct rnbd_ctl *ctl = container_of(task, struct rnbd_ctl, task);

	if (!clt_op_step(&ctl->op))
		return;
	clt_svc_cancel(ctl->clt->sess.svc, task);
	ctl->busy = false;
	ctl->done(ctl);
}

static void ctl_wake(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct rnbd_ctl *ctl = container_of(op, struct rnbd_ctl, op);

	clt_svc_post(ctl->clt->sess.svc, &ctl->task);
}

static void ctl_init(struct rnbd_ctl *ctl, struct rnbd_clt *clt, struct rnbd_dev *dev)
{
	ctl->clt = clt;
	ctl->dev = dev;
	clt_task_init(&ctl->task, ctl_step);
}

enum ctl_kind {
	CTL_HANDSHAKE,			/* while the path is OPENING */
	CTL_BOUND,			/* on the path that is up now, or not at all */
	CTL_FREE,			/* on any path, when there is one */
};

/* @answer: bytes of the reply, 0 for none.  A message in flight on a path that is lost ends with
 * -ECONNABORTED. */
static void ctl_send(struct rnbd_ctl *ctl, size_t len, uint32_t answer, enum ctl_kind kind,
		     void (*done)(struct rnbd_ctl *ctl))
{
	struct clt_op *op = &ctl->op;

	assert(!ctl->busy);
	ctl->busy = true;
	ctl->bound = kind == CTL_BOUND;
	ctl->life = ctl->clt->sess.path.life;
	ctl->done = done;
	ctl->len = len;
	op->sess = &ctl->clt->sess;
	op->dir = answer ? RTRS_DIR_READ : RTRS_DIR_WRITE;
	op->user = true;
	op->borrow = kind == CTL_HANDSHAKE;
	op->buf = answer ? &ctl->rsp : NULL;
	op->len = answer;
	op->part_max = UINT32_MAX;
	op->encode = ctl_encode;
	op->ready = ctl_ready;
	op->lost = ctl_lost;
	clt_op_start(op, ctl_wake);
	clt_svc_post(op->sess->svc, &ctl->task);
}

/* ---- open ---- */

static void opens_done(struct rnbd_dev *dev, int status)
{
	struct list *link;

	while ((link = list_pop(&dev->opens))) {
		struct rnbd_open_req *req = list_entry(link, struct rnbd_open_req, link);

		req->status = status;
		req->dev = status ? NULL : dev;
		dev->refs += !status;
		req->done(req);
	}
}

static void dev_free(struct rnbd_dev *dev)
{
	struct rnbd_clt *clt = dev->clt;

	assert(!dev->ctl.busy && !dev->refs && list_empty(&dev->opens));
	clt_svc_cancel(clt->sess.svc, &dev->close_task);
	list_del(&dev->link);
	rmw_lock_fini(&dev->rmw);
	free(dev);
	if (clt->closing && list_empty(&clt->devs))
		clt_sess_close(&clt->sess);
}

/* The answer to an OPEN: geometry the first time, else id and size. */
static int dev_opened(struct rnbd_dev *dev, struct rnbd_ctl *ctl, bool first)
{
	struct rnbd_dev_info info;
	int r = ctl->op.status;
	uint64_t size;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_open_rsp_decode(&ctl->rsp.open, sizeof(ctl->rsp.open), &info);
	if (r < 0)
		return r;
	size = info.nsectors * RNBD_SECTOR_SIZE;
	if (first)
		dev->info = info;
	else if (size != atomic_load(&dev->size))
		log_warn(dev->name, "export came back with %llu bytes instead of %llu",
			 (unsigned long long)size, (unsigned long long)atomic_load(&dev->size));
	atomic_store(&dev->size, size);
	atomic_store(&dev->id, info.device_id);
	dev->open_life = dev->clt->sess.path.life;
	atomic_store(&dev->state, RNBD_DEV_OPEN);
	return 0;
}

static void open_first_done(struct rnbd_ctl *ctl)
{
	struct rnbd_dev *dev = ctl->dev;
	int r;

	if (ctl->op.status == -ECONNABORTED && !clt_sess_expired(&dev->clt->sess)) {
		dev_pump(dev);		/* again, on the path that comes */
		return;
	}
	r = dev_opened(dev, ctl, true);
	opens_done(dev, r);
	if (r < 0)
		dev_free(dev);
}

static void open_send(struct rnbd_dev *dev, enum ctl_kind kind, void (*done)(struct rnbd_ctl *ctl))
{
	rnbd_open_encode(&dev->ctl.msg.open, dev->name, dev->mode);
	ctl_send(&dev->ctl, sizeof(dev->ctl.msg.open), sizeof(dev->ctl.rsp.open), kind, done);
}

static void dev_close_task(struct clt_task *task)
{
	struct rnbd_dev *dev = container_of(task, struct rnbd_dev, close_task);

	dev->refs -= atomic_exchange(&dev->dropped, 0);
	if (dev->refs)
		return;
	atomic_store(&dev->state, RNBD_DEV_CLOSING);
	dev_pump(dev);
}

static struct rnbd_dev *dev_create(struct rnbd_clt *clt, const struct rnbd_open_req *req)
{
	struct rnbd_dev *dev;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;
	dev->clt = clt;
	snprintf(dev->name, sizeof(dev->name), "%s", req->name);
	dev->mode = req->mode;
	atomic_store(&dev->state, RNBD_DEV_OPENING);
	rmw_lock_init(&dev->rmw);
	ctl_init(&dev->ctl, clt, dev);
	clt_task_init(&dev->close_task, dev_close_task);
	list_init(&dev->opens);
	list_add_tail(&clt->devs, &dev->link);
	return dev;
}

static struct rnbd_dev *dev_find(struct rnbd_clt *clt, const char *name)
{
	struct rnbd_dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (!strcmp(dev->name, name))
			return dev;
	}
	return NULL;
}

static void open_task(struct clt_task *task)
{
	struct rnbd_open_req *req = container_of(task, struct rnbd_open_req, task);
	struct rnbd_clt *clt = req->clt;
	struct rnbd_dev *dev = dev_find(clt, req->name);

	req->dev = NULL;
	req->status = 0;
	if (strlen(req->name) >= RNBD_NAME_MAX)
		req->status = -ENAMETOOLONG;
	else if (clt->closing)
		req->status = -ESHUTDOWN;
	else if (!dev && !(dev = dev_create(clt, req)))
		req->status = -ENOMEM;
	if (req->status) {
		req->done(req);
		return;
	}
	list_add_tail(&dev->opens, &req->link);
	switch (atomic_load(&dev->state)) {
	case RNBD_DEV_OPEN:
	case RNBD_DEV_LOST:
	case RNBD_DEV_FAILED:
		opens_done(dev, 0);
		return;
	case RNBD_DEV_OPENING:
	case RNBD_DEV_CLOSING:
		dev_pump(dev);
		return;
	}
}

void rnbd_open_start(struct rnbd_clt *clt, struct rnbd_open_req *req)
{
	req->clt = clt;
	clt_task_init(&req->task, open_task);
	list_init(&req->link);
	clt_svc_post(clt->sess.svc, &req->task);
}

/* ---- close ---- */

void rnbd_close(struct rnbd_dev *dev)
{
	atomic_fetch_add(&dev->dropped, 1);
	clt_svc_post(dev->clt->sess.svc, &dev->close_task);
}

static void close_done(struct rnbd_ctl *ctl)
{
	struct rnbd_dev *dev = ctl->dev;

	if (list_empty(&dev->opens)) {
		dev_free(dev);
		return;
	}
	/* Opened again while it was being closed: a new life for the same name. */
	dev->mode = list_entry(dev->opens.next, struct rnbd_open_req, link)->mode;
	atomic_store(&dev->write_seq, 0);
	atomic_store(&dev->flushed_seq, 0);
	atomic_store(&dev->lost_life, 0);
	atomic_store(&dev->state, RNBD_DEV_OPENING);
	dev_pump(dev);
}

static void close_send(struct rnbd_dev *dev)
{
	if (dev->open_life != dev->clt->sess.path.life) {
		close_done(&dev->ctl);	/* the server does not know it */
		return;
	}
	rnbd_close_encode(&dev->ctl.msg.close, atomic_load(&dev->id));
	ctl_send(&dev->ctl, sizeof(dev->ctl.msg.close), 0, CTL_BOUND, close_done);
}

/* Do what the state of @dev asks for, unless something is in flight for it. */
static void dev_pump(struct rnbd_dev *dev)
{
	if (dev->ctl.busy)
		return;
	if (atomic_load(&dev->state) == RNBD_DEV_OPENING)
		open_send(dev, CTL_FREE, open_first_done);
	else if (atomic_load(&dev->state) == RNBD_DEV_CLOSING)
		close_send(dev);
}

/* ---- the handshake of a path ---- */

/* Unflushed writes may be gone when the server's host is another one, or went through a reboot, or
 * cannot be told apart from one that did. */
static void identity_check(struct rnbd_clt *clt, const struct rnbd_ext *ext, bool first)
{
	bool same = clt->identified && ext->valid &&
		    !memcmp(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	struct rnbd_dev *dev;

	clt->identified = ext->valid;
	memcpy(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	atomic_store(&clt->features, ext->valid ? ext->features : 0);
	if (first || same)
		return;
	/* ORDER: boot_life before write_seq is read; rnbd_op_end() counts before it reads boot_life. */
	atomic_store(&clt->boot_life, clt->sess.path.life);
	list_for_each(dev, &clt->devs, link) {
		if (atomic_load(&dev->write_seq) == atomic_load(&dev->flushed_seq))
			continue;
		atomic_store(&dev->lost_life, clt->sess.path.life);
		log_err(dev->name, "%s: writes that were not flushed may be lost",
			ext->valid ? "the server's host was restarted" :
				     "the server cannot tell whether its host was restarted");
	}
}

static void dev_lost(struct rnbd_dev *dev, int err)
{
	struct rnbd_clt *clt = dev->clt;

	if (atomic_load(&dev->state) == RNBD_DEV_OPEN) {
		log_err(dev->name, "cannot be opened again: %s", strerror(-err));
		dev->lost_since_ms = clock_now_ms();
		atomic_store(&dev->state, RNBD_DEV_LOST);
	}
	if (atomic_load(&dev->state) == RNBD_DEV_LOST && clt->sess.io_timeout_ms != CLOCK_NEVER &&
	    clock_now_ms() - dev->lost_since_ms >= clt->sess.io_timeout_ms) {
		atomic_store(&dev->state, RNBD_DEV_FAILED);
		clt_sess_wake_up_waiters(&clt->sess);
	}
	clt_svc_timer_set(clt->sess.svc, &clt->reopen_timer, clock_now_ms() + REOPEN_MS);
}

static bool dev_wants_reopen(const struct rnbd_dev *dev)
{
	enum rnbd_dev_state state = atomic_load(&dev->state);

	return !dev->ctl.busy && (state == RNBD_DEV_LOST || state == RNBD_DEV_FAILED);
}

/* An OPEN after the first, in the handshake or by the timer, was answered. */
static void reopen_result(struct rnbd_ctl *ctl)
{
	struct rnbd_dev *dev = ctl->dev;
	enum rnbd_dev_state state = atomic_load(&dev->state);
	int r = ctl->op.status;

	if (r != -ECONNABORTED)
		r = dev_opened(dev, ctl, false);
	if (state == RNBD_DEV_CLOSING) {
		atomic_store(&dev->state, RNBD_DEV_CLOSING);
		dev_pump(dev);
	} else if (r < 0 && r != -ECONNABORTED) {
		dev_lost(dev, r);
	} else if (r == 0 && state != RNBD_DEV_OPEN) {
		log_warn(dev->name, "open again");
	}
}

static void reopen_done(struct rnbd_ctl *ctl)
{
	struct rnbd_clt *clt = ctl->clt;

	reopen_result(ctl);
	clt_sess_wake_up_waiters(&clt->sess);
	clt_svc_timer_set(clt->sess.svc, &clt->reopen_timer, clock_now_ms() + REOPEN_MS);
}

static void reopen_timer(struct clt_timer *timer)
{
	struct rnbd_clt *clt = container_of(timer, struct rnbd_clt, reopen_timer);
	struct rnbd_dev *dev;

	if (!clt_path_is_up(&clt->sess.path))
		return;			/* the handshake comes */
	list_for_each(dev, &clt->devs, link) {
		if (dev_wants_reopen(dev))
			open_send(dev, CTL_BOUND, reopen_done);
	}
}

static void handshake_open_done(struct rnbd_ctl *ctl)
{
	struct rnbd_clt *clt = ctl->clt;
	bool lost = ctl->op.status == -ECONNABORTED;

	clt->handshake = NULL;
	reopen_result(ctl);
	if (!lost)
		handshake_next(clt);
}

/* Open the next device that this life of the path does not know yet. */
static void handshake_next(struct rnbd_clt *clt)
{
	struct rnbd_dev *dev;

	list_for_each(dev, &clt->devs, link) {
		enum rnbd_dev_state state = atomic_load(&dev->state);

		if (dev->ctl.busy || dev->tried_life == clt->sess.path.life ||
		    state == RNBD_DEV_OPENING || state == RNBD_DEV_CLOSING)
			continue;
		dev->tried_life = clt->sess.path.life;
		open_send(dev, CTL_HANDSHAKE, handshake_open_done);
		clt->handshake = &dev->ctl;
		return;
	}
	clt_path_opened(&clt->sess.path);
}

static void sess_info_done(struct rnbd_ctl *ctl)
{
	struct rnbd_clt *clt = ctl->clt;
	struct rnbd_sess_info info;
	int r = ctl->op.status;

	clt->handshake = NULL;
	if (r == -ECONNABORTED)
		return;
	assert(r <= 0);
	if (r == 0)
		r = rnbd_sess_info_decode(&ctl->rsp.info, sizeof(ctl->rsp.info), &info);
	if (r < 0) {
		clt_path_fail(&clt->sess.path, r, "SESS_INFO: %s", strerror(-r));
		return;
	}
	identity_check(clt, &info.ext, !clt->greeted);
	clt->greeted = true;
	handshake_next(clt);
}

static void clt_opening(struct clt_sess *sess, struct clt_path *path)
{
	struct rnbd_clt *clt = container_of(sess, struct rnbd_clt, sess);
	struct rnbd_sess_info info = {
		.ver = RNBD_PROTO_VER_MAJOR,
		.ext = { .valid = true, .features = RNBD_EXT_ALL },
	};
	struct rnbd_ctl *ctl = clt->greeting;

	rnbd_sess_info_encode(&ctl->msg.info, RNBD_MSG_SESS_INFO, &info);
	clt->handshake = ctl;
	ctl_send(ctl, sizeof(ctl->msg.info), sizeof(ctl->rsp.info), CTL_HANDSHAKE, sess_info_done);
}

/* ---- the session ---- */

/* Wake who waits for the session.  lock held. */
static void clt_tell(struct rnbd_clt *clt)
{
	clt_wait_look(&clt->event);
}

static void clt_up(struct clt_sess *sess)
{
	struct rnbd_clt *clt = container_of(sess, struct rnbd_clt, sess);

	LOCK_SCOPE(&clt->lock);
	clt->result = 0;
	clt_tell(clt);
}

static void clt_failed(struct clt_sess *sess, int err, const char *cause)
{
	struct rnbd_clt *clt = container_of(sess, struct rnbd_clt, sess);

	LOCK_SCOPE(&clt->lock);
	if (clt->result != CLT_AGAIN)
		return;
	clt->result = err;
	snprintf(clt->cause, sizeof(clt->cause), "%s", cause);
	clt_tell(clt);
}

static void clt_closed(struct clt_sess *sess)
{
	struct rnbd_clt *clt = container_of(sess, struct rnbd_clt, sess);

	LOCK_SCOPE(&clt->lock);
	clt->closed = true;
	clt_tell(clt);
}

static void start_task(struct clt_task *task)
{
	clt_sess_start(&container_of(task, struct rnbd_clt, start_task)->sess);
}

static void close_timer(struct clt_timer *timer)
{
	clt_sess_close(&container_of(timer, struct rnbd_clt, close_timer)->sess);
}

static void close_task(struct clt_task *task)
{
	struct rnbd_clt *clt = container_of(task, struct rnbd_clt, close_task);

	clt->closing = true;
	clt_svc_timer_cancel(&clt->reopen_timer);
	if (list_empty(&clt->devs))
		clt_sess_close(&clt->sess);
	else
		clt_svc_timer_set(clt->sess.svc, &clt->close_timer, clock_now_ms() + CLOSE_MS);
}

int rnbd_clt_init(struct rnbd_clt *clt, struct clt_svc *svc, const struct clt_sess_conf *conf)
{
	static const struct clt_sess_ops ops = { clt_opening, clt_up, clt_failed, clt_closed };
	int r;

	memset(clt, 0, sizeof(*clt));
	clt->result = CLT_AGAIN;
	list_init(&clt->devs);
	clt_waiter_init(&clt->event, NULL);
	clt_timer_init(&clt->reopen_timer, reopen_timer);
	clt_timer_init(&clt->close_timer, close_timer);
	clt_task_init(&clt->start_task, start_task);
	clt_task_init(&clt->close_task, close_task);
	clt->greeting = calloc(1, sizeof(*clt->greeting));
	if (!clt->greeting)
		return -ENOMEM;
	ctl_init(clt->greeting, clt, NULL);
	r = clt_sess_init(&clt->sess, svc, conf, &ops);
	if (r < 0) {
		free(clt->greeting);
		return r;
	}
	pthread_mutex_init(&clt->lock, NULL);
	clt_svc_post(svc, &clt->start_task);
	return 0;
}

int rnbd_clt_wait_up(struct rnbd_clt *clt)
{
	for (;;) {
		int r;

		pthread_mutex_lock(&clt->lock);
		r = clt->result;
		pthread_mutex_unlock(&clt->lock);
		if (r != CLT_AGAIN)
			return r;
		clt_wait_event(&clt->event);
	}
}

void rnbd_clt_close_start(struct rnbd_clt *clt)
{
	clt_svc_post(clt->sess.svc, &clt->close_task);
}

bool rnbd_clt_closed(struct rnbd_clt *clt)
{
	LOCK_SCOPE(&clt->lock);
	return clt->closed;
}

void rnbd_clt_close(struct rnbd_clt *clt)
{
	rnbd_clt_close_start(clt);
	while (!rnbd_clt_closed(clt))
		clt_wait_event(&clt->event);
}

void rnbd_clt_fini(struct rnbd_clt *clt)
{
	clt_sess_fini(&clt->sess);
	free(clt->greeting);
	pthread_mutex_destroy(&clt->lock);
}
