/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller that opens a device that is open already is told the present size of its export
 * (doc/decisions.md D17).
 *
 * Service thread.  Owns those who wait for a look at the server, which is one OPEN more: every
 * server answers that with the handle that the session has, and its size (doc/protocol.md 8.2).
 * Each of them holds a reference, so that no CLOSE is on its way meanwhile.  A look that fails
 * changes nothing: the device is what it was, and its size follows when the session comes back
 * (dev_answer()). */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "dev-priv.h"

static void look_done(struct dev_ctl *ctl);

static void look_send(struct dev *dev)
{
	list_splice_tail(&dev->looking, &dev->lookers);
	dev_ctl_open(&dev->look, CLT_OP_BOUND, look_done);
}

/* What is known of the server is of now, or nothing has told yet that it is not.  A look that comes
 * too late ends at once, because it is bound to the epoch. */
static bool is_current(const struct dev *dev)
{
	return atomic_load(&dev->state) == DEV_OPEN &&
		dev->open_epoch == clt_sess_epoch(&dev->clt->sess);
}

/* The looks of those who came before it was sent end with @status. */
static void look_end(struct dev *dev, int status)
{
	struct list ended = LIST_INIT(ended);
	struct dev_open_req *req;

	list_splice_tail(&ended, &dev->looking);
	if (!list_empty(&dev->lookers) && is_current(dev))
		look_send(dev);
	else
		list_splice_tail(&ended, &dev->lookers);
	while ((req = list_pop_entry(&ended, struct dev_open_req, link))) {
		if (status)
			dev_close(dev);
		req->status = status;
		req->dev = status ? NULL : dev;
		req->done(req);
	}
}

static void stray_closed(struct dev_ctl *ctl)
{
	look_end(ctl->dev, 0);
}

/* The server had closed the device, and has opened it anew for the look.  To take that for the one
 * that was open would hide from those who have it open that it was taken away, and a failed sync
 * with it (doc/decisions.md D13). */
static void close_stray(struct dev *dev, uint32_t id)
{
	log_warn(dev->name,
		 "is not open on the server any more: "
		 "requests fail until all clients have closed it");
	dev_ctl_close(&dev->look, id, stray_closed);
}

static void look_done(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	struct rnbd_dev_info info;
	int r = ctl->op.status;

	if (r == 0)
		r = rnbd_open_rsp_decode(&ctl->rsp.open, sizeof(ctl->rsp.open), &info);
	if (r != 0 && r != -ECONNABORTED)
		log_warn(dev->name, "its size cannot be asked for: %s", strerror(-r));
	/* An answer of another life of the session is about another handle. */
	if (r != 0 || !is_current(dev) || ctl->epoch != dev->open_epoch)
		look_end(dev, 0);
	else if (info.device_id != atomic_load(&dev->id))
		close_stray(dev, info.device_id);
	else
		look_end(dev, dev_answer_size(dev, info.nsectors * RNBD_SECTOR_SIZE));
}

bool dev_look(struct dev *dev, struct dev_open_req *req)
{
	if (!is_current(dev))
		return false;
	dev->refs++;
	list_add_tail(&dev->lookers, &req->link);
	if (!dev->look.done)
		look_send(dev);
	return true;
}

void dev_look_init(struct dev *dev)
{
	dev_ctl_init(&dev->look, dev->clt, dev);
	list_init(&dev->lookers);
	list_init(&dev->looking);
}
