/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to an OPEN: is the device the same as at its first open?
 *
 * Service thread.  Owns dev->info, id, size, max_zeroes, file and open_epoch. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "dev-priv.h"

int dev_answer_size(struct dev *dev, uint64_t size)
{
	uint64_t was = atomic_load(&dev->size);

	if (size < was) {
		log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, EXPORT_RESIZED), dev->name,
			  "export has shrunk: %llu bytes instead of %llu: "
			  "no other client can open it until all clients have closed it",
			  (unsigned long long)size, (unsigned long long)was);
		return -EMEDIUMTYPE;
	}
	if (size > was)
		log_event(LOG_LEVEL_WARN, DEV_FIELDS(dev, EXPORT_RESIZED), dev->name,
			  "export has grown: %llu bytes instead of %llu", (unsigned long long)size,
			  (unsigned long long)was);
	atomic_store(&dev->size, size);
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
			  is_wrong_file(dev, info) ? "; if it is a copy of the former one: rtrsctl "
			  "server accept" : "");
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
	} else {
		take_file(dev, &info);
		dev_answer_size(dev, size);
	}
	atomic_store(&dev->max_zeroes, info.max_write_zeroes_sectors);
	return atomic_load(&dev->state) != DEV_CLOSING && dev_unsettled(dev) ? CLT_AGAIN : 0;
}
