/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the present size of an export, for a caller that opens a device already open
 * (doc/decisions.md D17), and whether the name still leads to that export.
 *
 * Service thread.  Owns the open requests that wait for a look.  A look is one more OPEN: every
 * server answers with the session's handle of the device, and the size (doc/protocol.md 8.2).  Each
 * waiting request holds a reference, so that no CLOSE is under way meanwhile.  A failed look
 * changes nothing: the device stays the same, and its size follows when the session comes back
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

/* True if @dev is open in the present epoch, or the end of the epoch is not known yet.  A look that
 * comes too late ends at once, because a look is bound to its epoch. */
static bool is_current(const struct dev *dev)
{
	return atomic_load(&dev->state) == DEV_OPEN &&
		dev->open_epoch == clt_sess_epoch(&dev->clt->sess);
}

/* End with @status each request that came before the look was sent. */
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

/* Begin the requests that wait for a look once more: they get the device that has the name now. */
static void look_again(struct dev *dev)
{
	struct dev_open_req *req;

	list_splice_tail(&dev->looking, &dev->lookers);
	while ((req = list_pop_entry(&dev->looking, struct dev_open_req, link))) {
		dev_close(dev);
		loop_post(dev->clt->sess.loop, &req->msg);
	}
}

static void stray_closed(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;

	if (dev_is_in(dev, 1u << DEV_REPLACED))
		look_again(dev);
	else
		look_end(dev, 0);
}

/* The look has opened another handle on the server, @id: another export has the name by now, or the
 * server had closed @dev.  If the client used @id for @dev, the users of @dev would not learn of
 * the close, nor of an earlier failed sync (doc/decisions.md D13).  A kernel's server gives the id
 * of a closed device to the next one, so none is opened beside @dev. */
static void close_stray(struct dev *dev, uint32_t id)
{
	if (atomic_load(&dev->clt->features))
		dev_life_event(dev, DEV_EV_RENAMED);
	else
		log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
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
		log_warn(dev->name, "its size cannot be read: %s", strerror(-r));
	/* In another epoch the answer is about another handle. */
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
