/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, histograms of times, the counters of IO, which are both, and probes.  A single thread
 * increases a number and any thread reads it.  The writer takes no lock, runs no atomic
 * read-modify-write, and shares no cache line with another writer. */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <config.h>

#include <stdatomic.h>
#include <stdint.h>
#ifdef HAVE_SYS_SDT_H
#include <sys/sdt.h>
#endif

struct counter {
	_Atomic(uint64_t) value;
};

/* The value now.  Any thread. */
static inline uint64_t counter_get(const struct counter *c)
{
	return atomic_load_explicit(&c->value, memory_order_relaxed);
}

/* Add @n.  Only the thread that owns @c. */
static inline void counter_add(struct counter *c, uint64_t n)
{
	atomic_store_explicit(&c->value, counter_get(c) + n, memory_order_relaxed);
}

/* Add @n, if other threads may write @c, too, though seldom.  Any thread. */
static inline void counter_add_shared(struct counter *c, uint64_t n)
{
	atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

/* ---- histograms ----
 *
 * Bucket b of a hist counts times from 2^b to below 2^(b+1) ns.  The first and the last bucket also
 * count all shorter and longer times. */

#define HIST_BUCKETS 40			/* the last: 9 minutes and more */

struct hist {				/* all 0: empty */
	struct counter n[HIST_BUCKETS];
	struct counter sum_ns;		/* of all times */
};

/* The bucket of @ns. */
static inline unsigned hist_bucket(uint64_t ns)
{
	unsigned b = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;

	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

/* Count @ns.  The thread of @h. */
static inline void hist_count(struct hist *h, uint64_t ns)
{
	counter_add(&h->n[hist_bucket(ns)], 1);
	counter_add(&h->sum_ns, ns);
}

/* Count @ns, if other threads may count in @h, too, though seldom.  Any thread. */
static inline void hist_count_shared(struct hist *h, uint64_t ns)
{
	counter_add_shared(&h->n[hist_bucket(ns)], 1);
	counter_add_shared(&h->sum_ns, ns);
}

/* Add @h to @sum @times times: 1, or -1 to subtract an @h that was added.  The thread of @sum;
 * another thread may count in @h meanwhile. */
void hist_add(struct hist *sum, const struct hist *h, int times);

/* The number of samples in @h. */
uint64_t hist_total(const struct hist *h);
/* The time below which @permille of 1000 samples lie, as if the samples of a bucket lay evenly in
 * the bucket; 0: empty. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);

/* ---- IO of an export or a path, as both ends count it ---- */

enum io_stat_op {
	IO_STAT_READ, IO_STAT_WRITE, IO_STAT_FLUSH, IO_STAT_DISCARD, IO_STAT_ZEROES,
	IO_STAT_NOPS,			/* number of operations; as an operation: not IO */
};

struct io_stat_count {
	struct counter count, bytes, errors;	/* @bytes without failed requests */
	struct hist latency;
};

struct io_stat {			/* all 0: nothing was counted */
	struct io_stat_count op[IO_STAT_NOPS];
};

/* Count a request for @bytes that ended with @status after @ns.  The thread of @c. */
static inline void io_stat_count(struct io_stat_count *c, int status, uint64_t bytes, uint64_t ns)
{
	counter_add(&c->count, 1);
	if (status)
		counter_add(&c->errors, 1);
	else
		counter_add(&c->bytes, bytes);
	hist_count(&c->latency, ns);
}

/* The name of @op: "read", ... */
const char *io_stat_name(enum io_stat_op op);
/* Add @stat to @sum @times times, like hist_add(). */
void io_stat_add(struct io_stat *sum, const struct io_stat *stat, int times);

/* ---- probes of USDT, for bpftrace, perf and SystemTap ----
 *
 * Each is a no-op instruction until a tool attaches.  The provider is "rtrs".  man/rtrsctl.pod has
 * the list; contrib/ has scripts.  Without sys/sdt.h at build time the probes are compiled out. */

#ifdef HAVE_SYS_SDT_H
#define PROBE3(name, a, b, c) DTRACE_PROBE3(rtrs, name, a, b, c)
#else
#define PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
