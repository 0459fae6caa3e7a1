/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the rules for the kind of key of READs.  Pure. */
#include <errno.h>
#include <stdio.h>

#include "clt-reg.h"
#include "util.h"

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

int clt_reg_pick(enum clt_registration want, const struct frwr_caps *caps, bool direct, char *why,
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

unsigned clt_reg_depth(const struct frwr_caps *caps, enum frwr_mode mode, unsigned depth,
		       uint32_t *send_wr)
{
	/* The control slot needs a window, too. */
	const struct frwr_load load = { .mode = mode, .queue_depth = depth, .spare_windows = 1 };
	struct frwr_sizes sizes;

	*send_wr = 0;
	if (!clt_reg_is_window(mode))
		return depth;
	if (frwr_sizing(&caps->dev, &load, &sizes) < 0)
		return 0;
	*send_wr = sizes.max_send_wr;
	return sizes.queue_depth;
}
