/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl-json.h"
#include "ctl-stat.h"

/* The number of times from 2^i to 2^(i+1) ns, for each i up to the last number that is not 0. */
static json_t *stat_buckets(const struct hist *h)
{
	json_t *array = json_array();
	unsigned n = HIST_BUCKETS;
	bool ok = true;

	while (n && !counter_get(&h->n[n - 1]))
		n--;
	for (unsigned i = 0; i < n; i++)
		ok = ok && ctl_json_add(array, json_integer((json_int_t)counter_get(&h->n[i])));
	return ctl_json_whole(array, ok);
}

json_t *ctl_stat_hist(const struct hist *h)
{
	return json_pack("{s:I,s:I,s:I,s:o}",
			 "p50_ns", (json_int_t)hist_quantile(h, 500),
			 "p99_ns", (json_int_t)hist_quantile(h, 990),
			 "p999_ns", (json_int_t)hist_quantile(h, 999),
			 "log2_ns", stat_buckets(h));
}

static json_t *op_stat(const struct io_stat_count *c)
{
	return ctl_json_with(json_pack("{s:I,s:I,s:I}",
				       "count", (json_int_t)counter_get(&c->count),
				       "bytes", (json_int_t)counter_get(&c->bytes),
				       "errors", (json_int_t)counter_get(&c->errors)),
			     ctl_stat_hist(&c->latency));
}

json_t *ctl_stat_io(const struct io_stat *stat)
{
	json_t *ops = json_object();
	bool ok = ops;

	for (unsigned op = 0; op < IO_STAT_NOPS && ok; op++)
		ok = !json_object_set_new(ops, io_stat_name(op), op_stat(&stat->op[op]));
	return json_pack("{s:o}", "stats", ctl_json_whole(ops, ok));
}
