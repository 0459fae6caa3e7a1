/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing devices.  Owns the list of devices.  Service thread; other threads post
 * messages.
 *
 * A device ends when its last reference was dropped and CLOSE was answered, or the path that knew
 * it is gone. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "dev-priv.h"

/* ---- a device says of itself ---- */

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

const char *dev_state_name(const struct dev *dev)
{
	static const char *const names[] = {
		[DEV_OPENING] = "opening", [DEV_OPEN] = "open", [DEV_LOST] = "lost",
		[DEV_FAILED] = "failed", [DEV_CLOSING] = "closing",
	};

	return names[atomic_load(&dev->state)];
}

/* ---- open ---- */

static void opens_done(struct dev *dev, int status)
{
	struct list *link;

	while ((link = list_pop(&dev->opens))) {
		struct dev_open_req *req = list_entry(link, struct dev_open_req, link);

		req->status = status;
		req->dev = status ? NULL : dev;
		dev->refs += !status;
		req->done(req);
	}
}

static void dev_free(struct dev *dev)
{
	struct client *clt = dev->clt;

	assert(!dev->ctl.done && !dev->look.done && !dev->refs && list_empty(&dev->opens));
	loop_unpost(clt->sess.loop, &dev->given_up_msg);
	if (dev_unsettled(dev))
		clt->given_up_epoch = MAX(clt->given_up_epoch, atomic_load(&dev->given_up_epoch));
	list_del(&dev->link);
	dev_loss_fini(&dev->loss);
	range_lock_fini(&dev->ranges);
	free(dev);
	client_tell_closed(clt);
}

/* Both servers say which file theirs is. */
static bool is_another_file(const struct rnbd_dev_info *a, const struct rnbd_dev_info *b)
{
	static const uint8_t unknown[sizeof(a->export_id)];

	return memcmp(a->export_id, b->export_id, sizeof(unknown)) &&
	       memcmp(a->export_id, unknown, sizeof(unknown)) &&
		       memcmp(b->export_id, unknown, sizeof(unknown));
}

/* The promises of the first open must hold with @info: the users' data is there, single blocks are
 * written as a whole, and writes that needed no flush, or FUA instead, still need none.  0, -ESTALE
 * for another file, or -EMEDIUMTYPE. */
static int dev_compare(const struct dev *dev, const struct rnbd_dev_info *info)
{
	const struct rnbd_dev_info *was = &dev->info;
	uint64_t size = info->nsectors * RNBD_SECTOR_SIZE, old_size = atomic_load(&dev->size);
	char how[96] = "";

	if (is_another_file(was, info))
		snprintf(how, sizeof(how), "as another file, or on another host");
	else if (size < old_size)
		snprintf(how, sizeof(how), "with %llu bytes instead of %llu",
			 (unsigned long long)size, (unsigned long long)old_size);
	else if (info->logical_block_size > was->logical_block_size)
		snprintf(how, sizeof(how), "with blocks of %u bytes instead of %u",
			 info->logical_block_size, was->logical_block_size);
	else if (info->writeback && !was->writeback)
		snprintf(how, sizeof(how), "with a write cache, which it did not have");
	else if (info->writeback && !info->fua && was->fua)
		snprintf(how, sizeof(how), "without FUA");
	if (!*how)
		return 0;
	if (atomic_load(&dev->state) == DEV_OPEN)	/* the first time */
		log_err(dev->name, "export came back %s: it is not used", how);
	return is_another_file(was, info) ? -ESTALE : -EMEDIUMTYPE;
}

int dev_opened(struct dev *dev, struct dev_ctl *ctl, bool first)
{
	struct rnbd_dev_info info;
	int r = ctl->op.status;
	uint64_t size;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_open_rsp_decode(&ctl->rsp.open, sizeof(ctl->rsp.open), &info);
	if (r < 0)
		return r;
	if (!(atomic_load(&dev->clt->features) & RNBD_EXT_EXPORT_ID))
		memset(info.export_id, 0, sizeof(info.export_id));
	/* ORDER: the server has it open, CLOSE must find it, refused or not. */
	atomic_store(&dev->id, info.device_id);
	dev->open_epoch = clt_sess_epoch(&dev->clt->sess);
	r = first ? 0 : dev_compare(dev, &info);
	if (r < 0)
		return r;
	size = info.nsectors * RNBD_SECTOR_SIZE;
	if (first) {
		dev->info = info;
		atomic_store(&dev->size, size);
	} else {
		dev_look_size(dev, size);
	}
	atomic_store(&dev->max_zeroes, info.max_write_zeroes_sectors);
	return atomic_load(&dev->state) != DEV_CLOSING && dev_unsettled(dev) ? CLT_AGAIN : 0;
}

void dev_ready(struct dev *dev)
{
	/* The last user left while the OPEN was on its way: no caller is to see the device open
	 * again. */
	if (atomic_load(&dev->state) != DEV_CLOSING)
		atomic_store(&dev->state, DEV_OPEN);
}

static void open_first_end(struct dev *dev, int status)
{
	if (status == 0)
		dev_ready(dev);
	opens_done(dev, status);
	if (status < 0)
		dev_free(dev);
}

static void open_first_settled(struct dev *dev, int status)
{
	if (status == 0 || status == -ECONNABORTED)
		dev_pump(dev);
	else
		open_first_end(dev, status);
}

static void open_first_done(struct dev_ctl *ctl)
{
	struct dev *dev = ctl->dev;
	int r;

	if (ctl->op.status == -ECONNABORTED && !clt_sess_expired(&dev->clt->sess)) {
		dev_pump(dev);		/* again, on the path that comes */
		return;
	}
	r = dev_opened(dev, ctl, true);
	if (r == CLT_AGAIN)
		dev_reopen_settle(dev, open_first_settled);
	else
		open_first_end(dev, r);
}

void dev_send_open(struct dev *dev, enum clt_op_kind kind,
			void (*done)(struct dev_ctl *ctl))
{
	rnbd_open_encode(&dev->ctl.msg.open, dev->name, dev->mode);
	dev_ctl_send(&dev->ctl, sizeof(dev->ctl.msg.open), sizeof(dev->ctl.rsp.open), kind, done);
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
	atomic_store(&dev->state, DEV_OPENING);
	range_lock_init(&dev->ranges);
	dev_loss_init(&dev->loss);
	dev_ctl_init(&dev->ctl, clt, dev);
	dev_reopen_init_dev(dev);
	dev_look_init(dev);
	atomic_store(&dev->given_up_epoch, clt->given_up_epoch);
	atomic_store(&dev->settled_epoch, 1);
	list_init(&dev->opens);
	list_add_tail(&clt->devs, &dev->link);
	return dev;
}

static struct dev *dev_find(struct client *clt, const char *name)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (!strcmp(dev->name, name))
			return dev;
	}
	return NULL;
}

/* The next component of a path, without what does not matter: "//", "./". */
static const char *component(const char *s, size_t *len)
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
		a = component(a, &alen);
		b = component(b, &blen);
		if (alen != blen || memcmp(a, b, alen))
			return false;
		a += alen;
		b += blen;
	} while (alen);
	return true;
}

/* A kernel's server takes names for paths, and one that gets a device under two names in one
 * session locks up (doc/traps.md 37).  Ours has names of exports, which are what they are. */
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
	switch (atomic_load(&dev->state)) {
	case DEV_OPEN:
	case DEV_LOST:
	case DEV_FAILED:
		opens_done(dev, 0);
		return;
	case DEV_OPENING:
	case DEV_CLOSING:
		dev_pump(dev);
		return;
	}
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

int dev_open(struct client *clt, const char *name, enum rnbd_access_mode mode,
	      struct dev **dev)
{
	struct open_wait w = { .req = { .name = name, .mode = mode, .done = open_wait_done } };

	clt_wait_init(&w.waiter, clt->sess.io.wait, NULL);
	dev_open_start(clt, &w.req);
	clt_wait_event(&w.waiter);
	*dev = w.req.dev;
	return w.req.status;
}

/* ---- close ---- */

/* RACE: with the count another one's post may be the one that closes and frees @dev. */
void dev_close(struct dev *dev)
{
	struct client *clt = dev->clt;

	atomic_fetch_add(&dev->dropped, 1);
	loop_post(clt->sess.loop, &clt->drop_msg);
}

static void dev_closed(struct dev *dev)
{
	if (list_empty(&dev->opens)) {
		dev_free(dev);
		return;
	}
	/* Opened again while it was being closed: a new life for the same name. */
	dev->mode = list_entry(dev->opens.next, struct dev_open_req, link)->mode;
	dev_loss_reset(&dev->loss);
	atomic_store(&dev->state, DEV_OPENING);
	dev_pump(dev);
}

static void close_done(struct dev_ctl *ctl)
{
	if (ctl->op.status == 0)	/* the storage is done with it */
		atomic_store(&ctl->dev->settled_epoch, ctl->epoch);
	dev_closed(ctl->dev);
}

static void close_send(struct dev *dev)
{
	if (dev->open_epoch != clt_sess_epoch(&dev->clt->sess)) {
		dev_closed(dev);	/* as far as the server knows it, it is about to close it */
		return;
	}
	rnbd_close_encode(&dev->ctl.msg.close, atomic_load(&dev->id));
	dev_ctl_send(&dev->ctl, sizeof(dev->ctl.msg.close), 0, CLT_OP_BOUND, close_done);
}

static void drop_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, drop_msg);
	struct dev *dev, *next;

	list_for_each_safe(dev, next, &clt->devs, link) {
		unsigned dropped = atomic_exchange(&dev->dropped, 0);

		dev->refs -= dropped;
		if (!dropped || dev->refs)
			continue;
		atomic_store(&dev->state, DEV_CLOSING);
		dev_pump(dev);
	}
}

void dev_init(struct client *clt)
{
	loop_msg_init(&clt->drop_msg, drop_msg);
}

void dev_pump(struct dev *dev)
{
	if (dev->ctl.done)
		return;
	if (atomic_load(&dev->state) == DEV_OPENING)
		dev_send_open(dev, CLT_OP_FREE, open_first_done);
	else if (atomic_load(&dev->state) == DEV_CLOSING)
		close_send(dev);
}
