/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's notes of its clients: log lines that a client causes, bounded for each host, so that
 * a hostile host neither fills the disk nor hides the lines of other hosts; the last refusals; and
 * the paths that flap.  Control thread. */
#ifndef SRV_LOG_H
#define SRV_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "log.h"
#include "rtrs-proto.h"
#include "srv-con.h"
#include "srv-path.h"

struct srv;

/* Lines of one host: a burst, and then a few in each interval until the host has been quiet for a
 * while. */
#define SRV_LOG_BURST 500u
#define SRV_LOG_INTERVAL_MS 10000u
#define SRV_LOG_PER_INTERVAL 10u
/* Hosts that the log remembers; the host with the longest silence makes room for another. */
#define SRV_LOG_HOSTS 64u
/* Shortest time between two equal lines, which come when a client tries again. */
#define SRV_LOG_AGAIN_MS 60000u
/* Lines that the log remembers; the oldest line makes room for another. */
#define SRV_LOG_LINES 32u

struct srv_log {			/* all 0: no host yet */
	struct srv_log_host {
		struct fab_addr addr;	/* len 0: free */
		uint64_t heard_ms;
		uint64_t grown_ms;	/* when @left was last brought up to date */
		uint64_t silent_ms;	/* silent until this time */
		unsigned left, held_back;
	} hosts[SRV_LOG_HOSTS];
	struct srv_log_line {
		uint64_t key;		/* 0: free */
		uint64_t told_ms;
		unsigned more;		/* times since told_ms, held back */
	} lines[SRV_LOG_LINES];
};

/* True if a line about @peer may be written now.  Writes in front of this line how many lines were
 * held back. */
bool srv_log_pass(struct srv_log *log, const struct fab_addr *peer);

/* True if @line about @obj, which @peer caused, is to be written now; *@more counts how often the
 * line was held back.  False: the same line was written lately, or the limit of @peer's host, or
 * @limit, holds the line back; this is counted. */
bool srv_log_news(struct srv_log *log, const struct fab_addr *peer, struct log_limit *limit,
		  const char *obj, const char *line, unsigned *more);

/* Write "@obj: @line" about @peer, whose client may try again and again: the same line about the
 * host of @peer, from any port, and about the session of @fields is written once a minute, with the
 * number of times.  @limit as above. */
void srv_log_again(struct srv_log *log, const struct fab_addr *peer, struct log_limit *limit,
		   enum log_level level, const struct log_fields *fields, const char *obj,
		   const char *line);

/* The reasons for which a client is refused, for the metrics and the fields of lines. */
enum srv_refusal {
	/* connections and paths */
	SRV_REFUSED_ADDRESS,		/* --allow */
	SRV_REFUSED_TLS,		/* no handshake of TLS, or one that failed */
	SRV_REFUSED_AUTH,		/* no proof in messages, or one that failed */
	SRV_REFUSED_IDENTITY,		/* the session, or its name, belongs to another */
	SRV_REFUSED_KEY,		/* the key was removed */
	SRV_REFUSED_LIMIT,
	SRV_REFUSED_CONNECT,		/* any other reason */
	/* opens of exports */
	SRV_REFUSED_RIGHTS,		/* the lists of the export do not have the client, or a path
					 * that joins its session */
	SRV_REFUSED_READ_ONLY,
	SRV_REFUSED_MISSING,		/* no such export */
	SRV_REFUSED_IN_USE,
	SRV_REFUSED_STORAGE,		/* it cannot be opened now: the client asks again */
	SRV_REFUSED_OPEN,		/* any other reason */
	SRV_REFUSALS
};
/* "address", "identity", ... */
extern const char *const srv_refusal_names[SRV_REFUSALS];

/* Write a line if srv_log_pass() and @limit, which is for all hosts together, let the line pass. */
#define srv_log_limited(srv, peer, limit, level, obj, ...)                                         \
	do {                                                                                       \
		if (srv_log_pass(&(srv)->log, peer))                                               \
			log_limited(limit, level, obj, __VA_ARGS__);                               \
	} while (0)

/* The same, of a message that matters (log.h). */
#define srv_log_event_limited(srv, peer, limit, level, fields, obj, ...)                           \
	do {                                                                                       \
		if (srv_log_pass(&(srv)->log, peer))                                               \
			log_event_limited(limit, level, fields, obj, __VA_ARGS__);                 \
	} while (0)

/* Limit of lines that tell which client came, went, or opened an export. */
extern struct log_limit srv_log_access_limit;
#define srv_log_access(srv, peer, fields, obj, ...)                                                \
	srv_log_event_limited(srv, peer, &srv_log_access_limit, LOG_LEVEL_INFO, fields, obj,       \
			      __VA_ARGS__)

/* ---- the last refusals ---- */

/* For "rtrsctl explain": which client was refused when, and why, in the words of the log.  The log
 * has them, too, as far as its limits let it.  A client that tries again and again has one entry.
 * A network has at most SRV_REFUSED_NET entries, so it hides no refusal of others. */

#define SRV_REFUSED_ALL 64u
#define SRV_REFUSED_NET 16u
#define SRV_REFUSED_NAME 256u		/* of an export, with the terminating NUL */

struct srv_refused {
	uint64_t at_ms;			/* 0: no entry */
	struct fab_addr peer;
	char identity[FAB_IDENTITY_LEN];/* proven, or said by whoever did not prove it; "": none */
	char export[SRV_REFUSED_NAME];	/* "": the connection */
	char why[240];			/* cut */
};

/* Note that @peer was refused: the connection, or an @export, not NULL.  @identity as in struct
 * srv_refused. */
void srv_log_refusal(struct srv *srv, const struct fab_addr *peer, const char *identity,
		     const char *export, const char *why);
/* The latest entry of which @match(@arg) is true; NULL: none. */
const struct srv_refused *srv_log_last_refusal(const struct srv *srv,
					       bool (*match)(const void *arg,
							     const struct srv_refused *r),
					       const void *arg);

/* ---- paths that flap ---- */

/* A path flaps: it comes up, is soon lost, and comes up again.  A client does that for ever behind
 * a hole for large packets (a wrong MTU), and a look at the paths of a moment may find them all
 * connected.
 *
 * A path is known by its uuid, which a client keeps while it reconnects.  So a gateway that was
 * restarted has other paths, and so has one whose path was removed and added.  An entry begins when
 * a path is lost less than SRV_FLAP_STEADY_MS after it came up.  It ends when the path has been up
 * for this time, or away for SRV_FLAP_AWAY_MS.  A session need not live as long as the entries of
 * its paths. */

#define SRV_FLAPS_MAX 64u		/* entries */
#define SRV_FLAPS_NET_MAX 16u		/* of one network, so it hides no path of others */
#define SRV_FLAP_UPS 4u			/* from so many on a path flaps: it came back three times */
#define SRV_FLAP_STEADY_MS 300000	/* a client forgets losses then (HELD_FORGET_MS) */
#define SRV_FLAP_AWAY_MS 1200000	/* a client with another path comes back within 16
					 * minutes (HELD_SHIFT_MAX) */

struct srv_flap {
	unsigned ups;			/* how often the path came up; 0: no entry */
	uint64_t since_ms;		/* when the path came up first */
	uint64_t up_ms;			/* when it came up last */
	uint64_t lost_ms;		/* when it was lost last */
	bool is_up;			/* it came up since */
	uint8_t uuid[RTRS_UUID_LEN];
	struct fab_addr client;
	char identity[FAB_IDENTITY_LEN];
	char session[RTRS_NAME_MAX];
	char path[SRV_PATH_NAME];
	char cause[SRV_CAUSE_LEN];	/* of the last loss */
};

struct srv_flaps {
	struct srv_flap all[SRV_FLAPS_MAX];
};

/* Note that @path has come up. */
void srv_flaps_up(struct srv_flaps *flaps, const struct srv_path *path);
/* Note that @path, which came up at path->up_since_ms, is lost for @cause. */
void srv_flaps_lost(struct srv_flaps *flaps, const struct srv_path *path, const char *cause);
/* The path that flaps after @last in the table; @last NULL: the first.  NULL: no further one.  The
 * pointer is valid until the next call of the functions above. */
const struct srv_flap *srv_flaps_next(const struct srv_flaps *flaps, const struct srv_flap *last);

#endif
