/* SPDX-License-Identifier: BSD-3-Clause */
/* SESS_INFO: the server tells its features and its identity.
 *
 * Service thread.  Owns the client's knowledge of the server: clt->features, boot_epoch, peer,
 * boot_id, instance, host and place. */
#include <assert.h>
#include <string.h>

#include "log.h"
#include "dev-priv.h"

void dev_greet(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl))
{
	struct rnbd_sess_info info = {
		.ver = RNBD_PROTO_VER_MAJOR,
		.ext = { .valid = true, .features = RNBD_EXT_ALL | RNBD_EXT_SHARED },
	};

	rnbd_sess_info_encode(&ctl->msg.info, RNBD_MSG_SESS_INFO, &info);
	dev_ctl_send(ctl, sizeof(ctl->msg.info), sizeof(ctl->rsp.info), kind, done);
}

int dev_greet_who(const struct dev_ctl *ctl, struct rnbd_ext *ext)
{
	struct rnbd_sess_info info;
	int r = ctl->op.status;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_sess_info_decode(&ctl->rsp.info, sizeof(ctl->rsp.info), &info);
	if (r == 0)
		*ext = info.ext;
	return r;
}

int dev_greet_answer(struct dev_ctl *ctl, struct rnbd_ext *ext)
{
	int r = dev_greet_who(ctl, ext);

	if (r == 0)
		atomic_store(&ctl->clt->features, ext->valid ? ext->features : 0);
	return r;
}

void dev_greet_lose(struct dev *dev, const char *why)
{
	struct client *clt = dev->clt;

	/* ORDER: boot_epoch before dev_loss_unflushed(); dev_io_end() counts a write before it
	 * reads boot_epoch. */
	atomic_store(&clt->boot_epoch, clt_sess_epoch(&clt->sess));
	if (!dev_loss_unflushed(&dev->loss))
		return;
	dev_loss_found(&dev->loss, clt_sess_epoch(&clt->sess));
	log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, WRITES_LOST), dev->name,
		  "%s: writes that were not flushed may be lost", why);
}

void dev_greet_believe(struct client *clt, const struct rnbd_ext *ext)
{
	bool first = clt->peer == CLIENT_PEER_NEW;
	bool accepted = clt->place == CLIENT_PLACE_GIVEN && ext->host == clt->other_host;
	bool same = clt->peer == CLIENT_PEER_KNOWN && ext->valid && !accepted &&
		    !memcmp(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	const char *why = accepted ? "another machine was accepted in the place of the server" :
		ext->valid ? "the server's host was restarted, or a sync failed there" :
		"the server does not know whether its host was restarted";
	struct dev *dev;

	clt->peer = ext->valid ? CLIENT_PEER_KNOWN : CLIENT_PEER_UNKNOWN;
	clt->instance = ext->instance;
	clt->host = ext->host ? ext->host : clt->host;
	clt->place = CLIENT_PLACE_KEPT;
	memcpy(clt->boot_id, ext->boot_id, sizeof(clt->boot_id));
	if (first || same)
		return;
	atomic_store(&clt->boot_epoch, clt_sess_epoch(&clt->sess));
	list_for_each(dev, &clt->devs, link)
		dev_greet_lose(dev, why);
}

/* dev_loss_unflushed() proves nothing here: the server may have acknowledged some parts of a write,
 * and not yet the whole. */
bool dev_greet_behind_open(const struct dev *dev)
{
	return dev->clt->peer == CLIENT_PEER_KNOWN && dev->mode != RNBD_ACCESS_RO &&
		dev->info.writeback;
}
