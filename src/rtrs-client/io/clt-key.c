/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys with which a server writes the data of READs: their kind, and the windows of an attempt;
 * see clt-io-priv.h for threads.  A window whose connection has failed is given back with the
 * others, never repaired. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clt-io-priv.h"
#include "clt-key.h"
#include "log.h"
#include "util.h"

/* ---- the kind of key of READs ---- */

const char *const clt_registration_names[CLT_NREGS] = {
	[CLT_REG_AUTO] = "auto", [CLT_REG_WINDOW] = "window", [CLT_REG_STATIC] = "static",
};

static int pick_window(const struct frwr_caps *caps, char *why, size_t len)
{
	char order[192];
	int mode = frwr_pick(caps, frwr_order_client, 2, order, sizeof(order));

	if (mode == FRWR_MW2)
		snprintf(why, len, "a window of type 2 for each read");
	if (mode == FRWR_MW1)
		snprintf(why, len, "a window of type 1 for each read (%s)", caps->why[FRWR_MW2]);
	return mode;
}

static int pick_auto(const struct frwr_caps *caps, bool direct, char *why, size_t len)
{
	int mode;

	if (direct) {
		snprintf(why, len, "a new key for each read (free over TCP)");
		return FRWR_REREG;
	}
	if (caps->quirks & FRWR_QUIRK_INV_FATAL) {
		snprintf(why, len,
			 "static (this device has windows in software, with which a server can "
			 "stop this machine)");
		return FRWR_STATIC;
	}
	if (caps->quirks & FRWR_QUIRK_RETRIED_BIND) {
		snprintf(why, len,
			 "static (with windows of this device a lost packet would be a lost "
			 "connection)");
		return FRWR_STATIC;
	}
	mode = pick_window(caps, why, len);
	if (mode >= 0)
		return mode;
	snprintf(why, len, "static (%s)", caps->why[FRWR_MW1]);
	return FRWR_STATIC;
}

int clt_key_pick(enum clt_registration want, const struct frwr_caps *caps, bool direct, char *why,
		 size_t len)
{
	int mode;

	switch (want) {
	case CLT_REG_AUTO:
		return pick_auto(caps, direct, why, len);
	case CLT_REG_WINDOW:
		mode = pick_window(caps, why, len);
		if (mode >= 0)
			return mode;
		if (direct) {
			snprintf(why, len, "a new key for each read (%s)", caps->why[FRWR_MW1]);
			return FRWR_REREG;
		}
		snprintf(why, len, "registration=window: %s; use registration=static",
			 caps->why[FRWR_MW1]);
		return -EOPNOTSUPP;
	case CLT_REG_STATIC:
		break;
	}
	snprintf(why, len, "static");
	return FRWR_STATIC;
}

unsigned clt_key_depth(const struct frwr_caps *caps, enum frwr_mode mode, unsigned depth,
		       uint32_t *send_wr)
{
	/* The control slot needs a window, too. */
	const struct frwr_load load = { .mode = mode, .queue_depth = depth, .spare_windows = 1 };
	struct frwr_sizes sizes;

	*send_wr = 0;
	if (!clt_key_is_window(mode))
		return depth;
	if (frwr_sizing(&caps->dev, &load, &sizes) < 0)
		return 0;
	*send_wr = sizes.max_send_wr;
	return sizes.queue_depth;
}

/* ---- the pool ---- */

int clt_key_open(struct clt_attempt *att, struct frwr_lessons *lessons, char *why, size_t len)
{
	int r;

	if (!clt_key_is_window(att->mode))
		return 0;
	att->nwindows = MIN(att->depth, att->io->slots.n) + 1;
	r = frwr_pool_create(&att->pool, att->pd, att->mode, att->nwindows);
	if (r < 0) {
		att->pool = NULL;
		snprintf(why, len,
			 "cannot get %u memory windows from the device: %s; registration=static "
			 "needs none", att->nwindows, strerror(-r));
		return r;
	}
	frwr_pool_learn(att->pool, lessons, &att->caps);
	/* With CLT_MEM_BOUNCE slots have such addresses in their regions already (clt-mem.c). */
	if (att->way != CLT_MEM_BOUNCE && att->caps.dev.caps & FAB_CAP_MW_ZERO_BASED)
		frwr_pool_zero_based(att->pool);
	return 0;
}

static void pool_tell(const struct clt_attempt *att, const char *name)
{
	struct frwr_stats s;

	frwr_stats(att->pool, &s);
	log_dbg(name, "windows: %llu bound, %llu invalidated by the server, %llu by us, %llu "
		"missing; %llu binds and %llu invalidates flushed, %llu posts failed, "
		"%llu of them in "
		"part; %llu mapped, %llu keys wrapped, %llu with the wrong flag",
		(unsigned long long)s.bind_posted, (unsigned long long)s.remote_inv,
		(unsigned long long)s.local_inv, (unsigned long long)s.remote_inv_missing,
		(unsigned long long)s.flushed_bind, (unsigned long long)s.flushed_inv,
		(unsigned long long)s.post_fail, (unsigned long long)s.partial_post,
		(unsigned long long)s.mapped, (unsigned long long)s.key_wraps,
		(unsigned long long)s.quirk_inv_flag);
}

void clt_key_keep_stats(struct clt_attempt *att, const struct frwr_pool *pool)
{
	struct frwr_stats s;

	if (!pool)
		return;
	frwr_stats(pool, &s);
	att->key_stats.mapped += s.mapped;
	att->key_stats.bind_posted += s.bind_posted;
	att->key_stats.remote_inv += s.remote_inv;
	att->key_stats.local_inv += s.local_inv;
	att->key_stats.remote_inv_missing += s.remote_inv_missing;
}

void clt_key_stats(const struct clt_attempt *att, struct frwr_stats *sum)
{
	struct clt_attempt all = { .key_stats = att->key_stats };

	clt_key_keep_stats(&all, att->pool);
	clt_key_keep_stats(&all, att->keys);
	*sum = all.key_stats;
}

void clt_key_close(struct clt_attempt *att, const char *name, bool again)
{
	unsigned left;

	if (!att->pool)
		return;
	if (!again) {
		frwr_pool_kill(att->pool);
		pool_tell(att, name);
		clt_key_keep_stats(att, att->pool);
	}
	left = frwr_pool_destroy(att->pool);
	if (left && !again)
		return;
	if (left)
		log_warn(name, "%u memory windows stay with the device", left);
	att->pool = NULL;
}

/* ---- a READ ---- */

static struct frwr *window_of(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return frwr_at(att->pool, slot == clt_slot_ctl(att->io) ? att->nwindows - 1 : slot->id);
}

int clt_key_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_mr *mr, uint64_t iova,
		struct frwr_handle *handle, bool *ask)
{
	struct frwr *w = window_of(slot, att);
	int r = frwr_map(w, mr, iova, slot->len, FRWR_PEER_WRITES, handle);

	if (r < 0)
		return r;
	*ask = att->mode == FRWR_MW2;
	if (*ask && frwr_expect_reminv(w) < 0)
		return -ENOTCONN;	/* RACE: the last bind was flushed since */
	slot->window = w;
	return 0;
}

int clt_key_chain(struct clt_slot *slot, struct clt_con *con)
{
	if (frwr_fill_send(&slot->entry, con->fab, slot->window, &slot->w.wr, &slot->w.wr) == 0)
		return 0;
	slot->window = NULL;
	return -ENOTCONN;		/* RACE: as above */
}

int clt_key_answered(struct clt_slot *slot, bool invalidated)
{
	int r = frwr_answered(slot->window, invalidated);

	/* -ENOTCONN: @slot is given back when the connection has drained. */
	return r == -EPROTO ? r : invalidated && r == 0 ? 0 : 1;
}

int clt_key_unmap(struct clt_slot *slot, struct clt_con *con, frwr_done_fn *done)
{
	int r = frwr_fill_unmap(&slot->entry, con->fab, slot->window, done, slot);

	assert(r == 0 || r == -EALREADY || r == -ENOTCONN);
	return r;
}

bool clt_key_reminv(struct clt_con *con, const struct ibv_wc *wc)
{
	struct frwr_pool *pool = con->att->pool;

	return pool && frwr_reminv(pool, con->fab, wc);
}
