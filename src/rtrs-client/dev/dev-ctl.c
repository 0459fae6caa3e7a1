/* SPDX-License-Identifier: BSD-3-Clause */
/* User messages of control and their answers: OPEN and CLOSE of devices; SESS_INFO, by which a
 * server reports its features and its identity; a list of its exports.
 *
 * Service thread.  Each device has at most one message in flight (dev-life.c); the handshake, too
 * (dev-handshake.c). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "dev.h"
#include "log.h"
#include "rnbd-ext.h"

static size_t ctl_encode(const struct clt_op *op, uint64_t off, uint32_t len, uint32_t tag,
			 uint8_t *usr)
{
	const struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);

	memcpy(usr, &ctl->msg, ctl->len);
	return ctl->len;
}

/* A message whose path was lost: send it again if another path is up.  The server may carry out
 * each message twice. */
static int ctl_lost(const struct clt_op *op)
{
	const struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);

	if (!clt_op_is_handshake(op) && clt_sess_is_up(&ctl->clt->sess))
		return CLT_AGAIN;
	return -ECONNABORTED;
}

/* A bound message is sent only in the epoch of its ctl_send(). */
static int ctl_ready(const struct clt_op *op)
{
	const struct dev_ctl *ctl = container_of(op, struct dev_ctl, op);

	if (ctl->feature && ctl->clt->peer == CLIENT_PEER_NEW)
		return CLT_AGAIN;	/* the server's features are not known yet */
	if (ctl->feature && !(atomic_load(&ctl->clt->features) & ctl->feature))
		return -EOPNOTSUPP;
	return op->kind == CLT_OP_BOUND ? clt_epoch_bound(&ctl->clt->sess, ctl->epoch) : 0;
}

static void ctl_begin(struct dev_ctl *ctl)
{
	ctl->clt->nctl++;
	loop_post(ctl->clt->sess.loop, &ctl->step_msg);
}

/* A handshake has one message at a time, which is not counted. */
static void ctl_ended(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	struct list *next;

	if (clt_op_is_handshake(&ctl->op))
		return;
	clt->nctl--;
	next = list_pop(&clt->ctl_line);
	if (next)
		ctl_begin(list_entry(next, struct dev_ctl, link));
}

static void ctl_step(struct loop_msg *msg)
{
	struct dev_ctl *ctl = container_of(msg, struct dev_ctl, step_msg);
	void (*done)(struct dev_ctl *ctl) = ctl->done;

	if (!clt_op_step(&ctl->op))
		return;
	loop_unpost(ctl->clt->sess.loop, msg);
	ctl->done = NULL;
	ctl_ended(ctl);
	done(ctl);
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

/* Send the first ctl->len bytes of @ctl->msg, with @len bytes of data in @data, to the server or
 * from there. */
static void ctl_send(struct dev_ctl *ctl, enum rtrs_dir dir, void *data, uint32_t len,
		     enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	struct clt_op *op = &ctl->op;

	assert(!ctl->done);
	ctl->epoch = clt_sess_epoch(&ctl->clt->sess);
	ctl->done = done;
	op->io = &ctl->clt->sess.io;
	op->dir = dir;
	op->kind = kind;
	op->via = ctl->clt->sess.opening ? &ctl->clt->sess.opening->att : NULL;
	op->buf = data;
	op->len = len;
	op->part_max = UINT32_MAX;
	op->encode = ctl_encode;
	op->ready = ctl_ready;
	op->lost = ctl_lost;
	op->of = ctl->dev;
	op->began_ns = clock_measure_ns();
	clt_op_start(op, ctl_wake);
	if (clt_op_is_handshake(op))
		loop_post(ctl->clt->sess.loop, &ctl->step_msg);
	else if (ctl->clt->nctl < DEV_CTL_MAX)
		ctl_begin(ctl);
	else
		list_add_tail(&ctl->clt->ctl_line, &ctl->link);
}

/* Send the first @len bytes of @ctl->msg.  @answer: bytes of the reply, 0 for none. */
static void ctl_ask(struct dev_ctl *ctl, size_t len, uint32_t answer, enum clt_op_kind kind,
		    void (*done)(struct dev_ctl *ctl))
{
	ctl->len = len;
	ctl_send(ctl, answer ? RTRS_DIR_READ : RTRS_DIR_WRITE,
		 !answer ? NULL : ctl->into ? ctl->into : &ctl->rsp, answer, kind, done);
}

void dev_ctl_probe(struct dev_ctl *ctl, enum rtrs_dir dir, void *data, uint32_t len,
		   enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	rnbd_probe_encode(&ctl->msg.probe);
	ctl->len = sizeof(ctl->msg.probe);
	ctl_send(ctl, dir, data, len, kind, done);
}

void dev_ctl_open(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	const struct dev *dev = ctl->dev;

	rnbd_open_encode(&ctl->msg.open, dev->name, dev->mode);
	/* Of two writers one may be the process before, which only such a server ends. */
	ctl->feature = dev->kept && dev->mode == RNBD_ACCESS_MIGRATION ? RNBD_EXT_LINEAGE : 0;
	ctl->msg.open.flags = dev_is_in(dev, DEV_IN_USE) ? RNBD_OPEN_TAKE_OVER : 0;
	ctl_ask(ctl, sizeof(ctl->msg.open), sizeof(ctl->rsp.open), kind, done);
}

void dev_ctl_close(struct dev_ctl *ctl, uint32_t id, void (*done)(struct dev_ctl *ctl))
{
	rnbd_close_encode(&ctl->msg.close, id);
	ctl_ask(ctl, sizeof(ctl->msg.close), 0, CLT_OP_BOUND, done);
}

/* ---- SESS_INFO ----
 * The client knows of the server: clt->features, boot_epoch, peer, boot_id, instance, host,
 * epoch_features and place. */

void dev_greet(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	struct rnbd_sess_info info = {
		.ver = RNBD_PROTO_VER_MAJOR,
		.ext = { .valid = true, .features = RNBD_EXT_ALL | RNBD_EXT_SHARED },
	};

	if (ctl->clt->sess.path_conf.digest != RTRS_DIGEST_NONE)
		info.ext.features |= RNBD_EXT_DIGEST;
	rnbd_sess_info_encode(&ctl->msg.info, RNBD_MSG_SESS_INFO, &info);
	ctl_ask(ctl, sizeof(ctl->msg.info), sizeof(ctl->rsp.info), kind, done);
}

int dev_greet_who(const struct dev_ctl *ctl, struct rnbd_ext *ext)
{
	struct rnbd_sess_info info;
	int r = ctl->op.status;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_sess_info_decode(&ctl->rsp.info, sizeof(ctl->rsp.info), &info);
	if (r == 0)
		*ext = info.ext;
	return r;
}

void dev_greet_use(struct client *clt, const struct rnbd_ext *ext)
{
	atomic_store(&clt->features, ext->valid ? ext->features : 0);
}

int dev_greet_answer(struct dev_ctl *ctl, struct rnbd_ext *ext)
{
	int r = dev_greet_who(ctl, ext);

	if (r == 0)
		dev_greet_use(ctl->clt, ext);
	return r;
}

void dev_greet_lose(struct dev *dev, const char *why)
{
	struct client *clt = dev->clt;

	/* ORDER: boot_epoch before dev_loss_unflushed(); dev_io_end() counts a write before it
	 * reads boot_epoch. */
	atomic_store(&clt->boot_epoch, clt_sess_epoch(&clt->sess));
	if (!dev_loss_unflushed(&dev->loss))
		return;
	dev_loss_found(&dev->loss, clt_sess_epoch(&clt->sess));
	log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, WRITES_LOST), dev->name,
		  "%s: writes that were not flushed may be lost", why);
}

void dev_greet_believe(struct client *clt, const struct rnbd_ext *ext)
{
	bool first = clt->peer == CLIENT_PEER_NEW;
	bool accepted = clt->place == CLIENT_PLACE_GIVEN && ext->host == clt->other_host;
	bool same = clt->peer == CLIENT_PEER_KNOWN && ext->valid && !accepted &&
		    !memcmp(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	const char *why = accepted ? "another machine was accepted in the place of the server" :
		ext->valid ? "the server's host was restarted, or a sync failed there" :
		"the server does not know whether its host was restarted";
	struct dev *dev;

	clt->peer = ext->valid ? CLIENT_PEER_KNOWN : CLIENT_PEER_UNKNOWN;
	clt->instance = ext->instance;
	clt->host = ext->host ? ext->host : clt->host;
	clt->epoch_features = ext->valid ? ext->features : 0;
	clt->place = CLIENT_PLACE_KEPT;
	memcpy(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	if (!first && !same) {
		atomic_store(&clt->boot_epoch, clt_sess_epoch(&clt->sess));
		list_for_each(dev, &clt->devs, link)
			dev_greet_lose(dev, why);
	}
	dev_kept_server(clt);
}

/* dev_loss_unflushed() proves nothing here: the server may have acknowledged some parts of a write,
 * and not yet the whole. */
bool dev_greet_behind_open(const struct dev *dev)
{
	return dev->clt->peer == CLIENT_PEER_KNOWN && dev->mode != RNBD_ACCESS_RO &&
		dev->info.writeback;
}

/* ---- the names of the server's exports ----
 *
 * A question belongs to this file while it is under way.  The server's answer is checked name by
 * name; a wrong name ends the whole question. */

struct asking {
	struct dev_ctl ctl;
	struct dev_list list;
	unsigned room;			/* names that list.names has room for */
	struct loop_msg msg;
	dev_list_fn *done;
	void *arg;
	uint8_t answer[RNBD_LIST_ROOM];
};

static void asking_send(struct asking *a);

static void asking_end(struct asking *a, int status)
{
	a->done(a->arg, status, &a->list);
	dev_list_fini(&a->list);
	free(a);
}

/* Make room for @n names; false: no memory. */
static bool make_room(struct asking *a, unsigned n)
{
	unsigned room = MAX(n, 2 * a->room);
	void *names;

	if (n <= a->room)
		return true;
	names = realloc(a->list.names, room * sizeof(*a->list.names));
	if (!names)
		return false;
	a->list.names = names;
	a->room = room;
	return true;
}

/* Take the names of the answer.  0: the list is complete; CLT_AGAIN: ask for more; or -errno. */
static int take_names(struct asking *a)
{
	struct dev_list *list = &a->list;
	struct rnbd_list_reader r;

	if (rnbd_list_rsp_decode(a->answer, RNBD_LIST_ROOM, &r))
		return -EBADMSG;
	for (uint32_t i = 0; i < r.n && list->n < DEV_LIST_MAX; i++) {
		if (!make_room(a, list->n + 1))
			return -ENOMEM;
		if (rnbd_list_rsp_name(&r, list->names[list->n]))
			return -EBADMSG;
		list->n++;
	}
	return r.left && list->n < DEV_LIST_MAX ? CLT_AGAIN : 0;
}

static void asking_answered(struct dev_ctl *ctl)
{
	struct asking *a = container_of(ctl, struct asking, ctl);
	int r = ctl->op.status;

	if (r == -ECONNABORTED && !clt_sess_expired(&ctl->clt->sess))
		r = CLT_AGAIN;		/* on the next path */
	else if (r == 0)
		r = take_names(a);
	if (r == CLT_AGAIN)
		asking_send(a);
	else
		asking_end(a, r);
}

static void asking_send(struct asking *a)
{
	rnbd_list_encode(&a->ctl.msg.list, a->list.n);
	ctl_ask(&a->ctl, sizeof(a->ctl.msg.list), RNBD_LIST_ROOM, CLT_OP_FREE, asking_answered);
}

static void asking_msg(struct loop_msg *msg)
{
	struct asking *a = container_of(msg, struct asking, msg);

	if (a->ctl.clt->state == CLIENT_OPEN)
		asking_send(a);
	else
		asking_end(a, -ESHUTDOWN);
}

int dev_list_start(struct client *clt, dev_list_fn *done, void *arg)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->done = done;
	a->arg = arg;
	dev_ctl_init(&a->ctl, clt, NULL);
	a->ctl.into = a->answer;
	a->ctl.feature = RNBD_EXT_LIST;
	loop_msg_init(&a->msg, asking_msg);
	loop_post(clt->sess.loop, &a->msg);
	return 0;
}

/* A thread that waits. */
struct list_call {
	struct dev_list *list;
	struct clt_waiter waiter;
	int status;
};

static void call_done(void *arg, int status, struct dev_list *list)
{
	struct list_call *w = arg;

	*w->list = *list;
	*list = (struct dev_list){ 0 };
	w->status = status;
	clt_wait_count(&w->waiter);
}

int dev_list(struct client *clt, struct dev_list *list)
{
	struct list_call w = { .list = list };
	int r;

	*list = (struct dev_list){ 0 };
	clt_wait_init(&w.waiter, clt->sess.io.wait, NULL);
	r = dev_list_start(clt, call_done, &w);
	if (r < 0)
		return r;
	clt_wait_event(&w.waiter);
	return w.status;
}

void dev_list_fini(struct dev_list *list)
{
	free(list->names);
	*list = (struct dev_list){ 0 };
}
