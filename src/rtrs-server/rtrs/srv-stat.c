/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counts at the last reset of a path; the counters of a connection are part of the
 * connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "srv-con.h"
#include "srv-path.h"
#include "srv-stat.h"

static void path_sum(const struct srv_path *path, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			io_stat_add(sum, &path->cons[cid]->stat, 1);
	}
}

void srv_stat_path(const struct srv_path *path, struct io_stat *sum)
{
	path_sum(path, sum);
	if (path->stat_base)
		io_stat_add(sum, path->stat_base, -1);
}

uint64_t srv_stat_inflight(const struct srv_path *path)
{
	uint64_t n = 0;

	for (unsigned cid = 0; cid < path->cid_num; cid++)
		n += path->cons[cid] ? counter_get(&path->cons[cid]->inflight) : 0;
	return n;
}

int srv_stat_reset_path(struct srv_path *path)
{
	if (!path->stat_base)
		path->stat_base = malloc(sizeof(*path->stat_base));
	if (!path->stat_base)
		return -ENOMEM;
	path_sum(path, path->stat_base);
	return 0;
}
