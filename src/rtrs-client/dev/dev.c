/* SPDX-License-Identifier: BSD-3-Clause */
/* Open requests for devices, and references to devices; dev-life.c has the life of each.
 *
 * The happy path: an open request gets a new device, which is OPEN with the server's answer; or a
 * reference of a device that is open already, after a look at its present size.  The last reference
 * closes the device.  Possible failures: the server refuses the OPEN; the export has shrunk; the
 * name leads to another export by now; a kernel's server would find the device under two names.
 *
 * Service thread; other threads post messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev-priv.h"
#include "log.h"

/* ---- a look ----
 * Looks at the present size of an export, for a caller that opens a device already open
 * (doc/decisions.md D17), and whether the name still leads to that export.
 *
 * A look is one more OPEN: every
 * server answers with the session's handle of the device, and the size (doc/protocol.md 8.2).  Each
 * waiting request holds a reference, so that no CLOSE is under way meanwhile.  A failed look
 * changes nothing: the device stays the same, and its size follows when the session comes back
 * (dev_answer()). */

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
	else if (dev_look_is_news(dev, DEV_LOOK_CLOSED))
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
	if (r != 0 && r != -ECONNABORTED && dev_look_is_news(dev, r))
		log_warn(dev->name, "its size cannot be read: %s", strerror(-r));
	/* In another epoch the answer is about another handle. */
	if (r != 0 || !is_current(dev) || ctl->epoch != dev->open_epoch)
		look_end(dev, 0);
	else if (info.device_id != atomic_load(&dev->id))
		close_stray(dev, info.device_id);
	else
		look_end(dev, dev_answer_size(dev, info.nsectors * RNBD_SECTOR_SIZE));
}

/* Look at the size of the open @dev for @req.  True: @req ends after the server's answer, with 0 or
 * the error of dev_answer_size().  False: the client cannot ask now. */
static bool dev_look(struct dev *dev, struct dev_open_req *req)
{
	if (!is_current(dev))
		return false;
	dev->refs++;
	list_add_tail(&dev->lookers, &req->link);
	if (!dev->look.done)
		look_send(dev);
	return true;
}

/* ---- properties of a device ---- */

const char *dev_name(const struct dev *dev)
{
	return dev->name;
}

const struct rnbd_dev_info *dev_info(const struct dev *dev)
{
	return &dev->info;
}

uint64_t dev_size(const struct dev *dev)
{
	return atomic_load(&dev->size);
}

enum rnbd_access_mode dev_mode(const struct dev *dev)
{
	return dev->mode;
}

bool dev_can_zero(const struct dev *dev)
{
	return atomic_load(&dev->max_zeroes) > 0;
}

bool dev_can_nounmap(const struct dev *dev)
{
	return dev_can_zero(dev) && (atomic_load(&dev->clt->features) & RNBD_EXT_NOUNMAP);
}

bool dev_can_discard(const struct dev *dev)
{
	return dev->info.max_discard_sectors > 0;
}

struct dev *dev_next(struct client *clt, struct dev *dev)
{
	struct list *next = dev ? dev->link.next : clt->devs.next;

	return next == &clt->devs ? NULL : list_entry(next, struct dev, link);
}

unsigned dev_id(const struct dev *dev)
{
	return atomic_load(&dev->id);
}

unsigned dev_users(const struct dev *dev)
{
	return dev->refs;
}

bool dev_has_name(const struct dev *dev)
{
	return !dev_is_in(dev, DEV_OUTDATED | 1u << DEV_CLOSING);
}

const char *dev_state_name(const struct dev *dev)
{
	if (dev_is_in(dev, 1u << DEV_OPEN) &&
	    atomic_load(&dev->taken_epoch) == clt_sess_epoch(&dev->clt->sess))
		return "kicked";
	return dev_fsm.states[atomic_load(&dev->state)];
}

const char *dev_cause(const struct dev *dev)
{
	return dev_is_in(dev, DEV_AWAY | 1u << DEV_AWAITED) && dev->error ?
	       dev_why(dev->error, dev->refusal) : NULL;
}

/* ---- open ---- */

/* What @clt keeps for the next process is of one device: the first one of the name. */
static struct client_kept *kept_of(struct client *clt, const char *name)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (dev->kept)
			return NULL;
	}
	return clt->kept && !strcmp(clt->kept->name, name) ? clt->kept : NULL;
}

static struct dev *dev_create(struct client *clt, const struct dev_open_req *req)
{
	struct dev *dev;

	dev = aligned_alloc(_Alignof(struct dev), sizeof(*dev));
	if (!dev)
		return NULL;
	memset(dev, 0, sizeof(*dev));
	dev->clt = clt;
	snprintf(dev->name, sizeof(dev->name), "%s", req->name);
	dev->mode = req->mode;
	range_lock_init(&dev->ranges);
	dev_loss_init(&dev->loss);
	dev->kept = kept_of(clt, dev->name);
	dev_ctl_init(&dev->ctl, clt, dev);
	dev_settle_init(dev);
	dev_ctl_init(&dev->look, clt, dev);
	list_init(&dev->lookers);
	list_init(&dev->looking);
	list_init(&dev->opens);
	list_add_tail(&clt->devs, &dev->link);
	return dev;
}

int dev_resume(struct client *clt)
{
	const struct client_kept *kept = clt->kept;
	const struct dev_open_req req = { .name = kept->name,
					  .mode = (enum rnbd_access_mode)kept->mode };
	struct dev *dev;

	dev_kept_resume_server(clt);
	if (!client_kept_resumes(kept))
		return 0;
	dev = dev_create(clt, &req);
	if (!dev)
		return -ENOMEM;
	dev_kept_resume(dev);
	/* It was open in an epoch that is over. */
	clt->sess.io.epoch = 1;
	atomic_store(&dev->state, DEV_OPEN);
	dev->refs = 1;
	clt->resumed = dev;
	return 0;
}

/* The device that whoever opens @name gets; NULL: a new one.  It is the last of its name: an
 * outdated one, which is closing maybe, comes before. */
static struct dev *dev_find(struct client *clt, const char *name)
{
	struct dev *dev, *found = NULL;

	list_for_each(dev, &clt->devs, link) {
		if (!strcmp(dev->name, name) && !dev_is_in(dev, DEV_OUTDATED))
			found = dev;
	}
	return found;
}

/* The next component of the path @s, after any "//" and "./". */
static const char *is_component(const char *s, size_t *len)
{
	while (*s == '/' || (*s == '.' && (s[1] == '/' || !s[1])))
		s++;
	*len = strcspn(s, "/");
	return s;
}

static bool same_path(const char *a, const char *b)
{
	size_t alen, blen;

	do {
		a = is_component(a, &alen);
		b = is_component(b, &blen);
		if (alen != blen || memcmp(a, b, alen))
			return false;
		a += alen;
		b += blen;
	} while (alen);
	return true;
}

/* The device of @clt that a kernel's server would find under @name, too, or NULL.  A kernel's
 * server takes names for paths, and locks up if a session opens a device under two names
 * (doc/traps.md 37).  For rtrs-server another name is another export. */
static struct dev *dev_under_another_name(struct client *clt, const char *name)
{
	struct dev *dev;

	if (atomic_load(&clt->features))
		return NULL;
	list_for_each(dev, &clt->devs, link) {
		if (same_path(dev->name, name))
			return dev;
	}
	return NULL;
}

static void open_msg(struct loop_msg *msg)
{
	struct dev_open_req *req = container_of(msg, struct dev_open_req, msg);
	struct client *clt = req->clt;
	struct dev *dev = dev_find(clt, req->name), *other;

	req->dev = NULL;
	req->status = 0;
	req->refusal = RNBD_REFUSES_NOT;
	if (strlen(req->name) >= RNBD_NAME_MAX)
		req->status = -ENAMETOOLONG;
	else if (clt->state != CLIENT_OPEN)
		req->status = -ESHUTDOWN;
	else if (!dev && (other = dev_under_another_name(clt, req->name))) {
		log_err(req->name, "already open under the name %s", other->name);
		req->status = -EEXIST;
	} else if (!dev && !(dev = dev_create(clt, req)))
		req->status = -ENOMEM;
	if (req->status) {
		req->done(req);
		return;
	}
	if (dev_look(dev, req))
		return;
	list_add_tail(&dev->opens, &req->link);
	dev_life_event(dev, DEV_EV_WANTED);
}

void dev_open_start(struct client *clt, struct dev_open_req *req)
{
	req->clt = clt;
	loop_msg_init(&req->msg, open_msg);
	list_init(&req->link);
	loop_post(clt->sess.loop, &req->msg);
}

struct open_wait {
	struct dev_open_req req;
	struct clt_waiter waiter;
};

static void open_wait_done(struct dev_open_req *req)
{
	clt_wait_count(&container_of(req, struct open_wait, req)->waiter);
}

int dev_open_wait(struct client *clt, struct dev_open_req *req)
{
	struct open_wait w = { .req = { .name = req->name, .mode = req->mode,
					.done = open_wait_done } };

	clt_wait_init(&w.waiter, clt->sess.io.wait, NULL);
	dev_open_start(clt, &w.req);
	clt_wait_event(&w.waiter);
	req->status = w.req.status;
	req->refusal = w.req.refusal;
	req->dev = w.req.dev;
	return req->status;
}

int dev_open(struct client *clt, const char *name, enum rnbd_access_mode mode,
	      struct dev **dev)
{
	struct dev_open_req req = { .name = name, .mode = mode };
	int r = dev_open_wait(clt, &req);

	*dev = req.dev;
	return r;
}

/* ---- close ---- */

/* RACE: @dev may be gone after the count, because another thread's post may close and free @dev. */
void dev_close(struct dev *dev)
{
	struct client *clt = dev->clt;

	atomic_fetch_add(&dev->dropped, 1);
	loop_post(clt->sess.loop, &clt->drop_msg);
}

static void drop_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, drop_msg);
	struct dev *dev, *next;

	list_for_each_safe(dev, next, &clt->devs, link) {
		unsigned dropped = atomic_exchange(&dev->dropped, 0);

		dev->refs -= dropped;
		if (dropped && !dev->refs)
			dev_life_event(dev, DEV_EV_DROPPED);
	}
}

void dev_init(struct client *clt)
{
	loop_msg_init(&clt->drop_msg, drop_msg);
}
