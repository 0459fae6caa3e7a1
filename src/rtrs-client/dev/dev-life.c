/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the life of a device: the table of its states, and the actions of the rows.
 *
 * Service thread.  A device has at most one message under way, dev->ctl: an OPEN, the SESS_INFO
 * behind the OPEN, or a CLOSE; the answer is the next event.  A device that fails to open again is
 * LOST: a timer opens the device once a second, and IO fails when io_timeout is over.  A device
 * ends after its last reference was dropped, and CLOSE was answered or the path of the device is
 * gone. */
#define FSM_PREFIX DEV_

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "dev.h"
#include "log.h"

#define REOPEN_MS 1000

void dev_life_event(struct dev *dev, enum dev_event event)
{
	fsm_run(&dev_fsm, dev->name, &dev->state, event, dev);
}

/* ---- answers ---- */

void dev_life_answer(struct dev *dev, int r)
{
	dev->error = MIN(r, 0);
	dev_life_event(dev, r == 0 ? DEV_EV_OPENED : r == CLT_AGAIN ? DEV_EV_UNSETTLED :
		       r == -ECONNABORTED ? DEV_EV_ABORTED : DEV_EV_REFUSED);
}

/* True if somebody waits for @dev until the server has its storage. */
static bool is_awaited(const struct dev *dev)
{
	const struct dev_open_req *req;

	list_for_each(req, &dev->opens, link) {
		if (req->patience == DEV_OPEN_WAITS)
			return true;
	}
	return false;
}

/* True if @r, of the first OPEN of @dev, asks for another OPEN: the storage is missing, or the
 * server was not done with opening it when the server's time for an OPEN was over.  A probe does
 * not wait. */
static bool is_later(const struct dev *dev, int r)
{
	bool later = r == -EAGAIN || (r < 0 && dev->refusal == RNBD_REFUSES_OPENING);

	return later && (atomic_load(&dev->clt->features) & RNBD_EXT_LATER) &&
	       dev->clt->kind == CLIENT_STAYS && is_awaited(dev);
}

static void opened_first(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	int r = dev_answer(dev, ctl, true);

	if (is_later(dev, r)) {
		dev->error = r;
		dev_life_event(dev, DEV_EV_LATER);
		return;
	}
	if (r != -ECONNABORTED || !clt_sess_expired(&dev->clt->sess)) {
		dev_life_answer(dev, r);
		return;
	}
	dev->error = r;
	dev_life_event(dev, DEV_EV_REFUSED);	/* waiting for a path is over */
}

/* By the timer, or when the device is settled: long after the handshake. */
static void life_reopened(struct dev *dev, int r)
{
	struct clt_io *io = &dev->clt->sess.io;

	dev_life_answer(dev, r);	/* frees a @dev that was CLOSING */
	clt_slot_wake(io);
}

static void life_settled(struct dev *dev, int status)
{
	dev->error = status;
	dev_life_event(dev, status == 0 ? DEV_EV_SETTLED : status == -ECONNABORTED ?
		       DEV_EV_ABORTED : DEV_EV_STUCK);
}

/* ---- opening again a device that did not come back in the handshake ----
 *
 * OPEN, then SESS_INFO if the OPEN may hide a loss.  In a handshake dev-handshake.c sends the same
 * messages, for all devices. */

static void reopen_met(struct dev_ctl *ctl)
{
	struct rnbd_ext ext;
	int r = ctl->op.status == -ECONNABORTED ? -ECONNABORTED : dev_greet_answer(ctl, &ext);

	if (r == 0)
		dev_greet_believe(ctl->clt, &ext);
	life_reopened(ctl->dev, r);
}

static void reopen_ended(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	int r = dev_reopen_answer(ctl);

	if (r == 0 && dev_greet_behind_open(dev))
		dev_greet(ctl, CLT_OP_BOUND, reopen_met);
	else
		life_reopened(dev, r);
}

/* Open @dev, which was open before.  life_reopened() takes the result of dev_reopen_answer(), or of
 * the SESS_INFO behind the OPEN. */
static void reopen(struct dev *dev)
{
	dev_ctl_open(&dev->ctl, CLT_OP_BOUND, reopen_ended);
}

int dev_reopen_answer(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	int r = ctl->op.status;

	if (r != -ECONNABORTED)
		r = dev_answer(ctl->dev, ctl, false);
	if (r == 0 || r == CLT_AGAIN)
		clt->files = CLIENT_FILES_SAME;
	else if ((r == -ESTALE || r == -ENOENT) && clt->files == CLIENT_FILES_UNSEEN)
		clt->files = CLIENT_FILES_OTHER;
	return r;
}

/* ---- lost and awaited devices ---- */

/* Fail the IO, or the open requests, of @dev if the device is LOST or AWAITED and io_timeout is
 * over.  Returns when io_timeout will be over, at most @next_ms. */
static uint64_t expire_lost_device(struct dev *dev, uint64_t now, uint64_t next_ms)
{
	uint64_t timeout_ms = dev->clt->sess.io_timeout_ms;

	if (!dev_is_in(dev, 1u << DEV_LOST | 1u << DEV_AWAITED) || timeout_ms == CLOCK_NEVER)
		return next_ms;
	if (now - dev->lost_since_ms < timeout_ms)
		return MIN(next_ms, dev->lost_since_ms + timeout_ms);
	dev_life_event(dev, DEV_EV_EXPIRED);
	return next_ms;
}

/* Set the timer while any device is LOST, FAILED or AWAITED.  The timer does not wait for the
 * answer to an OPEN, which may take long. */
static void look_after_lost(struct client *clt)
{
	uint64_t now = clock_now_ms(), next_ms = now + REOPEN_MS;
	struct dev *dev, *next;
	bool any = false;

	list_for_each_safe(dev, next, &clt->devs, link) {
		any |= dev_is_in(dev, DEV_AWAY | 1u << DEV_AWAITED);
		next_ms = expire_lost_device(dev, now, next_ms);
	}
	if (any && clt->state == CLIENT_OPEN)
		loop_timer_set(clt->sess.loop, &clt->reopen_timer, next_ms);
	client_tell_away(clt);
}

static void reopen_timer(struct loop_timer *timer)
{
	struct client *clt = container_of(timer, struct client, reopen_timer);
	struct dev *dev;

	/* While no path is up, the next handshake opens the devices. */
	list_for_each(dev, &clt->devs, link) {
		if (!clt_sess_is_up(&clt->sess) || dev->ctl.done)
			continue;
		if (dev_is_in(dev, DEV_AWAY))
			reopen(dev);
		else if (dev_is_in(dev, 1u << DEV_AWAITED))
			dev_life_event(dev, DEV_EV_WANTED);
	}
	look_after_lost(clt);
}

void dev_life_close(struct client *clt)
{
	struct dev *dev, *next;

	list_for_each_safe(dev, next, &clt->devs, link) {
		if (!dev_is_in(dev, 1u << DEV_AWAITED))
			continue;
		dev->error = -ESHUTDOWN;
		dev_life_event(dev, DEV_EV_EXPIRED);
	}
}

void dev_life_init(struct client *clt)
{
	loop_timer_init(&clt->reopen_timer, reopen_timer);
}

/* ---- actions: open ---- */

static void open_first(void *object)
{
	struct dev *dev = object;

	dev_ctl_open(&dev->ctl, CLT_OP_FREE, opened_first);
}

static void settle_device(void *object)
{
	dev_settle(object, life_settled);
}

static void reopen_device(void *object)
{
	reopen(object);
}

/* The program of the session ends, and nobody waits for the server any more. */
static int status_at_end(const struct dev *dev, int status)
{
	bool waited = status == -EIO || status == -ECONNABORTED || status == -EAGAIN;

	return waited && clt_sess_is_impatient(&dev->clt->sess) ? -ESHUTDOWN : status;
}

static void tell_openers(struct dev *dev, int status)
{
	struct dev_open_req *req;

	status = status_at_end(dev, status);
	dev_watch_note(dev, status);
	while ((req = list_pop_entry(&dev->opens, struct dev_open_req, link))) {
		req->status = status;
		req->refusal = status ? dev->refusal : RNBD_REFUSES_NOT;
		req->dev = status ? NULL : dev;
		dev->refs += !status;
		req->done(req);
	}
}

static void give_device(void *object)
{
	tell_openers(object, 0);
}

/* ---- actions: lost, and back ---- */

static void tell_back(void *object)
{
	const struct dev *dev = object;

	log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, DEVICE_OPENED), dev->name, "open again");
}

static void wait_on(void *object)
{
	look_after_lost(((struct dev *)object)->clt);
}

/* The time of the wait is that of the first OPEN. */
static void await_device(void *object)
{
	struct dev *dev = object;

	if (!dev->lost_since_ms) {
		dev->lost_since_ms = clock_now_ms();
		log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
			  "the server cannot open its storage now: waiting for it");
	}
	wait_on(dev);
}

static void lose_device(void *object)
{
	struct dev *dev = object;

	log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
		  "cannot be opened again: %s", dev_why(dev->error, dev->refusal));
	dev->lost_since_ms = clock_now_ms();
	wait_on(dev);
}

static void settle_lost_device(void *object)
{
	struct dev *dev = object;

	log_warn(dev->name, "waits for the end of abandoned requests in the server's storage");
	settle_device(dev);
	wait_on(dev);
}

static void lose_unsettled_device(void *object)
{
	struct dev *dev = object;

	dev->lost_since_ms = clock_now_ms();
	settle_lost_device(dev);
}

static void fail_io(void *object)
{
	struct dev *dev = object;

	log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
		  "not open for %llu ms: requests fail until it is",
		  (unsigned long long)(clock_now_ms() - dev->lost_since_ms));
	clt_slot_wake(&dev->clt->sess.io);
}

/* ---- actions: another export has the name ---- */

static void tell_replaced(void *object)
{
	const struct dev *dev = object;

	log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
		  "was closed by the server, or another export has its name there: new clients get "
		  "the current export, and clients that have it open keep the old one");
}

static void tell_stale(void *object)
{
	struct dev *dev = object;

	log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
		  "is gone from the server: requests of clients that opened it before another "
		  "export had its name fail");
	clt_slot_wake(&dev->clt->sess.io);
}

/* ---- actions: the end ---- */

/* Close @dev, unless a message is under way: its end calls again. */
static void close_on_server(void *object)
{
	struct dev *dev = object;

	if (dev->ctl.done)
		return;
	if (dev->open_epoch == clt_sess_epoch(&dev->clt->sess))
		settle_device(dev);
	else			/* the server closes devices when their epoch ends */
		dev_life_event(dev, list_empty(&dev->opens) ? DEV_EV_CLOSED : DEV_EV_REBORN);
}

/* The user opened @dev during CLOSING: a new life for the same name. */
static void begin_again(void *object)
{
	struct dev *dev = object;

	dev->mode = list_entry(dev->opens.next, struct dev_open_req, link)->mode;
	dev->lost_since_ms = 0;
	dev_loss_reset(&dev->loss);
	open_first(dev);
}

static void destroy_device(void *object)
{
	struct dev *dev = object;
	struct client *clt = dev->clt;

	assert(!dev->ctl.done && !dev->look.done && !dev->refs && list_empty(&dev->opens));
	dev_settle_fini(dev);
	list_del(&dev->link);
	dev_loss_fini(&dev->loss);
	range_lock_fini(&dev->ranges);
	free(dev);
	client_tell_closed(clt);
}

static void refuse_openers(void *object)
{
	struct dev *dev = object;

	tell_openers(dev, dev->error);
	destroy_device(dev);
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	ROW(IN(NEW), WANTED, OPENING, open_first),
	ROW(IN(OPENING), OPENED, OPEN, give_device),
	ROW(IN(OPENING), UNSETTLED, OPENING, settle_device),
	ROW(IN(OPENING), SETTLED, OPENING, open_first),
	ROW(IN(OPENING), ABORTED, OPENING, open_first),	/* again, on the next path */
	ROW(IN(OPENING), LATER, AWAITED, await_device),
	ROW(IN(AWAITED), WANTED, OPENING, open_first),
	ROW(IN(AWAITED), EXPIRED, GONE, refuse_openers),
	ROW(IN(OPENING), REFUSED, GONE, refuse_openers),
	ROW(IN(OPENING), STUCK, GONE, refuse_openers),

	ROW(IN(OPEN), WANTED, OPEN, give_device),
	ROW(IN(LOST), WANTED, LOST, give_device),
	ROW(IN(FAILED), WANTED, FAILED, give_device),

	ROW(IN(OPEN), REFUSED, LOST, lose_device),
	ROW(IN(OPEN), UNSETTLED, LOST, lose_unsettled_device),
	ROW(IN(LOST), REFUSED, LOST, wait_on),
	ROW(IN(LOST), UNSETTLED, LOST, settle_lost_device),
	ROW(IN(LOST), SETTLED, LOST, reopen_device),
	ROW(IN(LOST), EXPIRED, FAILED, fail_io),
	ROW(IN(FAILED), REFUSED, FAILED, wait_on),
	ROW(IN(FAILED), UNSETTLED, FAILED, settle_lost_device),
	ROW(IN(FAILED), SETTLED, FAILED, reopen_device),
	ROW(DEV_AWAY, OPENED, OPEN, tell_back),

	ROW(IN(OPEN), RENAMED, REPLACED, tell_replaced),
	ROW(IN(REPLACED), EPOCH, STALE, tell_stale),

	ROW(DEV_IN_USE | DEV_OUTDATED, DROPPED, CLOSING, close_on_server),
	/* The message under way has ended, well or not. */
	ROW(IN(CLOSING), OPENED, CLOSING, close_on_server),
	ROW(IN(CLOSING), UNSETTLED, CLOSING, close_on_server),
	ROW(IN(CLOSING), REFUSED, CLOSING, close_on_server),
	ROW(IN(CLOSING), ABORTED, CLOSING, close_on_server),
	ROW(IN(CLOSING), SETTLED, CLOSING, close_on_server),
	ROW(IN(CLOSING), STUCK, CLOSING, close_on_server),
	ROW(IN(CLOSING), REBORN, OPENING, begin_again),
	ROW(IN(CLOSING), CLOSED, GONE, destroy_device),

	STAY(IN(OPENING) | IN(CLOSING), WANTED),	/* the message under way ends first */
	STAY(IN(OPEN), OPENED),
	/* The handshake of the next path opens the device, or the timer. */
	STAY(DEV_IN_USE, ABORTED),
	STAY(DEV_AWAY, STUCK),
};

static const char *const states[DEV_NSTATES] = {
	"new", "opening", "awaited", "open", "lost", "failed", "replaced", "stale", "closing",
	"gone",
};

static const char *const events[DEV_NEVENTS] = {
	"wanted", "opened", "unsettled", "refused", "later", "aborted", "settled", "stuck",
	"renamed", "epoch", "expired", "dropped", "closed", "reborn",
};

const struct fsm dev_fsm = FSM("device", rows, states, events);
