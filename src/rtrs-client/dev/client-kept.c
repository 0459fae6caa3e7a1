/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: all state is in memory that the caller has, and that outlives the process. */
#include <stdio.h>
#include <string.h>

#include "client-kept.h"
#include "clock.h"
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
