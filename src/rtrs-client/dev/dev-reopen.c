/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages each time a path comes up: session info, then an OPEN for each device.
 *
 * Service thread.  A device that cannot be opened again is LOST: it is tried once a second, and
 * fails IO when io_timeout is over.
 *
 * Writes that are given up.  A write fails with io_timeout, or begins anew because the path came
 * back too small; its first copy may still be in the server's storage.  The buf_id of that copy
 * orders nothing any more, because a later write to the same place has another buf_id.  So the
 * client sends nothing to the device before the server's storage is done with all earlier requests.
 * The answer to CLOSE proves this, with every server (doc/protocol.md 8.6; requests that have
 * arrived and not begun are dropped with their path).  So the client opens the device, closes it
 * and opens it again. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "dev-priv.h"

#define REOPEN_MS 1000

static void handshake_next(struct client *clt);

/* ---- the handshake of a path ---- */

/* Unflushed writes may be gone when the server's host is another one, or went through a reboot, or
 * cannot be told apart from one that did. */
static void identity_check(struct client *clt, const struct rnbd_ext *ext)
{
	bool first = clt->peer == CLIENT_PEER_NEW;
	bool same = clt->peer == CLIENT_PEER_KNOWN && ext->valid &&
		    !memcmp(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	struct dev *dev;

	clt->peer = ext->valid ? CLIENT_PEER_KNOWN : CLIENT_PEER_UNKNOWN;
	clt->instance = ext->instance;
	clt->host = ext->host ? ext->host : clt->host;
	memcpy(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	if (first || same)
		return;
	/* ORDER: boot_epoch before dev_loss_unflushed(); dev_io_end() counts a write before it
	 * reads boot_epoch. */
	atomic_store(&clt->boot_epoch, clt_sess_epoch(&clt->sess));
	list_for_each(dev, &clt->devs, link) {
		if (!dev_loss_unflushed(&dev->loss))
			continue;
		dev_loss_found(&dev->loss, clt_sess_epoch(&clt->sess));
		log_err(dev->name, "%s: writes that were not flushed may be lost",
			ext->valid ? "the server's host was restarted, or a sync failed there" :
				     "the server cannot tell whether its host was restarted");
	}
}

static void greet(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	struct rnbd_sess_info info = {
		.ver = RNBD_PROTO_VER_MAJOR,
		.ext = { .valid = true, .features = RNBD_EXT_ALL },
	};

	rnbd_sess_info_encode(&ctl->msg.info, RNBD_MSG_SESS_INFO, &info);
	dev_ctl_send(ctl, sizeof(ctl->msg.info), sizeof(ctl->rsp.info), kind, done);
}

/* The answer: what the server is able to do, and who it is, in @ext.  0 or -errno. */
static int greeted(struct dev_ctl *ctl, struct rnbd_ext *ext)
{
	struct rnbd_sess_info info;
	int r = ctl->op.status;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_sess_info_decode(&ctl->rsp.info, sizeof(ctl->rsp.info), &info);
	if (r < 0)
		return r;
	*ext = info.ext;
	atomic_store(&ctl->clt->features, ext->valid ? ext->features : 0);
	return 0;
}

/* A sync may have failed between the server's last word of its identity and the OPEN of @dev, which
 * makes the server forget that failure (doc/decisions.md D13).  So the identity is asked for behind
 * the OPEN, before requests go on.  A sync that fails later stays latched, because @dev is open.
 * dev_loss_unflushed() says nothing here: parts of a write may be acknowledged, and the write not
 * yet. */
static bool may_hide_loss(const struct dev *dev)
{
	return dev->clt->peer == CLIENT_PEER_KNOWN && dev->mode != RNBD_ACCESS_RO &&
		dev->info.writeback;
}

/* ---- devices that are lost ---- */

static void dev_lost(struct dev *dev)
{
	dev->lost_since_ms = clock_now_ms();
	atomic_store(&dev->state, DEV_LOST);
}

/* Is the patience with a device that is LOST at its end?  Else when, at most @next_ms. */
static uint64_t dev_expire(struct dev *dev, uint64_t now, uint64_t next_ms)
{
	uint64_t timeout_ms = dev->clt->sess.io_timeout_ms;

	if (atomic_load(&dev->state) != DEV_LOST || timeout_ms == CLOCK_NEVER)
		return next_ms;
	if (now - dev->lost_since_ms < timeout_ms)
		return MIN(next_ms, dev->lost_since_ms + timeout_ms);
	log_err(dev->name, "not open for %llu ms: requests fail until it is",
		(unsigned long long)(now - dev->lost_since_ms));
	atomic_store(&dev->state, DEV_FAILED);
	clt_slot_wake(&dev->clt->sess.io);
	return next_ms;
}

/* Have a look at devices that are LOST or FAILED as long as there are any.  Not told by answers: an
 * OPEN may wait long for its own. */
static void reopen_arm(struct client *clt)
{
	uint64_t now = clock_now_ms(), next_ms = now + REOPEN_MS;
	struct dev *dev;
	bool any = false;

	list_for_each(dev, &clt->devs, link) {
		enum dev_state state = atomic_load(&dev->state);

		any |= state == DEV_LOST || state == DEV_FAILED;
		next_ms = dev_expire(dev, now, next_ms);
	}
	if (any && clt->state == CLIENT_OPEN)
		loop_timer_set(clt->sess.loop, &clt->reopen_timer, next_ms);
	client_tell_away(clt);
}

static bool dev_wants_reopen(const struct dev *dev)
{
	enum dev_state state = atomic_load(&dev->state);

	return !dev->ctl.done && (state == DEV_LOST || state == DEV_FAILED);
}

/* ---- settling ---- */

static void settle_closed(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;

	if (ctl->op.status == 0)
		atomic_store(&dev->settled_epoch, ctl->epoch);
	dev->settled(dev, ctl->op.status);
}

void dev_reopen_settle(struct dev *dev, void (*settled)(struct dev *dev, int status))
{
	dev->settled = settled;
	dev->open_epoch = 0;
	rnbd_close_encode(&dev->ctl.msg.close, atomic_load(&dev->id));
	dev_ctl_send(&dev->ctl, sizeof(dev->ctl.msg.close), 0, CLT_OP_BOUND, settle_closed);
}

/* Given up at the moment when the device was opened again: too late for settling it, requests are
 * in flight.  While the path still is OPENING none are, and handshake_done() settles @dev. */
static void given_up_msg(struct loop_msg *msg)
{
	struct dev *dev = container_of(msg, struct dev, given_up_msg);
	char why[RNBD_NAME_MAX + 64];

	if (!dev_unsettled(dev) || atomic_load(&dev->state) != DEV_OPEN ||
	    dev->open_epoch != clt_sess_epoch(&dev->clt->sess))
		return;
	snprintf(why, sizeof(why), "%s: a request from before was given up after it was opened",
		 dev->name);
	clt_sess_fail(&dev->clt->sess, -ECONNABORTED, why);
}

void dev_reopen_init_dev(struct dev *dev)
{
	loop_msg_init(&dev->given_up_msg, given_up_msg);
}

/* ---- opening again ---- */

static void reopen_done(struct dev_ctl *ctl);

static void reopen_settled(struct dev *dev, int status)
{
	if (atomic_load(&dev->state) == DEV_CLOSING)
		dev_pump(dev);
	else if (status == 0)
		dev_send_open(dev, CLT_OP_BOUND, reopen_done);
	/* Else by the timer, or the handshake of the next path. */
}

/* An OPEN after the first was answered.  Returns the result of dev_opened(), or -ECONNABORTED. */
static int reopen_answer(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	int r = ctl->op.status;

	if (r != -ECONNABORTED)
		r = dev_opened(ctl->dev, ctl, false);
	if (r == 0 || r == CLT_AGAIN)
		clt->files = CLIENT_FILES_SAME;
	else if ((r == -ESTALE || r == -ENOENT) && clt->files == CLIENT_FILES_UNSEEN)
		clt->files = CLIENT_FILES_OTHER;
	return r;
}

/* Opening @dev again has ended with @r, in the handshake or by the timer. */
static void reopen_result(struct dev *dev, int r)
{
	enum dev_state state = atomic_load(&dev->state);

	if (state == DEV_CLOSING) {
		dev_pump(dev);
		return;
	}
	if (r == 0) {
		dev_ready(dev);
		if (state != DEV_OPEN)
			log_warn(dev->name, "open again");
	}
	if (r == 0 || r == -ECONNABORTED)
		return;
	if (r < 0 && state == DEV_OPEN)
		log_err(dev->name, "cannot be opened again: %s", strerror(-r));
	if (state == DEV_OPEN)
		dev_lost(dev);
	if (r == CLT_AGAIN) {
		log_warn(dev->name,
			 "waits until the server's storage is done with what was given up");
		dev_reopen_settle(dev, reopen_settled);
	}
	reopen_arm(dev->clt);
}

static void reopen_end(struct dev *dev, int r)
{
	struct client *clt = dev->clt;

	reopen_result(dev, r);		/* @dev may be gone: it was CLOSING */
	clt_slot_wake(&clt->sess.io);
}

static void reopen_met(struct dev_ctl *ctl)
{
	struct rnbd_ext ext;
	int r = ctl->op.status == -ECONNABORTED ? -ECONNABORTED : greeted(ctl, &ext);

	if (r == 0)
		identity_check(ctl->clt, &ext);
	reopen_end(ctl->dev, r);
}

/* By the timer, long after the handshake. */
static void reopen_done(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	int r = reopen_answer(ctl);

	if (r == 0 && may_hide_loss(dev))
		greet(ctl, CLT_OP_BOUND, reopen_met);
	else
		reopen_end(dev, r);
}

static void reopen_timer(struct loop_timer *timer)
{
	struct client *clt = container_of(timer, struct client, reopen_timer);
	struct dev *dev;

	/* While no path is up, the next handshake opens the devices. */
	list_for_each(dev, &clt->devs, link) {
		if (clt_sess_is_up(&clt->sess) && dev_wants_reopen(dev))
			dev_send_open(dev, CLT_OP_BOUND, reopen_done);
	}
	reopen_arm(clt);
}

static void handshake_open_done(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	bool lost = ctl->op.status == -ECONNABORTED;

	clt->handshake = NULL;
	reopen_result(ctl->dev, reopen_answer(ctl));
	if (!lost)
		handshake_next(clt);
}

/* Answered, or ended with its path or session? */
static bool handshake_lost(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;

	clt->handshake = NULL;
	if (ctl->op.status != -ECONNABORTED && !clt_sess_is_closed(&clt->sess))
		return false;
	client_tell_closed(clt);
	return true;
}

static void refuse(struct client *clt, int r)
{
	char why[128];

	snprintf(why, sizeof(why), "SESS_INFO: %s", strerror(-r));
	clt_epoch_refuse(&clt->sess, r, why);
}

/* The devices are open again.  A request may have been given up behind the answer to its OPEN. */
static void handshake_done(struct client *clt)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (atomic_load(&dev->state) == DEV_OPEN && dev_unsettled(dev))
			reopen_result(dev, CLT_AGAIN);
	}
	clt_epoch_opened(&clt->sess);
}

static void met_again(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	int r;

	if (handshake_lost(ctl))
		return;
	r = greeted(ctl, &clt->met);
	if (r < 0) {
		refuse(clt, r);
		return;
	}
	identity_check(clt, &clt->met);
	handshake_done(clt);
}

static bool any_may_hide_loss(const struct client *clt)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (may_hide_loss(dev))
			return true;
	}
	return false;
}

/* The devices are asked for.  A server that has none of their files, while there are paths that may
 * lead elsewhere, is not the one that was lost: it does not keep that one's paths out, and that it
 * has another memory loses nothing. */
static void handshake_end(struct client *clt)
{
	if (clt->files == CLIENT_FILES_OTHER && clt->sess.io.natts > 1) {
		clt_epoch_refuse(&clt->sess, -ESTALE, "not the server that had the exports");
	} else if (clt->met.valid && any_may_hide_loss(clt)) {
		clt->handshake = clt->greeting;
		greet(clt->greeting, CLT_OP_HANDSHAKE, met_again);
	} else {
		identity_check(clt, &clt->met);
		handshake_done(clt);
	}
}

/* Open the next device that this epoch does not know yet. */
static void handshake_next(struct client *clt)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		enum dev_state state = atomic_load(&dev->state);

		if (dev->ctl.done || dev->tried_epoch == clt_sess_epoch(&clt->sess) ||
		    state == DEV_OPENING || state == DEV_CLOSING)
			continue;
		dev->tried_epoch = clt_sess_epoch(&clt->sess);
		dev_send_open(dev, CLT_OP_HANDSHAKE, handshake_open_done);
		clt->handshake = &dev->ctl;
		return;
	}
	handshake_end(clt);
}

/* One address may lead to the server as well as another one does.  With several paths, one that
 * leads to another machine is a mistake in a cable or a name, and whoever opens a device there
 * finds other data under its name. */
static bool is_another_machine(const struct client *clt, const struct rnbd_ext *ext)
{
	return clt->sess.io.natts > 1 && clt->host && ext->host && clt->host != ext->host;
}

static void sess_info_done(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	int r;

	if (handshake_lost(ctl))
		return;
	r = greeted(ctl, &clt->met);
	if (r < 0)
		refuse(clt, r);
	else if (is_another_machine(clt, &clt->met))
		clt_epoch_refuse(&clt->sess, -ESTALE,
				 "another machine than the paths led to before");
	else
		handshake_next(clt);
}

/* Two addresses may be those of two servers, or of one that was started again.  Kernels do not say
 * who they are. */
static void join_done(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	struct rnbd_sess_info info;
	int r = ctl->op.status;

	if (handshake_lost(ctl))
		return;
	if (r == 0)
		r = rnbd_sess_info_decode(&ctl->rsp.info, sizeof(ctl->rsp.info), &info);
	if (r != 0)
		refuse(clt, r);
	else if (info.ext.instance != clt->instance)
		clt_epoch_refuse(&clt->sess, -ESTALE,
				 "not the server that the other paths lead to");
	else
		clt_epoch_opened(&clt->sess);
}

void dev_reopen_joining(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	clt->handshake = clt->greeting;
	greet(clt->greeting, CLT_OP_JOIN, join_done);
}

void dev_reopen_opening(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	clt->files = CLIENT_FILES_UNSEEN;
	clt->handshake = clt->greeting;
	greet(clt->greeting, CLT_OP_HANDSHAKE, sess_info_done);
}

void dev_reopen_init(struct client *clt)
{
	loop_timer_init(&clt->reopen_timer, reopen_timer);
}
