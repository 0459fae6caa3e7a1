/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the entries, which are a part of struct srv. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "srv-refused.h"
#include "srv-state.h"

static bool is_same(const struct srv_refused *r, const struct fab_addr *peer, const char *identity,
		    const char *export)
{
	return r->at_ms && fab_addr_same_host(&r->peer, peer) && !strcmp(r->identity, identity) &&
	       !strcmp(r->export, export);
}

/* The entry to write over: that of the same client, or the oldest of its network if that has its
 * share, or the oldest of all. */
static struct srv_refused *entry_for(struct srv *srv, const struct fab_addr *peer,
				     const char *identity, const char *export)
{
	struct srv_refused *oldest = srv->last_refused, *of_net = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < SRV_REFUSED_ALL; i++) {
		struct srv_refused *r = &srv->last_refused[i];

		if (is_same(r, peer, identity, export))
			return r;
		if (r->at_ms < oldest->at_ms)
			oldest = r;
		if (!r->at_ms || !fab_addr_same_net(&r->peer, peer))
			continue;
		n++;
		if (!of_net || r->at_ms < of_net->at_ms)
			of_net = r;
	}
	return n < SRV_REFUSED_NET ? oldest : of_net;
}

void srv_refused_note(struct srv *srv, const struct fab_addr *peer, const char *identity,
		      const char *export, const char *why)
{
	struct srv_refused *r = entry_for(srv, peer, identity, export ? export : "");

	r->at_ms = clock_now_ms();
	r->peer = *peer;
	snprintf(r->identity, sizeof(r->identity), "%s", identity);
	snprintf(r->export, sizeof(r->export), "%s", export ? export : "");
	snprintf(r->why, sizeof(r->why), "%s", why);
}

const struct srv_refused *srv_refused_last(const struct srv *srv,
					   bool (*match)(const void *arg,
							 const struct srv_refused *r),
					   const void *arg)
{
	const struct srv_refused *last = NULL;

	for (unsigned i = 0; i < SRV_REFUSED_ALL; i++) {
		const struct srv_refused *r = &srv->last_refused[i];

		if (r->at_ms && match(arg, r) && (!last || r->at_ms >= last->at_ms))
			last = r;
	}
	return last;
}
