/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of an export at work (conf-limits.h): READ and modifying requests wait for the buckets
 * of the export before the storage sees the requests.  FLUSH and EXTENTS never wait.
 *
 * FAIR.  Sessions take turns: the next request is of the session that has used the least of the
 * budget since the session began to wait.  A session has a queue for each direction, so that reads
 * wait for no limit of writes.  Requests of a queue go in order of arrival.  A request that finds
 * another waiting stands in line, however full the buckets are.
 *
 * THREADS.  Only exports with limits take the lock, which is innermost.  A request enters on its
 * own thread and goes on there; the thread that lets a request go sends the request home.  The
 * timer is the control thread's.
 *
 * The queue depths of the sessions' paths bound the queues: each waiting request has a chunk and a
 * place in the fence.  A waiting request refers to its device, which refers to the export.
 *
 * A wait ends in one of these ways, and the request comes home in stage SRV_REQ_LIMIT:
 *   - the buckets let the request go, the limits go, or the server stops: status 0;
 *   - the device was taken from its session: -ENOTCONN.
 * If the connection is cut the wait ends inside srv_limit_con_cut(). */
#ifndef SRV_LIMIT_H
#define SRV_LIMIT_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "conf-limits.h"
#include "list.h"
#include "loop.h"
#include "util.h"

/* ---- buckets: the rates of limits ---- */

/* A bucket lets units through at a rate: requests or bytes a second.  Units that nobody took are
 * saved up for @burst_ns at most, and may then go at once.
 *
 * The state of a bucket is one time, @due_ns: units may go from this time on, and each unit moves
 * the time on by 1/rate.  A request goes when the time has come, however many units the request
 * has; the requests behind it wait for the rest.  So in any window of w seconds the units that go,
 * without those of the last request, are at most rate * (w + burst).
 *
 * The caller reads the clock and serialises the calls.  Pure; cannot fail. */

#define BUCKET_RATE_MAX (UINT64_C(1) << 40)	/* units a second */

struct bucket {
	uint64_t rate;			/* units a second; 0: no limit */
	uint64_t burst_ns;
	uint64_t due_ns;		/* when units may go; clock_now_ns() time */
	uint64_t rest;			/* of a nanosecond, in 1/rate */
};

/* The earliest time that units saved up until @now_ns can be from. */
static inline uint64_t bucket_burst_begin(const struct bucket *b, uint64_t now_ns)
{
	return now_ns > b->burst_ns ? now_ns - b->burst_ns : 0;
}

/* Let @rate units a second through, with bursts of @burst_ns, from @now_ns on.  The bucket begins
 * with a whole burst, unless rate and burst are those of before: then nothing changes. */
static inline void bucket_set(struct bucket *b, uint64_t rate, uint64_t burst_ns, uint64_t now_ns)
{
	assert(rate <= BUCKET_RATE_MAX);
	if (b->rate == rate && b->burst_ns == burst_ns)
		return;
	*b = (struct bucket){ .rate = rate, .burst_ns = burst_ns };
	b->due_ns = bucket_burst_begin(b, now_ns);
}

/* The time when the next request may go; 0: there is no limit. */
static inline uint64_t bucket_ready_ns(const struct bucket *b)
{
	return b->rate ? b->due_ns : 0;
}

/* Let a request of @units go at @now_ns, when bucket_ready_ns() has come.  Returns the time that
 * the units take at the rate. */
static inline uint64_t bucket_take(struct bucket *b, uint32_t units, uint64_t now_ns)
{
	uint64_t all, ns;

	if (!b->rate)
		return 0;
	/* UINT32_MAX seconds of nanoseconds, and BUCKET_RATE_MAX, fit. */
	all = units * UINT64_C(1000000000) + b->rest;
	ns = all / b->rate;
	b->rest = all % b->rate;
	b->due_ns = MAX(b->due_ns, bucket_burst_begin(b, now_ns)) + ns;
	return ns;
}

struct export;
struct srv;
struct srv_con;
struct srv_rnbd_req;

enum srv_limit_dir {
	SRV_LIMIT_READ,
	SRV_LIMIT_WRITE,		/* all that modifies */
	SRV_LIMIT_DIRS
};

/* A session's place in line for an export; in struct srv_dev.  Under srv_limit.lock. */
struct srv_limit_share {
	struct list link;		/* srv_limit.shares, while a request waits */
	struct list waiting[SRV_LIMIT_DIRS];	/* struct srv_limit_wait */
	enum srv_limit_dir turn;	/* the direction to look at first */
	uint64_t used_ns;		/* of the budget; a virtual time */
	bool kicked;			/* requests end in place of waiting */
};

/* A request that waits; in struct srv_rnbd_req. */
struct srv_limit_wait {
	struct list link;		/* srv_limit_share.waiting; or on the way home */
	struct srv_limit_share *share;	/* NULL: the wait has ended */
	enum srv_limit_dir dir;
	uint32_t bytes;			/* for the limits of bytes */
	uint64_t since_ns;		/* 0: went at once */
	int status;			/* of the end of the wait */
};

struct srv_limit_stat {
	uint64_t requests;		/* that have waited */
	uint64_t ns;			/* the sum of their waits */
};

/* In struct srv_export. */
struct srv_limit {
	_Atomic(bool) on;		/* the export has a limit; any thread, without the lock */

	/* control thread */
	struct srv *srv;
	struct list link;		/* srv_rnbd.limits */
	struct limits limits;
	struct loop_timer timer;
	struct loop_msg alarm_msg;	/* to the control thread: alarm_ns is earlier than before */
	struct srv_limit_stat base;	/* at the last reset */

	pthread_mutex_t lock;		/* of all below, and of shares and waits */
	struct bucket buckets[LIMITS];
	struct list shares;		/* struct srv_limit_share, the least used first */
	uint64_t used_ns;		/* of the share that was served last, before that */
	uint64_t alarm_ns;		/* the time of the timer; CLOCK_NEVER: not set */
	struct srv_limit_stat stat;
};

/* Make @share the place of a session that opens an export. */
static inline void srv_limit_share_init(struct srv_limit_share *share)
{
	*share = (struct srv_limit_share){ 0 };
	list_init(&share->link);
	for (unsigned i = 0; i < SRV_LIMIT_DIRS; i++)
		list_init(&share->waiting[i]);
}

/* ---- thread of the request ---- */

/* Have @req, which has its device and its req->io, wait for the limits of the export.  0: @req may
 * go now; -EINPROGRESS: @req waits; -ENOTCONN: the device was taken from its session. */
int srv_limit_enter(struct srv_rnbd_req *req);
/* The result of the wait of @req, which has come home: 0 or -errno. */
int srv_limit_result(struct srv_rnbd_req *req);
/* End each wait on @con, which is being cut, with @end(). */
void srv_limit_con_cut(struct srv_con *con, void (*end)(struct srv_rnbd_req *req, int status));

/* ---- control thread ---- */

/* Give @ex, whose user is all 0, no limits. */
void srv_limit_begin(struct srv *srv, struct export *ex);
/* No request refers to @ex any more. */
void srv_limit_end(struct export *ex);
/* Give @ex @limits.  Requests that wait go as these limits say. */
void srv_limit_set(struct srv *srv, struct export *ex, const struct limits *limits);
/* End the waits of @share for @ex, and let no other begin: the session has lost its device. */
void srv_limit_kick(struct export *ex, struct srv_limit_share *share);
/* Let waits of @share for @ex begin again: the session has lost its paths, and may come back. */
void srv_limit_kick_over(struct export *ex, struct srv_limit_share *share);
/* The server stops: no export has limits from now on. */
void srv_limit_stop(struct srv *srv);

/* Fill @stat with the waits for @ex since the export came; resets change nothing. */
void srv_limit_stat_ever(const struct export *ex, struct srv_limit_stat *stat);
/* Fill @stat with the waits for @ex since the last reset. */
void srv_limit_stat(const struct export *ex, struct srv_limit_stat *stat);
/* Count the waits for @ex from now on from zero. */
void srv_limit_stat_reset(const struct export *ex);

#endif
