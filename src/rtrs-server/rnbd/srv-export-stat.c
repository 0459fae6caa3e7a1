/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counters of exports, and the counts at their last reset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "srv-export-stat.h"

static struct srv_export_stat *stat_of_namesake(const struct export *ex)
{
	const struct export *other;

	list_for_each(other, &ex->store->names, store_link) {
		if (other != ex && other->user && !strcmp(other->name, ex->name))
			return other->user;
	}
	return NULL;
}

static struct srv_export_stat *stat_create(struct srv_rnbd *rnbd)
{
	size_t len = sizeof(struct srv_export_stat) +
		     rnbd->srv->nthreads * sizeof(struct srv_export_thread);
	struct srv_export_stat *stat = aligned_alloc(_Alignof(struct srv_export_stat), len);

	if (!stat)
		return NULL;
	memset(stat, 0, len);
	stat->id = ++rnbd->export_ids;
	return stat;
}

int srv_export_stat_begin(struct srv_rnbd *rnbd, struct export *ex)
{
	struct srv_export_stat *stat = stat_of_namesake(ex);

	ex->user = stat ? stat : stat_create(rnbd);
	if (!ex->user)
		return -ENOMEM;
	if (!stat)
		srv_limit_begin(rnbd->srv, ex);
	((struct srv_export_stat *)ex->user)->exports++;
	return 0;
}

void srv_export_stat_end(struct export *ex)
{
	struct srv_export_stat *stat = ex->user;

	if (stat && !--stat->exports) {
		srv_limit_end(ex);
		free(stat);
	}
	ex->user = NULL;
}

uint64_t srv_export_id(const struct export *ex)
{
	return ((const struct srv_export_stat *)ex->user)->id;
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
