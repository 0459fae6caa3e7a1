/* SPDX-License-Identifier: BSD-3-Clause */
/* How long queues must be, so that the IO path never has to look.  Pure. */
#include <errno.h>

#include "frwr-priv.h"
#include "util.h"

/* Requests of connection 0 that belong to no IO: a heartbeat and its answer. */
#define SERVICE_WR 2u

static uint32_t wr_per_req(const struct frwr_caps *caps, const struct frwr_load *load)
{
	bool windows = frwr_has_windows(load->mode);
	/* client: bind, request, invalidate; server: revoke, data, bind, SEND_WITH_INV, answer */
	uint32_t n = load->server ? (windows ? 5 : 3) : (windows ? 3 : 1);

	if (windows && (caps->quirks & FRWR_QUIRK_RETRIED_BIND))
		n += 2;
	return n;
}

/* An invalidated read is answered with two messages. */
static uint32_t recv_per_req(const struct frwr_load *load)
{
	return !load->server && load->mode == FRWR_MW2 ? 2 : 1;
}

int frwr_sizing(const struct frwr_caps *caps, const struct frwr_load *load,
		struct frwr_sizes *sizes)
{
	uint32_t spare = load->service ? SERVICE_WR : 0;
	uint32_t fence = load->mode == FRWR_MW2 && (caps->quirks & FRWR_QUIRK_RETRIED_BIND) ? 1 : 0;
	uint32_t max_wr = caps->dev.max_qp_wr, per_req = wr_per_req(caps, load);
	uint32_t per_recv = recv_per_req(load);
	uint64_t depth = load->queue_depth;

	if (caps->dev.max_sge < 2)
		return -EOPNOTSUPP;
	if (load->arena && load->max_io)
		depth = MIN(depth, load->arena / load->max_io);
	if (frwr_has_windows(load->mode))
		depth = MIN(depth, (uint64_t)(caps->dev.max_mw - MIN(caps->dev.max_mw, fence)));
	depth = MIN(depth, (uint64_t)(max_wr - MIN(max_wr, spare)) / per_req);
	depth = MIN(depth, (uint64_t)(max_wr - MIN(max_wr, spare + 1)) / per_recv);
	if (depth == 0)
		return -ENOMEM;
	*sizes = (struct frwr_sizes){
		.queue_depth = (uint32_t)depth,
		.wr_per_req = per_req,
		.max_send_wr = (uint32_t)depth * per_req + spare,
		.max_recv_wr = (uint32_t)depth * per_recv + spare + 1,
		.windows = (uint32_t)depth + fence,
	};
	return 0;
}
