/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines that a client causes: bounded for each host, so that a hostile one neither fills the
 * disk nor hides what others do.  Control thread. */
#ifndef SRV_LOG_H
#define SRV_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "log.h"

/* Lines of one host: so many at once, and then a few in each interval until it is quiet for a
 * while. */
#define SRV_LOG_BURST 500u
#define SRV_LOG_INTERVAL_MS 10000u
#define SRV_LOG_PER_INTERVAL 10u
/* Hosts that are remembered; of more than that the one that was not heard of for longest is
 * forgotten. */
#define SRV_LOG_HOSTS 64u
/* A line that says the same again, because a client tries again, is told once in so long. */
#define SRV_LOG_AGAIN_MS 60000u
/* Such lines that are remembered; of more than that the one that was told first is forgotten. */
#define SRV_LOG_LINES 32u

struct srv_log {			/* all 0: nobody was heard of */
	struct srv_log_host {
		struct fab_addr addr;	/* len 0: free */
		uint64_t heard_ms;
		uint64_t grown_ms;	/* @left is that of then */
		uint64_t silent_ms;	/* until then */
		unsigned left, held_back;
	} hosts[SRV_LOG_HOSTS];
	struct srv_log_line {
		uint64_t key;		/* 0: free */
		uint64_t told_ms;
		unsigned more;		/* times since then, not told */
	} lines[SRV_LOG_LINES];
};

/* True if a line about @peer may be written now.  What was held back is told in front of the next
 * that may. */
bool srv_log_pass(struct srv_log *log, const struct fab_addr *peer);

/* Is @line about @obj, which @peer caused, to be written now?  False: the same was told lately, or
 * the limit of @peer's host or @limit holds the line back; this is counted.  True: @more is how
 * often the line was not told since it was told, or ever. */
bool srv_log_news(struct srv_log *log, const struct fab_addr *peer, struct log_limit *limit,
		  const char *obj, const char *line, unsigned *more);

/* One that @limit, which is for all hosts together, passes as well. */
#define srv_log_limited(srv, peer, limit, level, obj, ...)                                         \
	do {                                                                                       \
		if (srv_log_pass(&(srv)->log, peer))                                               \
			log_limited(limit, level, obj, __VA_ARGS__);                               \
	} while (0)

/* Lines that tell which client came, went, or opened an export. */
extern struct log_limit srv_log_access_limit;
#define srv_log_access(srv, peer, obj, ...)                                                        \
	srv_log_limited(srv, peer, &srv_log_access_limit, LOG_LEVEL_INFO, obj, __VA_ARGS__)

#endif
