/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counters of exports, and the counts at their last reset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "srv-export-stat.h"

int srv_export_stat_begin(const struct srv_rnbd *rnbd, struct export *ex)
{
	size_t len = sizeof(struct srv_export_stat) +
		     rnbd->srv->nthreads * sizeof(struct srv_export_thread);

	ex->user = aligned_alloc(_Alignof(struct srv_export_stat), len);
	if (!ex->user)
		return -ENOMEM;
	memset(ex->user, 0, len);
	return 0;
}

void srv_export_stat_end(struct export *ex)
{
	free(ex->user);
	ex->user = NULL;
}

void srv_export_stat_ever(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	const struct srv_export_stat *all = ex->user;

	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < rnbd->srv->nthreads; i++)
		io_stat_add(sum, &all->threads[i].stat, 1);
}

void srv_export_stat(const struct srv_rnbd *rnbd, const struct export *ex, struct io_stat *sum)
{
	const struct srv_export_stat *all = ex->user;

	srv_export_stat_ever(rnbd, ex, sum);
	io_stat_add(sum, &all->base, -1);
}

void srv_export_stat_reset(const struct srv_rnbd *rnbd, const struct export *ex)
{
	struct srv_export_stat *all = ex->user;

	srv_export_stat_ever(rnbd, ex, &all->base);
}
