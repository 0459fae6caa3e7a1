/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the entries, which are a part of struct srv; control thread.  Never fails: a full table
 * writes over the entry of the path that came up least often. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "srv-flaps.h"
#include "srv-sess.h"

static bool flap_is_over(const struct srv_flap *f, uint64_t now)
{
	if (!f->ups)
		return true;
	return f->is_up ? now - f->up_ms >= SRV_FLAP_STEADY_MS :
		now - f->lost_ms >= SRV_FLAP_AWAY_MS;
}

static struct srv_flap *flap_of(struct srv_flaps *flaps, const struct srv_path *path, uint64_t now)
{
	for (struct srv_flap *f = flaps->all; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (!flap_is_over(f, now) && !memcmp(f->uuid, path->uuid, sizeof(f->uuid)) &&
		    !strcmp(f->identity, path->identity))
			return f;
	}
	return NULL;
}

/* Is @f worth less than @other, NULL: none?  Of two that came up as often, the one that was lost
 * last: if more paths flap in turn than there are entries, the first ones keep theirs. */
static bool flap_is_worth_less(const struct srv_flap *f, const struct srv_flap *other)
{
	return !other || f->ups < other->ups ||
	       (f->ups == other->ups && f->lost_ms >= other->lost_ms);
}

/* The entry to write over for @client. */
static struct srv_flap *flap_victim(struct srv_flaps *flaps, const struct fab_addr *client,
				    uint64_t now)
{
	struct srv_flap *over = NULL, *least = NULL, *of_net = NULL;
	unsigned n = 0;

	for (struct srv_flap *f = flaps->all; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (flap_is_over(f, now)) {
			over = f;
			continue;
		}
		if (flap_is_worth_less(f, least))
			least = f;
		if (!fab_addr_same_net(&f->client, client))
			continue;
		n++;
		if (flap_is_worth_less(f, of_net))
			of_net = f;
	}
	if (n >= SRV_FLAPS_NET_MAX)
		return of_net;
	return over ? over : least;
}

void srv_flaps_up(struct srv_flaps *flaps, const struct srv_path *path)
{
	uint64_t now = clock_now_ms();
	struct srv_flap *f = flap_of(flaps, path, now);

	if (!f)
		return;
	f->ups++;
	f->up_ms = now;
	f->is_up = true;
}

void srv_flaps_lost(struct srv_flaps *flaps, const struct srv_path *path, const char *cause)
{
	uint64_t now = clock_now_ms();
	struct srv_flap *f = flap_of(flaps, path, now);

	if (now - path->up_since_ms >= SRV_FLAP_STEADY_MS)
		return;
	if (!f) {
		f = flap_victim(flaps, &path->client, now);
		*f = (struct srv_flap){ .ups = 1, .since_ms = path->up_since_ms,
					.up_ms = path->up_since_ms, .client = path->client };
		memcpy(f->uuid, path->uuid, sizeof(f->uuid));
		snprintf(f->identity, sizeof(f->identity), "%s", path->identity);
		snprintf(f->session, sizeof(f->session), "%s", path->sess->name);
		snprintf(f->path, sizeof(f->path), "%s", path->name);
	}
	f->lost_ms = now;
	f->is_up = false;
	snprintf(f->cause, sizeof(f->cause), "%s", cause);
}

const struct srv_flap *srv_flaps_next(const struct srv_flaps *flaps, const struct srv_flap *last)
{
	const struct srv_flap *f = last ? last + 1 : flaps->all;
	uint64_t now = clock_now_ms();

	for (; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (f->ups >= SRV_FLAP_UPS && !flap_is_over(f, now))
			return f;
	}
	return NULL;
}
