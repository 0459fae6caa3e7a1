/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches the export of a gateway while nobody has it open: an export that the server has refused
 * is asked for again, so that "rtrsctl check" names it until the server gives it.
 *
 * The happy path: the answer to each OPEN of the name is noted; after a refusal the watch opens the
 * export each 5 s until the server gives it, and closes it at once.  So it does when a server comes
 * back, in a further epoch.  A question takes part in no wait of others: it ends with the first
 * answer.  While the session is down nothing is asked.
 *
 * Service thread.  The client owns the watch, from dev_watch_start() to client_fini(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "dev.h"

#define WATCH_MS 5000

/* A device that has the name says by its own state how it is. */
static bool is_in_use(const struct dev_watch *w)
{
	struct dev *dev;

	dev_for_each(dev, w->clt) {
		if (!strcmp(dev->name, w->name) && dev_has_name(dev))
			return true;
	}
	return false;
}

/* True if the server gives the export, or another client writes to it. */
static bool is_well(const struct dev_watch *w)
{
	return w->status == 0 || w->status == -EPERM ||
	       (w->needs == DEV_WATCH_ANY && (w->status == -EROFS || w->status == -EACCES));
}

static void watch_asked(struct dev_open_req *req)
{
	struct dev_watch *w = container_of(req, struct dev_watch, req);

	w->state = WATCH_RESTS;
	if (req->status == 0)
		dev_close(req->dev);
}

static void watch_timer(struct loop_timer *timer)
{
	struct dev_watch *w = container_of(timer, struct dev_watch, timer);
	bool up = clt_sess_is_up(&w->clt->sess), used = is_in_use(w);
	unsigned epoch = clt_sess_epoch(&w->clt->sess);

	if (up && (used || !w->epoch))
		w->epoch = epoch;
	if (w->state == WATCH_RESTS && up && !used && (!is_well(w) || w->epoch != epoch)) {
		w->state = WATCH_ASKS;
		w->epoch = epoch;
		w->req = (struct dev_open_req){ .name = w->name, .mode = w->mode,
						.patience = DEV_OPEN_ONCE, .done = watch_asked };
		dev_open_start(w->clt, &w->req);
	}
	loop_timer_set(w->clt->sess.loop, timer, clock_now_ms() + WATCH_MS);
}

static void start_msg(struct loop_msg *msg)
{
	struct dev_watch *w = container_of(msg, struct dev_watch, start_msg);

	if (w->clt->state == CLIENT_OPEN)
		loop_timer_set(w->clt->sess.loop, &w->timer, clock_now_ms() + WATCH_MS);
}

const char *dev_watch_refused(const struct client *clt, const char **name, uint64_t *ms)
{
	const struct dev_watch *w = clt->watch;

	if (!w || is_well(w) || w->status == CLT_AGAIN || is_in_use(w))
		return NULL;
	*name = w->name;
	*ms = clock_now_ms() - w->since_ms;
	return dev_why(w->status, w->refusal);
}

int dev_watch_start(struct client *clt, const char *name, enum rnbd_access_mode mode,
		    enum dev_watch_needs needs, bool known)
{
	struct dev_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->clt = clt;
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->mode = mode;
	w->needs = needs;
	w->status = known ? 0 : CLT_AGAIN;
	loop_timer_init(&w->timer, watch_timer);
	loop_msg_init(&w->start_msg, start_msg);
	clt->watch = w;
	loop_post(clt->sess.loop, &w->start_msg);
	return 0;
}

void dev_watch_stop(struct client *clt)
{
	if (clt->watch)
		loop_timer_cancel(&clt->watch->timer);
}
