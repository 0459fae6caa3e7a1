/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>

#include "answer.h"
#include "rate.h"

void rate_add(struct rate_sums *sums, const json_t *object)
{
	json_t *op, *n;
	const char *name;
	size_t i;

	json_object_foreach(json_object_get(object, "stats"), name, op) {
		sums->count += answer_number(op, "count");
		sums->bytes += answer_number(op, "bytes");
		sums->errors += answer_number(op, "errors");
		json_array_foreach(json_object_get(op, "log2_ns"), i, n) {
			if (i < HIST_BUCKETS)
				counter_add(&sums->latency.n[i], (uint64_t)json_integer_value(n));
		}
	}
}

/* Is @now the continuation of @then? */
static bool went_on(const struct rate_sums *now, const struct rate_sums *then)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (counter_get(&now->latency.n[i]) < counter_get(&then->latency.n[i]))
			return false;
	}
	return now->count >= then->count && now->bytes >= then->bytes &&
		now->errors >= then->errors;
}

void rate_since(struct rate_sums *now, const struct rate_sums *then)
{
	if (!went_on(now, then))
		return;
	now->count -= then->count;
	now->bytes -= then->bytes;
	now->errors -= then->errors;
	hist_add(&now->latency, &then->latency, -1);
}

void rate_print(const struct rate_sums *sums, uint64_t ns, char iops[TEXT_CELL],
		char mbs[TEXT_CELL])
{
	snprintf(iops, TEXT_CELL, "%.0f", ns ? (double)sums->count * 1e9 / (double)ns : 0);
	snprintf(mbs, TEXT_CELL, "%.1f", ns ? (double)sums->bytes * 1e3 / (double)ns : 0);
}
