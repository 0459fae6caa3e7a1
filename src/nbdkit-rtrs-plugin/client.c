/* SPDX-License-Identifier: BSD-3-Clause */
/* The session: user messages of control, start and end.
 *
 * Everything runs on the service thread; other threads post messages to it.  One message is in flight per
 * device (dev.c), one for the handshake (dev-reopen.c). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "dev-priv.h"

#define CLOSE_MS 5000			/* for the CLOSEs when the session ends */

/* ---- messages ---- */

static size_t ctl_encode(const struct clt_op *op, uint64_t off, uint32_t len, uint8_t *usr)
{
	const struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);

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
	const struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);
	struct clt_path *path = &ctl->clt->sess.path;

	if (!op->bound)
		return 0;
	if (ctl->life != path->life || path->state < CLT_OPENING || path->state > CLT_UP)
		return -ECONNABORTED;
	return clt_path_is_up(path) ? 0 : CLT_AGAIN;
}

static void ctl_begin(struct dev_ctl *ctl)
{
	ctl->clt->nctl++;
	loop_post(ctl->clt->sess.loop, &ctl->step_msg);
}

/* One of the handshake is the only one at its time, so it is not counted. */
static void ctl_ended(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	struct list *next;

	ctl->busy = false;
	if (ctl->op.borrow)
		return;
	clt->nctl--;
	next = list_pop(&clt->ctl_line);
	if (next)
		ctl_begin(list_entry(next, struct dev_ctl, link));
}

static void ctl_step(struct loop_msg *msg)
{
	struct dev_ctl *ctl = container_of(msg, struct dev_ctl, step_msg);

	if (!clt_op_step(&ctl->op))
		return;
	loop_unpost(ctl->clt->sess.loop, msg);
	ctl_ended(ctl);
	ctl->done(ctl);
}

static void ctl_wake(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);

	loop_post(ctl->clt->sess.loop, &ctl->step_msg);
}

void dev_ctl_init(struct dev_ctl *ctl, struct client *clt, struct dev *dev)
{
	ctl->clt = clt;
	ctl->dev = dev;
	loop_msg_init(&ctl->step_msg, ctl_step);
}

void dev_ctl_send(struct dev_ctl *ctl, size_t len, uint32_t answer, enum dev_ctl_kind kind,
		   void (*done)(struct dev_ctl *ctl))
{
	struct clt_op *op = &ctl->op;

	assert(!ctl->busy);
	ctl->busy = true;
	ctl->life = ctl->clt->sess.path.life;
	ctl->done = done;
	ctl->len = len;
	op->sess = &ctl->clt->sess;
	op->dir = answer ? RTRS_DIR_READ : RTRS_DIR_WRITE;
	op->user = true;
	op->borrow = kind == DEV_CTL_HANDSHAKE;
	op->bound = kind == DEV_CTL_BOUND;
	op->buf = answer ? &ctl->rsp : NULL;
	op->len = answer;
	op->part_max = UINT32_MAX;
	op->encode = ctl_encode;
	op->ready = ctl_ready;
	op->lost = ctl_lost;
	clt_op_start(op, ctl_wake);
	if (op->borrow)
		loop_post(op->sess->loop, &ctl->step_msg);
	else if (ctl->clt->nctl < DEV_CTL_MAX)
		ctl_begin(ctl);
	else
		list_add_tail(&ctl->clt->ctl_line, &ctl->link);
}

/* ---- the session ---- */

/* Wake who waits for the session.  lock held. */
static void clt_tell(struct client *clt)
{
	clt_wait_look(&clt->event);
	clt_wait_look(&clt->away_event);
}

static void clt_up(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	client_check_away(clt);
	LOCK_SCOPE(&clt->lock);
	clt->result = 0;
	clt_tell(clt);
}

static void clt_down(struct clt_sess *sess)
{
	client_check_away(container_of(sess, struct client, sess));
}

static void clt_silence(struct clt_sess *sess)
{
	client_check_away(container_of(sess, struct client, sess));
}

static void clt_failed(struct clt_sess *sess, int err, const char *cause)
{
	struct client *clt = container_of(sess, struct client, sess);

	LOCK_SCOPE(&clt->lock);
	if (clt->result != CLT_AGAIN)
		return;
	clt->result = err;
	snprintf(clt->cause, sizeof(clt->cause), "%s", cause);
	clt_tell(clt);
}

static void clt_closed(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	clt->path_closed = true;
	client_check_closed(clt);
}

void client_check_closed(struct client *clt)
{
	if (!clt->closing || !list_empty(&clt->devs))
		return;
	if (!clt->path_closed) {
		clt_sess_close(&clt->sess);
		return;
	}
	LOCK_SCOPE(&clt->lock);
	clt->closed = true;
	clt_tell(clt);
}

void client_check_away(struct client *clt)
{
	bool away = clt->sess.down || clt->sess.path.silent;
	struct dev *dev;

	list_for_each(dev, &clt->devs, link)
		away |= atomic_load(&dev->state) == DEV_LOST;
	LOCK_SCOPE(&clt->lock);
	clt->away = away;
	clt_tell(clt);
}

static void patience_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, patience_msg);

	clt_sess_lose_patience(&clt->sess);
	if (!clt->closing)
		loop_timer_set(clt->sess.loop, &clt->reopen_timer, clock_now_ms());
}

static void start_msg(struct loop_msg *msg)
{
	clt_sess_start(&container_of(msg, struct client, start_msg)->sess);
}

static void close_timer(struct loop_timer *timer)
{
	clt_sess_close(&container_of(timer, struct client, close_timer)->sess);
}

static void close_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, close_msg);

	clt->closing = true;
	loop_timer_cancel(&clt->reopen_timer);
	client_check_closed(clt);
	if (!list_empty(&clt->devs))
		loop_timer_set(clt->sess.loop, &clt->close_timer, clock_now_ms() + CLOSE_MS);
}

int client_init(struct client *clt, struct loop *loop, const struct clt_sess_conf *conf)
{
	static const struct clt_sess_ops ops = { dev_reopen_opening, clt_up, clt_down, clt_silence,
						  clt_failed, clt_closed };
	int r;

	memset(clt, 0, sizeof(*clt));
	clt->result = CLT_AGAIN;
	list_init(&clt->devs);
	list_init(&clt->ctl_line);
	clt_wait_init(&clt->event, NULL);
	clt_wait_init(&clt->away_event, NULL);
	dev_init(clt);
	dev_reopen_init(clt);
	loop_timer_init(&clt->close_timer, close_timer);
	loop_msg_init(&clt->start_msg, start_msg);
	loop_msg_init(&clt->close_msg, close_msg);
	loop_msg_init(&clt->patience_msg, patience_msg);
	clt->greeting = calloc(1, sizeof(*clt->greeting));
	if (!clt->greeting)
		return -ENOMEM;
	dev_ctl_init(clt->greeting, clt, NULL);
	r = clt_sess_init(&clt->sess, loop, conf, &ops);
	if (r < 0) {
		free(clt->greeting);
		return r;
	}
	pthread_mutex_init(&clt->lock, NULL);
	loop_post(loop, &clt->start_msg);
	return 0;
}

int client_wait_up(struct client *clt)
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

void client_close_start(struct client *clt)
{
	loop_post(clt->sess.loop, &clt->close_msg);
}

bool client_closed(struct client *clt)
{
	LOCK_SCOPE(&clt->lock);
	return clt->closed;
}

void client_close(struct client *clt)
{
	client_close_start(clt);
	while (!client_closed(clt))
		clt_wait_event(&clt->event);
}

bool client_wait_away(struct client *clt)
{
	for (;;) {
		bool away, closed;

		pthread_mutex_lock(&clt->lock);
		away = clt->away;
		closed = clt->closed;
		pthread_mutex_unlock(&clt->lock);
		if (away || closed)
			return !closed;
		clt_wait_event(&clt->away_event);
	}
}

void client_lose_patience(struct client *clt)
{
	loop_post(clt->sess.loop, &clt->patience_msg);
}

void client_fini(struct client *clt)
{
	clt_sess_fini(&clt->sess);
	free(clt->greeting);
	pthread_mutex_destroy(&clt->lock);
}
