/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a client and its device outlives the process (client-kept.h): noted as it changes, and
 * taken by the next process.  Service thread, or before it runs.  Owns nothing; nothing fails. */
#include <string.h>

#include "dev-priv.h"

static uint64_t word_of(const uint8_t bytes[8])
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static void word_put(uint8_t bytes[8], uint64_t word)
{
	memcpy(bytes, &word, sizeof(word));
}

/* ---- as it changes ---- */

void dev_kept_size(struct dev *dev)
{
	if (dev->kept)
		atomic_store(&dev->kept->size, atomic_load(&dev->size));
}

void dev_kept_file(struct dev *dev)
{
	if (dev->kept)
		atomic_store(&dev->kept->export_id, word_of(dev->info.export_id));
}

void dev_kept_opened(struct dev *dev, const struct rnbd_dev_info *info)
{
	struct client_kept *kept = dev->kept;

	if (!kept)
		return;
	/* ORDER: @opened is the word that all of it is there.  No request has been sent to the
	 * device: a process that is killed before leaves nothing to go on with. */
	atomic_store(&kept->opened, 0);
	dev_loss_keep(&dev->loss, &kept->loss);
	kept->mode = (uint32_t)dev->mode;
	rnbd_open_rsp_encode(&kept->rsp, info);
	dev_kept_size(dev);
	dev_kept_file(dev);
	atomic_store(&kept->opened, 1);
}

void dev_kept_server(struct client *clt)
{
	struct client_kept *kept = clt->kept;

	if (!kept)
		return;
	/* ORDER: behind dev_loss_found(), so that a loss is found again or is known as untold; and
	 * before any request of this epoch. */
	atomic_store(&kept->features, atomic_load(&clt->features));
	atomic_store(&kept->host, clt->host);
	atomic_store(&kept->boot_id, clt->peer == CLIENT_PEER_KNOWN ? word_of(clt->boot_id) : 0);
	atomic_store(&kept->met, 1);
}

/* ---- the next process ---- */

void dev_kept_resume_server(struct client *clt)
{
	const struct client_kept *kept = clt->kept;

	if (!atomic_load(&kept->met))
		return;
	clt->peer = CLIENT_PEER_KNOWN;
	word_put(clt->boot_id, atomic_load(&kept->boot_id));
	clt->host = atomic_load(&kept->host);
	atomic_store(&clt->features, atomic_load(&kept->features));
}

void dev_kept_resume(struct dev *dev)
{
	struct client_kept *kept = dev->kept;

	rnbd_open_rsp_decode(&kept->rsp, sizeof(kept->rsp), &dev->info);
	word_put(dev->info.export_id, atomic_load(&kept->export_id));
	atomic_store(&dev->size, atomic_load(&kept->size));
	atomic_store(&dev->max_zeroes, dev->info.max_write_zeroes_sectors);
	dev_loss_resume(&dev->loss, &kept->loss);
}
