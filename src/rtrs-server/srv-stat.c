/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counters of exports, and what resets remember; a connection's counters are part of it. */
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

const char *srv_stat_name(enum srv_stat_op op)
{
	static const char *const names[] = { "read", "write", "flush", "discard", "write_zeroes" };

	return names[op];
}

int srv_stat_init(struct srv *srv)
{
	size_t len = align_up(srv->exports->nslots * sizeof(struct srv_stat), CACHE_LINE);

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

/* @sum and @sign times @stat. */
static void stat_add(struct srv_stat *sum, const struct srv_stat *stat, int sign)
{
	uint64_t times = (uint64_t)sign;

	for (unsigned op = 0; op < SRV_STAT_NOPS; op++) {
		struct srv_stat_count *to = &sum->op[op];
		const struct srv_stat_count *from = &stat->op[op];

		counter_add(&to->count, times * counter_get(&from->count));
		counter_add(&to->bytes, times * counter_get(&from->bytes));
		counter_add(&to->errors, times * counter_get(&from->errors));
		if (sign > 0)
			hist_add(&to->latency, &from->latency);
		else
			hist_sub(&to->latency, &from->latency);
	}
}

static void path_sum(const struct srv_path *path, struct srv_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			stat_add(sum, &path->cons[cid]->stat, 1);
	}
}

static void export_sum(const struct srv *srv, const struct export *ex, struct srv_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < srv->nthreads; i++)
		stat_add(sum, &srv->threads[i].stat[ex->index], 1);
}

void srv_stat_path(const struct srv_path *path, struct srv_stat *sum)
{
	path_sum(path, sum);
	if (path->stat_base)
		stat_add(sum, path->stat_base, -1);
}

void srv_stat_export(const struct srv *srv, const struct export *ex, struct srv_stat *sum)
{
	export_sum(srv, ex, sum);
	if (srv->stat_base[ex->index])
		stat_add(sum, srv->stat_base[ex->index], -1);
}

static bool have_base(struct srv_stat **base)
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
	struct srv_stat **base = &srv->stat_base[ex->index];

	if (!have_base(base))
		return -ENOMEM;
	export_sum(srv, ex, *base);
	return 0;
}
