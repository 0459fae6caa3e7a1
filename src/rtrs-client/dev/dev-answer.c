/* SPDX-License-Identifier: BSD-3-Clause */
/* A device at the server: what the answer to an OPEN says, in the first open and in later ones.
 *
 * The answer is compared with that of the first open, and given-up writes are settled by a CLOSE.
 * Possible failures: the server refuses, or has another file, or the device keeps fewer promises.
 *
 * Service thread. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dev-priv.h"
#include "dev.h"
#include "log.h"

int dev_answer_size(struct dev *dev, uint64_t size)
{
	uint64_t was = atomic_load(&dev->size);

	if (size < was) {
		if (dev_look_is_news(dev, (int64_t)(was - size)))
			log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, EXPORT_RESIZED), dev->name,
				  "export has shrunk: %llu bytes instead of %llu: "
				  "no other client can open it until all clients have closed it",
				  (unsigned long long)size, (unsigned long long)was);
		return -EMEDIUMTYPE;
	}
	dev_look_is_news(dev, 0);
	if (size > was)
		log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, EXPORT_RESIZED), dev->name,
			  "export has grown: %llu bytes instead of %llu", (unsigned long long)size,
			  (unsigned long long)was);
	atomic_store(&dev->size, size);
	dev_kept_size(dev);
	return 0;
}

/* True if both servers tell the id of the file, and the ids differ. */
static bool is_another_file(const struct rnbd_dev_info *a, const struct rnbd_dev_info *b)
{
	static const uint8_t unknown[sizeof(a->export_id)];

	return memcmp(a->export_id, b->export_id, sizeof(unknown)) &&
	       memcmp(a->export_id, unknown, sizeof(unknown)) &&
		       memcmp(b->export_id, unknown, sizeof(unknown));
}

/* True if the file of @info is another one than that of @dev, and nobody has accepted it. */
static bool is_wrong_file(const struct dev *dev, const struct rnbd_dev_info *info)
{
	return dev->file == DEV_FILE_KEPT && is_another_file(&dev->info, info);
}

/* What the administrator can do about another file at the server of this handshake. */
static const char *other_file_hint(const struct client *clt)
{
	if (clt->met.valid && clt->met.features & RNBD_EXT_SHARED)
		return "; do both servers that share it have the same disk or image under its "
		       "name (path=)?";
	return "; if it is a copy of the former one: rtrsctl server accept";
}

/* Check that @info keeps the promises of the first open: the users' data is present, the server
 * writes single blocks as a whole, and writes need a flush or FUA only if they did before.  0,
 * -ESTALE for another file, or -EMEDIUMTYPE. */
static int dev_compare(const struct dev *dev, const struct rnbd_dev_info *info)
{
	const struct rnbd_dev_info *was = &dev->info;
	uint64_t size = info->nsectors * RNBD_SECTOR_SIZE, old_size = atomic_load(&dev->size);
	char how[96] = "";

	if (is_wrong_file(dev, info))
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
		log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, EXPORT_REPLACED), dev->name,
			  "export came back %s: it is not used%s", how,
			  is_wrong_file(dev, info) ? other_file_hint(dev->clt) : "");
	return is_wrong_file(dev, info) ? -ESTALE : -EMEDIUMTYPE;
}

/* @dev is open again, with the file of @info. */
static void take_file(struct dev *dev, const struct rnbd_dev_info *info)
{
	dev->file = DEV_FILE_KEPT;
	if (!is_another_file(&dev->info, info))
		return;
	log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, EXPORT_REPLACED), dev->name,
		  "another file takes its place, accepted by rtrsctl");
	memcpy(dev->info.export_id, info->export_id, sizeof(info->export_id));
	/* Of another machine dev_greet_believe() counts the loss. */
	if (dev->clt->place != CLIENT_PLACE_GIVEN)
		dev_greet_lose(dev, "another file was accepted in the place of the former one");
	dev_kept_file(dev);
}

int dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first)
{
	struct rnbd_dev_info info;
	int r = rnbd_refusal_from_wire(ctl->op.status, &dev->refusal);
	uint64_t size;

	assert(r <= 0);
	if (r == 0)
		r = rnbd_open_rsp_decode(&ctl->rsp.open, sizeof(ctl->rsp.open), &info);
	if (r < 0)
		return r;
	if (!(atomic_load(&dev->clt->features) & RNBD_EXT_EXPORT_ID))
		memset(info.export_id, 0, sizeof(info.export_id));
	/* ORDER: before any refusal, because the server has the device open, and CLOSE needs the
	 * id. */
	atomic_store(&dev->id, info.device_id);
	atomic_store(&dev->taken_epoch, 0);
	dev->open_epoch = clt_sess_epoch(&dev->clt->sess);
	r = first ? 0 : dev_compare(dev, &info);
	if (r < 0)
		return r;
	size = info.nsectors * RNBD_SECTOR_SIZE;
	if (first) {
		dev->info = info;
		dev->file = DEV_FILE_KEPT;
		atomic_store(&dev->size, size);
		dev_kept_opened(dev, &info);
	} else {
		take_file(dev, &info);
		dev_answer_size(dev, size);
	}
	atomic_store(&dev->max_zeroes, info.max_write_zeroes_sectors);
	return atomic_load(&dev->state) != DEV_CLOSING && dev_unsettled(dev) ? CLT_AGAIN : 0;
}

/* ---- given-up writes ----
 * A write fails with io_timeout, or begins again because the path came back too small; its first
 * copy may still be in the server's storage.  The buf_id of the first copy orders nothing any more,
 * because a later write to the same place has another buf_id.  So the client sends nothing to the
 * device before the server's storage is done with all earlier requests.  The answer to CLOSE proves
 * this, with every server (doc/protocol.md 8.6; a server drops a request that has arrived, and
 * not begun, with its path).  So the client opens the device, closes it and opens it again. */

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

/* ---- why an OPEN failed ----
 * The words name the parameter to change, or the command that says more. */

/* Of a server that gives no reason: an older one, or a kernel's. */
static const char *why_errno(int status)
{
	switch (status) {
	case -EPERM:
		return "open for writing by another session, which the server's log names (mode=ro "
		       "or mode=migration would share it)";
	case -EROFS: case -EACCES:
		return "read-only on the server (mode=auto or mode=ro would take it)";
	case -ENOENT:
		return "the server has no such export for this client";
	case -EMEDIUMTYPE:		/* dev_answer_size(), dev_compare() */
		return "shrunk, or with other blocks or another write cache than its users here "
		       "have opened (the log says which)";
	case -ESTALE:			/* dev_compare() */
		return "another file has its name, or the server is another host (the log says "
		       "which)";
	case -EAGAIN: case -ENODEV:
		return "the server cannot open its storage now (\"rtrsctl doctor\" there says why)";
	case -EOPNOTSUPP:		/* dev_ctl_open() */
		return "the server does not end the session of a former process: a kernel's, or an "
		       "older rtrs-server (mode=rw would do without)";
	case -ECONNABORTED:
		return "the server was lost";
	case -EIO:			/* of the session, or of a kernel's server */
		return "no path to the server was up for io-timeout, or the server cannot read "
		       "the storage (\"rtrsctl show\" has the cause of each path)";
	case -ESHUTDOWN:
		return "this gateway ends, and the server had not answered (a client that connects "
		       "again waits for the next one)";
	default:
		return strerror(-status);
	}
}

const char *dev_why(int status, enum rnbd_refusal refusal)
{
	switch (refusal) {
	case RNBD_REFUSES_READ_ONLY:
		return "read-only on the server, for all clients (mode=auto or mode=ro would take "
		       "it)";
	case RNBD_REFUSES_READER:
		return "read-only on the server for this client, which its read-only= names "
		       "(mode=auto or mode=ro would take it)";
	case RNBD_REFUSES_WRITER:
		return "open for writing by another session, which \"rtrsctl clients\" at the "
		       "server names (mode=ro or mode=migration would share it)";
	case RNBD_REFUSES_CLOSING:
		return "requests of a client that had it open are still in the server's storage "
		       "(try again when they have ended)";
	case RNBD_REFUSES_OPENING:
		return "the server is still opening its storage, or taking its lock from another "
		       "server (try again)";
	case RNBD_REFUSES_LOCKED:
		return "another server keeps the lock of its storage (\"rtrsctl export break\" at "
		       "this server takes the lock from a dead one)";
	case RNBD_REFUSES_NOT: case RNBD_NREFUSALS:
		break;
	}
	return why_errno(status);
}
