/* SPDX-License-Identifier: BSD-3-Clause */
/* Geometry of a session's chunks: how queue depth and chunk size share the 28 payload bits of an
 * immediate, the same way on both sides.  doc/protocol.md 2.6, 3.2; doc/traps.md 3. */
#ifndef RTRS_GEOM_H
#define RTRS_GEOM_H

#include <stdint.h>

#include "rtrs-proto.h"

struct rtrs_geom {
	uint32_t queue_depth;		/* chunks, permits: 1..65535 */
	uint32_t max_io_size;		/* bytes of data in one request */
	uint32_t max_hdr_size;		/* bytes of headers behind the data */
	uint32_t chunk_size;		/* max_io_size + max_hdr_size */
	uint32_t off_bits;		/* offset field of the IO_REQ payload */
	uint32_t off_mask;
};

/* Returns 0; -EINVAL queue depth 0 or too large, or a size of 0 or a sum beyond 32 bits;
 * -EOVERFLOW when bits(queue_depth) + bits(chunk_size) > 28. */
int rtrs_geom_init(struct rtrs_geom *g, uint32_t queue_depth, uint32_t max_io_size,
		   uint32_t max_hdr_size);
/* The largest power of 2 that rtrs_geom_init() takes as a queue depth with these sizes; 0: no
 * depth. */
uint32_t rtrs_geom_depth_max(uint32_t max_io_size, uint32_t max_hdr_size);

#endif
