/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counters of exports, and what a reset of them remembers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "srv-export-stat.h"

#define CACHE_LINE 64

int srv_export_stat_init(struct srv_rnbd *rnbd)
{
	size_t len = align_up(rnbd->exports->nslots * sizeof(struct io_stat), CACHE_LINE);

	rnbd->stat_base = calloc(rnbd->exports->nslots, sizeof(*rnbd->stat_base));
	rnbd->stat = calloc(rnbd->srv->nthreads, sizeof(*rnbd->stat));
	if (!rnbd->stat_base || !rnbd->stat)
		return -ENOMEM;
	for (unsigned i = 0; i < rnbd->srv->nthreads; i++) {
		rnbd->stat[i] = aligned_alloc(CACHE_LINE, len);
		if (!rnbd->stat[i])
			return -ENOMEM;
		memset(rnbd->stat[i], 0, len);
	}
	return 0;
}

void srv_export_stat_fini(struct srv_rnbd *rnbd)
{
	for (unsigned i = 0; rnbd->stat && i < rnbd->srv->nthreads; i++)
		free(rnbd->stat[i]);
	free(rnbd->stat);
	for (unsigned i = 0; rnbd->stat_base && i < rnbd->exports->nslots; i++)
		free(rnbd->stat_base[i]);
	free(rnbd->stat_base);
}

static void export_sum(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < rnbd->srv->nthreads; i++)
		io_stat_add(sum, &rnbd->stat[i][ex->index], 1);
}

void srv_export_stat(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	export_sum(rnbd, ex, sum);
	if (rnbd->stat_base[ex->index])
		io_stat_add(sum, rnbd->stat_base[ex->index], -1);
}

int srv_export_stat_reset(struct srv_rnbd *rnbd, const struct export *ex)
{
	struct io_stat **base = &rnbd->stat_base[ex->index];

	if (!*base)
		*base = malloc(sizeof(**base));
	if (!*base)
		return -ENOMEM;
	export_sum(rnbd, ex, *base);
	return 0;
}
