/* SPDX-License-Identifier: BSD-3-Clause */
/* How long callers wait for a cluster, and what the log says of it.  Owns nothing. */
#include <config.h>

#include <errno.h>

#include "aside.h"
#include "exports.h"
#include "log.h"
#include "store-rbd-priv.h"

#define TELL_MS 5000u
#define ADVISE_MS 10000u

/* Say once for whom the caller waits, and once what may be the cause. */
static void tell(struct rbd_patience *p, uint64_t ms)
{
	if (p->whom && !p->told && ms >= TELL_MS) {
		log_warn(p->ex->name, "'%s': waiting for %s", p->ex->path, p->whom);
		p->told = 1;
	} else if (p->advice && p->told == 1 && ms >= ADVISE_MS) {
		log_warn(p->ex->name, "'%s': still waiting for %s: %s", p->ex->path, p->whom,
			 p->advice);
		p->told = 2;
	}
}

/* True if the server stops, and the caller has waited for long enough since then. */
static bool is_stopped(struct rbd_patience *p, uint64_t ms)
{
	if (!p->stops || !atomic_load(p->stops))
		return false;
	if (!p->stops_ms)
		p->stops_ms = ms + 1;
	return ms + 1 - p->stops_ms >= p->stops_s * 1000ull;
}

static int patience(void *arg, uint64_t ms)
{
	struct rbd_patience *p = arg;

	if (is_stopped(p, ms))
		return -ECANCELED;
	if (p->limit_s && ms >= p->limit_s * 1000ull)
		return -ETIMEDOUT;
	tell(p, ms);
	return 0;
}

int store_rbd_aside_wait(struct aside *call, struct rbd_patience *p)
{
	return aside_wait(call, patience, p);
}
