/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: all state is in memory that the caller has, and that outlives the process. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "rtrs-msg.h"

#define KEPT_MAGIC "rtrskept"
#define KEPT_VERSION 1u

_Static_assert(sizeof(KEPT_MAGIC) - 1 == sizeof(((struct client_kept *)0)->magic), "no NUL");

void client_kept_init(struct client_kept *kept, const char *boot, const char *name)
{
	memset(kept, 0, sizeof(*kept));
	snprintf(kept->boot, sizeof(kept->boot), "%s", boot);
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	random_bytes(kept->lineage, sizeof(kept->lineage));
	kept->version = KEPT_VERSION;
	/* ORDER: last, so that a process that was killed here has left nothing. */
	atomic_signal_fence(memory_order_release);
	memcpy(kept->magic, KEPT_MAGIC, sizeof(kept->magic));
}

static bool is_text(const char *text, size_t len)
{
	return memchr(text, '\0', len);
}

/* An answer that no OPEN of this client has taken would be used as geometry. */
static bool is_geometry(const struct client_kept *kept)
{
	struct rnbd_dev_info info;

	return !atomic_load(&kept->opened) ||
	       rnbd_open_rsp_decode(&kept->rsp, sizeof(kept->rsp), &info) == 0;
}

bool client_kept_is_valid(const struct client_kept *kept)
{
	return !memcmp(kept->magic, KEPT_MAGIC, sizeof(kept->magic)) &&
	       kept->version == KEPT_VERSION && is_text(kept->boot, sizeof(kept->boot)) &&
	       is_text(kept->name, sizeof(kept->name)) &&
	       is_text(kept->provider, sizeof(kept->provider)) &&
	       kept->mode < RNBD_ACCESS_MODES && is_geometry(kept);
}

bool client_kept_is_old(const struct client_kept *kept, const char *boot)
{
	return strcmp(kept->boot, boot);
}

bool client_kept_resumes(const struct client_kept *kept)
{
	return atomic_load(&kept->opened);
}

void client_kept_next(struct client_kept *kept, uint8_t uuid[RTRS_UUID_LEN])
{
	rtrs_lineage_uuid(uuid, kept->lineage, atomic_fetch_add(&kept->generation, 1) + 1);
}

/* ---- a client that runs, and its device ----
 * Noted as it changes, and taken by the next process.  Service thread, or before it runs. */

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
	atomic_store(&kept->features, clt->epoch_features);
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
	clt->epoch_features = atomic_load(&kept->features);
	atomic_store(&clt->features, clt->epoch_features);
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
