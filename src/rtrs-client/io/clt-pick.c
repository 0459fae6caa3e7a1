/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the path of a request.  Any thread; owns nothing.
 *
 * The rules are the kernel's (doc/protocol.md 6.5), with two exceptions.  Each thread, not each
 * CPU, takes the paths in turns.  A path whose latency is not known yet does not count as a path of
 * latency 0. */
#include "clt-io-priv.h"

const char *const clt_pick_policies[CLT_NPOLICIES] = { "round-robin", "min-inflight",
						       "min-latency" };

unsigned clt_pick_inflight(const struct clt_attempt *att)
{
	unsigned n = 0;

	for (unsigned i = 0; i < att->ncons; i++)
		n += atomic_load_explicit(&att->cons[i].inflight, memory_order_relaxed);
	return n;
}

/* The next path that is UP, behind the last choice of the calling thread, so that threads share no
 * counter.  NULL: no path is UP, though paths may be SILENT. */
static struct clt_attempt *path_in_turn(struct clt_io *io, unsigned n, unsigned hint)
{
	static _Thread_local unsigned last;
	static _Thread_local bool began;

	if (!began)
		last = hint;
	began = true;
	for (unsigned i = 0; i < n; i++) {
		struct clt_attempt *att = io->atts[++last % n];

		if (atomic_load(&att->state) == CLT_PATH_UP)
			return att;
	}
	return NULL;
}

/* The load of a path, by @policy: the lower, the better.  UINT64_MAX: not known. */
static uint64_t path_load(const struct clt_attempt *att, enum clt_policy policy)
{
	uint64_t ns;

	if (policy != CLT_POLICY_MIN_LATENCY)
		return clt_pick_inflight(att);
	ns = atomic_load_explicit(&att->hb.latency_ns, memory_order_relaxed);
	return ns ? ns : UINT64_MAX;
}

/* The first path with the smallest load; a SILENT path only if no path is UP.  NULL: none. */
static struct clt_attempt *path_least_loaded(struct clt_io *io, unsigned n, enum clt_policy policy)
{
	struct clt_attempt *best = NULL;
	unsigned best_state = 0;
	uint64_t min = 0;

	for (unsigned i = 0; i < n; i++) {
		struct clt_attempt *att = io->atts[i];
		unsigned state = atomic_load(&att->state);
		uint64_t load;

		if (state != CLT_PATH_UP && state != CLT_PATH_SILENT)
			continue;
		load = path_load(att, policy);
		if (!best || state < best_state || (state == best_state && load < min)) {
			best = att;
			best_state = state;
			min = load;
		}
	}
	return best;
}

struct clt_attempt *clt_pick_one(struct clt_io *io, unsigned hint)
{
	unsigned n = atomic_load_explicit(&io->natts, memory_order_acquire);
	enum clt_policy policy = atomic_load_explicit(&io->policy, memory_order_relaxed);
	struct clt_attempt *att = NULL;

	if (policy == CLT_POLICY_ROUND_ROBIN)
		att = path_in_turn(io, n, hint);
	return att ? att : path_least_loaded(io, n, policy);
}
