/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; the results are in the sessions and exports. */
#include "clock.h"
#include "exports.h"
#include "srv-age.h"
#include "srv-con.h"
#include "srv-export.h"
#include "srv-path.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "util.h"

static bool path_has_requests(const struct srv_path *path)
{
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid] && counter_get(&path->cons[cid]->inflight))
			return true;
	}
	return false;
}

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
			struct srv_export_stat *stat = ex->user;

			stat->oldest_ns = MAX(stat->oldest_ns, ns);
		}
	}
	return oldest_ns;
}

uint64_t srv_age_look(const struct srv *srv)
{
	uint64_t now_ns = clock_now_ns(), oldest_ns = 0;
	const struct srv_path *path;
	struct srv_sess *sess;
	struct export *ex;

	srv_export_each(ex, srv)
		((struct srv_export_stat *)ex->user)->oldest_ns = 0;
	list_for_each(sess, &srv->sessions, link) {
		sess->oldest_ns = 0;
		list_for_each(path, &sess->paths, link) {
			if (path->reqs && path_has_requests(path))
				sess->oldest_ns = MAX(sess->oldest_ns, look_at_path(path, now_ns));
		}
		oldest_ns = MAX(oldest_ns, sess->oldest_ns);
	}
	return oldest_ns;
}

uint64_t srv_age_of(const struct export *ex)
{
	return ((const struct srv_export_stat *)ex->user)->oldest_ns;
}
