/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells waiting threads whether a session is up, away or closed.
 *
 * Service thread.  Owns the fields under clt->lock.  Closes the session when its last device is
 * gone. */
#include <stdio.h>

#include "cleanup.h"
#include "dev-priv.h"

/* Wake the threads that wait for @clt.  lock held. */
static void wake_waiters(struct client *clt)
{
	clt_wait_look(&clt->event);
	clt_wait_look(&clt->away_event);
}

void client_tell_up(struct client *clt)
{
	LOCK_SCOPE(&clt->lock);
	clt->result = 0;
	wake_waiters(clt);
}

void client_tell_failed(struct client *clt, int err, const char *cause)
{
	LOCK_SCOPE(&clt->lock);
	if (clt->result != CLT_AGAIN)
		return;
	clt->result = err;
	snprintf(clt->cause, sizeof(clt->cause), "%s", cause);
	wake_waiters(clt);
}

void client_tell_away(struct client *clt)
{
	bool away = clt_sess_is_away(&clt->sess) || clt->requests == CLIENT_REQUESTS_HELD;
	struct dev *dev;

	list_for_each(dev, &clt->devs, link)
		away |= dev_is_in(dev, 1u << DEV_LOST | 1u << DEV_AWAITED);
	LOCK_SCOPE(&clt->lock);
	clt->away = away;
	wake_waiters(clt);
}

void client_tell_closed(struct client *clt)
{
	if (clt->state == CLIENT_OPEN || !list_empty(&clt->devs))
		return;
	if (!clt_sess_is_closed(&clt->sess)) {
		clt_sess_close(&clt->sess);
		return;
	}
	if (atomic_load(&clt->handshake) != DEV_HANDSHAKE_IDLE)
		return;			/* called again at the end of the message */
	LOCK_SCOPE(&clt->lock);
	clt->state = CLIENT_CLOSED;
	wake_waiters(clt);
}
