/* SPDX-License-Identifier: BSD-3-Clause */
#include "io-stat.h"

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
