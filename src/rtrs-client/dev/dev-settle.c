/* SPDX-License-Identifier: BSD-3-Clause */
/* Given-up writes.
 *
 * A write fails with io_timeout, or begins again because the path came back too small; its first
 * copy may still be in the server's storage.  The buf_id of the first copy orders nothing any more,
 * because a later write to the same place has another buf_id.  So the client sends nothing to the
 * device before the server's storage is done with all earlier requests.  The answer to CLOSE proves
 * this, with every server (doc/protocol.md 8.6; a server drops a request that has arrived, and
 * not begun, with its path).  So the client opens the device, closes it and opens it again.
 *
 * Service thread.  Owns dev->settled_epoch. */
#include <errno.h>
#include <stdio.h>

#include "dev-priv.h"

static void settle_closed(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;

	if (ctl->op.status == 0)
		atomic_store(&dev->settled_epoch, ctl->epoch);
	dev->answered(dev, ctl->op.status);
}

void dev_settle(struct dev *dev, void (*answered)(struct dev *dev, int status))
{
	dev->answered = answered;
	dev->open_epoch = 0;
	dev_ctl_close(&dev->ctl, atomic_load(&dev->id), settle_closed);
}

/* A request was given up after the device was opened again.  Settling is too late, because requests
 * are in flight, so the session fails its paths.  A path that is OPENING has no requests in flight,
 * and the handshake settles @dev at its end. */
static void given_up_msg(struct loop_msg *msg)
{
	struct dev *dev = container_of(msg, struct dev, given_up_msg);
	char why[RNBD_NAME_MAX + 64];

	if (!dev_unsettled(dev) || !dev_is_in(dev, 1u << DEV_OPEN | 1u << DEV_REPLACED) ||
	    dev->open_epoch != clt_sess_epoch(&dev->clt->sess))
		return;
	snprintf(why, sizeof(why), "%s: an old request was abandoned after the export was opened "
		 "again",
		 dev->name);
	clt_sess_fail(&dev->clt->sess, -ECONNABORTED, why);
}

void dev_settle_init(struct dev *dev)
{
	loop_msg_init(&dev->given_up_msg, given_up_msg);
	atomic_store(&dev->given_up_epoch, dev->clt->given_up_epoch);
	atomic_store(&dev->settled_epoch, 1);
}

void dev_settle_fini(struct dev *dev)
{
	struct client *clt = dev->clt;

	loop_unpost(clt->sess.loop, &dev->given_up_msg);
	if (dev_unsettled(dev))
		clt->given_up_epoch = MAX(clt->given_up_epoch, atomic_load(&dev->given_up_epoch));
}
