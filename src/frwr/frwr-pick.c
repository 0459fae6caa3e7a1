/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses a mode, with the reasons in words, and sizes queues so that the IO path never has to
 * check for room.  Pure. */
#include <errno.h>
#include <stdio.h>

#include "frwr-priv.h"
#include "number.h"
#include "util.h"

const enum frwr_mode frwr_order_client[3] = { FRWR_MW2, FRWR_MW1, FRWR_REREG };
const enum frwr_mode frwr_order_server[2] = { FRWR_MW1, FRWR_SUSPEND };

const char *frwr_mode_name(enum frwr_mode mode)
{
	static const char *const names[FRWR_NMODES] = { "MW2", "MW1", "REREG", "suspend",
							"STATIC" };

	return names[mode];
}

int frwr_pick(const struct frwr_caps *caps, const enum frwr_mode *order, unsigned n, char *why,
	      size_t len)
{
	unsigned pick = 0;

	while (pick < n && caps->rc[order[pick]])
		pick++;
	snprintf(why, len, "%s", pick < n ? frwr_mode_name(order[pick]) : "none");
	for (unsigned i = 0; i < pick; i++)
		fmt_add(why, len, "%snot %s: %s", i ? "; " : " (", frwr_mode_name(order[i]),
			   caps->why[order[i]]);
	if (pick < n && order[pick] == FRWR_REREG && !(caps->dev.caps & FAB_CAP_REREG_MR))
		fmt_add(why, len, "%ssystem calls for each request", pick ? "; " : " (");
	else if (pick == 0)
		return pick < n ? (int)order[pick] : -EOPNOTSUPP;
	fmt_add(why, len, ")");
	return pick < n ? (int)order[pick] : -EOPNOTSUPP;
}

/* ---- sizes ---- */

/* client: bind, request, invalidate; server: revoke, data, bind, SEND_WITH_INV, answer */
uint32_t frwr_wr_per_req(const struct frwr_load *load)
{
	bool windows = frwr_has_windows(load->mode);

	return load->server ? (windows ? 5 : 3) : (windows ? 3 : 1);
}

/* An invalidated read is answered with two messages. */
static uint32_t recv_per_req(const struct frwr_load *load)
{
	return !load->server && load->mode == FRWR_MW2 ? 2 : 1;
}

int frwr_sizing(const struct fab_device_attr *dev, const struct frwr_load *load,
		struct frwr_sizes *sizes)
{
	uint32_t max_wr = dev->max_qp_wr, per_req = frwr_wr_per_req(load);
	uint32_t per_recv = recv_per_req(load), depth = load->queue_depth;

	if (dev->max_sge < (load->server ? 1 : 2))
		return -EOPNOTSUPP;
	if (frwr_has_windows(load->mode) && !load->server)
		depth = MIN(depth, dev->max_mw - MIN(dev->max_mw, load->spare_windows));
	depth = MIN(depth, (max_wr - MIN(max_wr, load->spare_wr)) / per_req);
	depth = MIN(depth, (max_wr - MIN(max_wr, 1u)) / per_recv);
	if (depth == 0)
		return -ENOMEM;
	*sizes = (struct frwr_sizes){
		.queue_depth = depth,
		.wr_per_req = per_req,
		.max_send_wr = depth * per_req + load->spare_wr,
		.max_recv_wr = depth * per_recv + 1,
	};
	return 0;
}
