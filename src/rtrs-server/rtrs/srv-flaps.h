/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths that flap: a path comes up, is soon lost, and comes up again.  A client does that for
 * ever behind a hole for large packets (a wrong MTU), and a look at the paths of a moment may find
 * them all connected.
 *
 * A path is known by its uuid, which a client keeps while it reconnects.  So a gateway that was
 * restarted has other paths, and so has one whose path was removed and added.  An entry begins when
 * a path is lost less than SRV_FLAP_STEADY_MS after it came up.  It ends when the path has been up
 * for this time, or away for SRV_FLAP_AWAY_MS.  A session need not live as long as the entries of
 * its paths.  Control thread. */
#ifndef SRV_FLAPS_H
#define SRV_FLAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "rtrs-proto.h"
#include "srv-con.h"
#include "srv-path.h"

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
