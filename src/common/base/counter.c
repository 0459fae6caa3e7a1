/* SPDX-License-Identifier: BSD-3-Clause */
#include "counter.h"

void hist_add(struct hist *sum, const struct hist *h, int times)
{
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		counter_add(&sum->n[b], (uint64_t)times * counter_get(&h->n[b]));
	counter_add(&sum->sum_ns, (uint64_t)times * counter_get(&h->sum_ns));
}

uint64_t hist_total(const struct hist *h)
{
	uint64_t total = 0;

	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		total += counter_get(&h->n[b]);
	return total;
}

uint64_t hist_quantile(const struct hist *h, unsigned permille)
{
	double rank = (double)hist_total(h) * permille / 1000, below = 0;

	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		double n = (double)counter_get(&h->n[b]);

		if (n > 0 && below + n >= rank) {
			double start = b ? (double)(1ull << b) : 0, end = (double)(2ull << b);

			return (uint64_t)(start + (end - start) * (rank - below) / n);
		}
		below += n;
	}
	return 0;
}

const char *io_stat_name(enum io_stat_op op)
{
	static const char *const names[] = { "read", "write", "flush", "discard", "write_zeroes" };

	return names[op];
}

void io_stat_add(struct io_stat *sum, const struct io_stat *stat, int times)
{
	for (unsigned op = 0; op < IO_STAT_NOPS; op++) {
		struct io_stat_count *to = &sum->op[op];
		const struct io_stat_count *from = &stat->op[op];

		counter_add(&to->count, (uint64_t)times * counter_get(&from->count));
		counter_add(&to->bytes, (uint64_t)times * counter_get(&from->bytes));
		counter_add(&to->errors, (uint64_t)times * counter_get(&from->errors));
		hist_add(&to->latency, &from->latency, times);
	}
}
