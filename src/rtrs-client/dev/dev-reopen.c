/* SPDX-License-Identifier: BSD-3-Clause */
/* Short: a test wraps dev_answer(), which it calls.
 *
 * Opens a device that did not come back in the handshake: OPEN, then SESS_INFO if the OPEN may hide
 * a loss.
 *
 * Service thread.  Owns nothing: dev-life.c decides when, and takes the answer.  In a handshake
 * dev-handshake.c sends the same messages, for all devices. */
#include <errno.h>

#include "dev-priv.h"

static void reopen_met(struct dev_ctl *ctl)
{
	struct rnbd_ext ext;
	int r = ctl->op.status == -ECONNABORTED ? -ECONNABORTED : dev_greet_answer(ctl, &ext);

	if (r == 0)
		dev_greet_believe(ctl->clt, &ext);
	ctl->dev->answered(ctl->dev, r);
}

static void reopen_ended(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	int r = dev_reopen_answer(ctl);

	if (r == 0 && dev_greet_behind_open(dev))
		dev_greet(ctl, CLT_OP_BOUND, reopen_met);
	else
		dev->answered(dev, r);
}

void dev_reopen(struct dev *dev, void (*answered)(struct dev *dev, int r))
{
	dev->answered = answered;
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
