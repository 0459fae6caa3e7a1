/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a path, summed over all attempts.
 *
 * Counters stand in struct clt_path, in the pools of frwr, and in struct clt_con and struct
 * clt_wait_con, under locks or roles that counting threads hold anyway.  The service thread reads
 * all without these locks, and so may miss requests that are being counted.  A reset remembers the
 * values, and later reads subtract the remembered values. */
#ifndef CLT_STAT_H
#define CLT_STAT_H

#include <stdint.h>

struct clt_path;

enum clt_stat_what {
	CLT_STAT_READS, CLT_STAT_READ_BYTES,	/* requests with data, counted when sent */
	CLT_STAT_WRITES, CLT_STAT_WRITE_BYTES,
	CLT_STAT_FAILOVERS,		/* requests that another path had sent, and lost */
	CLT_STAT_RECONNECTS, CLT_STAT_RECONNECTS_FAILED,
	CLT_STAT_POLL_HANDOVERS,	/* of the poll role, from thread to thread */
	CLT_STAT_WAKEUPS,		/* of threads sleeping for an answer, or for the role */
	CLT_STAT_KEYS_MAPPED, CLT_STAT_KEYS_BOUND,
	CLT_STAT_REMOTE_INVALIDATES, CLT_STAT_LOCAL_INVALIDATES, CLT_STAT_MISSING_INVALIDATES,
	CLT_STAT_N
};

struct clt_stat {
	uint64_t n[CLT_STAT_N];
};

/* The name of a counter in rtrsctl: "failovers", ... */
const char *clt_stat_name(enum clt_stat_what what);
/* Read the counters since the session began; resets change nothing.  Service thread. */
void clt_stat_ever(const struct clt_path *path, struct clt_stat *stat);
/* Read the counters since the last reset.  Service thread. */
void clt_stat_get(const struct clt_path *path, struct clt_stat *stat);
/* Begin to count again.  Service thread. */
void clt_stat_reset(struct clt_path *path);
/* The number of requests of IO that were ever answered over @path.  Service thread. */
uint64_t clt_stat_answered(const struct clt_path *path);

#endif
