/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counters of exports, and what resets remember; a connection's counters are part of
 * it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "exports.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-priv.h"
#include "srv-stat.h"
#include "util.h"

#define CACHE_LINE 64

int srv_stat_init(struct srv *srv)
{
	size_t len = align_up(srv->exports->nslots * sizeof(struct io_stat), CACHE_LINE);

	srv->stat_base = calloc(srv->exports->nslots, sizeof(*srv->stat_base));
	if (!srv->stat_base)
		return -ENOMEM;
	for (unsigned i = 0; i < srv->nthreads; i++) {
		srv->threads[i].stat = aligned_alloc(CACHE_LINE, len);
		if (!srv->threads[i].stat)
			return -ENOMEM;
		memset(srv->threads[i].stat, 0, len);
	}
	return 0;
}

void srv_stat_fini(struct srv *srv)
{
	for (unsigned i = 0; i < srv->nthreads; i++)
		free(srv->threads[i].stat);
	for (unsigned i = 0; srv->stat_base && i < srv->exports->nslots; i++)
		free(srv->stat_base[i]);
	free(srv->stat_base);
}

static void path_sum(const struct srv_path *path, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			io_stat_add(sum, &path->cons[cid]->stat);
	}
}

static void export_sum(const struct srv *srv, const struct export *ex, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < srv->nthreads; i++)
		io_stat_add(sum, &srv->threads[i].stat[ex->index]);
}

void srv_stat_path(const struct srv_path *path, struct io_stat *sum)
{
	path_sum(path, sum);
	if (path->stat_base)
		io_stat_sub(sum, path->stat_base);
}

void srv_stat_export(const struct srv *srv, const struct export *ex, struct io_stat *sum)
{
	export_sum(srv, ex, sum);
	if (srv->stat_base[ex->index])
		io_stat_sub(sum, srv->stat_base[ex->index]);
}

static bool have_base(struct io_stat **base)
{
	if (!*base)
		*base = malloc(sizeof(**base));
	return *base;
}

int srv_stat_reset_path(struct srv_path *path)
{
	if (!have_base(&path->stat_base))
		return -ENOMEM;
	path_sum(path, path->stat_base);
	return 0;
}

int srv_stat_reset_export(struct srv *srv, const struct export *ex)
{
	struct io_stat **base = &srv->stat_base[ex->index];

	if (!have_base(base))
		return -ENOMEM;
	export_sum(srv, ex, *base);
	return 0;
}
