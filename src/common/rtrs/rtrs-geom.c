/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "rtrs-geom.h"
#include "util.h"

int rtrs_geom_init(struct rtrs_geom *g, uint32_t queue_depth, uint32_t max_io_size,
		   uint32_t max_hdr_size)
{
	uint64_t chunk_size = (uint64_t)max_io_size + max_hdr_size;
	unsigned qd_bits = ceil_log2(queue_depth);

	if (!queue_depth || queue_depth > RTRS_MAX_QUEUE_DEPTH)
		return -EINVAL;
	if (!max_io_size || !max_hdr_size || chunk_size > UINT32_MAX)
		return -EINVAL;
	if (qd_bits + ceil_log2(chunk_size) > RTRS_IMM_PAYL_BITS)
		return -EOVERFLOW;

	g->queue_depth = queue_depth;
	g->max_io_size = max_io_size;
	g->max_hdr_size = max_hdr_size;
	g->chunk_size = (uint32_t)chunk_size;
	g->off_bits = RTRS_IMM_PAYL_BITS - qd_bits;
	g->off_mask = (1u << g->off_bits) - 1;
	return 0;
}

uint32_t rtrs_geom_depth_max(uint32_t max_io_size, uint32_t max_hdr_size)
{
	struct rtrs_geom geom;
	uint32_t depth = 0;

	while (!rtrs_geom_init(&geom, depth ? 2 * depth : 1, max_io_size, max_hdr_size))
		depth = geom.queue_depth;
	return depth;
}
