/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds shards up.  Owns nothing. */
#include <string.h>

#include "clock.h"
#include "dev-priv.h"

void dev_stat_ever(const struct dev *dev, struct dev_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < DEV_STAT_SHARDS; i++) {
		io_stat_add(&sum->io, &dev->stat[i].io, 1);
		hist_add(&sum->queued, &dev->stat[i].queued, 1);
	}
	for (unsigned op = 0; op < IO_STAT_NOPS; op++)
		counter_add(&sum->io.op[op].count, hist_total(&sum->io.op[op].latency));
}

void dev_stat_get(const struct dev *dev, struct dev_stat *sum)
{
	dev_stat_ever(dev, sum);
	io_stat_add(&sum->io, &dev->stat_base.io, -1);
	hist_add(&sum->queued, &dev->stat_base.queued, -1);
}

void dev_stat_reset(struct dev *dev)
{
	dev_stat_ever(dev, &dev->stat_base);
}

/* ---- ages ---- */

struct ages {
	uint64_t now_ns, oldest_ns;
};

static void age_found(void *arg, const void *of, uint64_t began_ns)
{
	struct dev *dev = (struct dev *)of;	/* NULL: a message of the session */
	struct ages *ages = arg;
	uint64_t ns = began_ns < ages->now_ns ? ages->now_ns - began_ns : 0;

	ages->oldest_ns = MAX(ages->oldest_ns, ns);
	if (dev)
		dev->oldest_ns = MAX(dev->oldest_ns, ns);
}

uint64_t dev_stat_ages(struct client *clt)
{
	struct ages ages = { .now_ns = clock_measure_ns() };
	struct dev *dev;

	dev_for_each(dev, clt)
		dev->oldest_ns = 0;
	clt_io_each_age(&clt->sess.io, age_found, &ages);
	return ages.oldest_ns;
}

uint64_t dev_stat_oldest_ns(const struct dev *dev)
{
	return dev->oldest_ns;
}
