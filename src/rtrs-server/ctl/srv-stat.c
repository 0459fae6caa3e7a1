/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the counts at the last reset of a path.  The counters of a connection are part of the
 * connection, and the ages of the last look part of the sessions and exports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "exports.h"
#include "srv-con.h"
#include "srv-ctl.h"
#include "srv-export.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "util.h"

static void path_sum(const struct srv_path *path, struct io_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid])
			io_stat_add(sum, &path->cons[cid]->stat, 1);
	}
}

void srv_stat_path(const struct srv_path *path, struct io_stat *sum)
{
	path_sum(path, sum);
	if (path->stat_base)
		io_stat_add(sum, path->stat_base, -1);
}

uint64_t srv_stat_inflight(const struct srv_path *path)
{
	uint64_t n = 0;

	for (unsigned cid = 0; cid < path->cid_num; cid++)
		n += path->cons[cid] ? counter_get(&path->cons[cid]->inflight) : 0;
	return n;
}

int srv_stat_reset_path(struct srv_path *path)
{
	if (!path->stat_base)
		path->stat_base = malloc(sizeof(*path->stat_base));
	if (!path->stat_base)
		return -ENOMEM;
	path_sum(path, path->stat_base);
	return 0;
}

/* ---- the oldest request ---- */

/* Returns the age of the oldest request of @path. */
static uint64_t look_at_path(const struct srv_path *path, uint64_t now_ns)
{
	uint64_t oldest_ns = 0;

	for (unsigned i = 0; i < path->chunks.geom->queue_depth; i++) {
		const struct export *ex;
		uint64_t at_ns = srv_req_look(srv_req_at(path, i), (const void **)&ex), ns;

		if (!at_ns || at_ns > now_ns)
			continue;
		ns = now_ns - at_ns;
		oldest_ns = MAX(oldest_ns, ns);
		if (ex) {
			struct srv_export *own = srv_export_of(ex);

			own->oldest_ns = MAX(own->oldest_ns, ns);
		}
	}
	return oldest_ns;
}

uint64_t srv_stat_age_look(const struct srv *srv)
{
	uint64_t now_ns = clock_now_ns(), oldest_ns = 0;
	const struct srv_path *path;
	struct srv_sess *sess;
	struct export *ex;

	srv_export_each(ex, srv)
		srv_export_of(ex)->oldest_ns = 0;
	list_for_each(sess, &srv->sessions, link) {
		sess->oldest_ns = 0;
		list_for_each(path, &sess->paths, link) {
			if (path->reqs && srv_stat_inflight(path))
				sess->oldest_ns = MAX(sess->oldest_ns, look_at_path(path, now_ns));
		}
		oldest_ns = MAX(oldest_ns, sess->oldest_ns);
	}
	return oldest_ns;
}
