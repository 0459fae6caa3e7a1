/* SPDX-License-Identifier: BSD-3-Clause */
/* Works on tables of hosts and lines, which belong to the user of these functions; control thread.
 * A host has a number of lines left, which grows with time up to the burst.  A host without lines
 * left is silent for an interval, so that the next lines come in one piece, with a line that
 * counts the lines held back. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "fabric.h"
#include "srv-log.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

struct log_limit srv_log_access_limit = LOG_LIMIT_INIT(300, 10000);

const char *const srv_refusal_names[SRV_REFUSALS] = {
	[SRV_REFUSED_ADDRESS] = "address", [SRV_REFUSED_TLS] = "tls",
	[SRV_REFUSED_AUTH] = "auth", [SRV_REFUSED_IDENTITY] = "identity",
	[SRV_REFUSED_KEY] = "key", [SRV_REFUSED_LIMIT] = "limit",
	[SRV_REFUSED_CONNECT] = "connect", [SRV_REFUSED_RIGHTS] = "rights",
	[SRV_REFUSED_READ_ONLY] = "read_only", [SRV_REFUSED_MISSING] = "missing",
	[SRV_REFUSED_IN_USE] = "in_use", [SRV_REFUSED_STORAGE] = "storage",
	[SRV_REFUSED_OPEN] = "open",
};

static struct srv_log_host *log_host_of(struct srv_log *log, const struct fab_addr *peer,
					uint64_t now)
{
	struct srv_log_host *h, *oldest = log->hosts;

	for (h = log->hosts; h < log->hosts + ARRAY_SIZE(log->hosts); h++) {
		if (fab_addr_same_net(&h->addr, peer))
			return h;
		if (h->heard_ms < oldest->heard_ms)
			oldest = h;
	}
	*oldest = (struct srv_log_host){ .addr = *peer, .left = SRV_LOG_BURST, .grown_ms = now };
	return oldest;
}

static void host_grow(struct srv_log_host *h, uint64_t now)
{
	uint64_t step_ms = SRV_LOG_INTERVAL_MS / SRV_LOG_PER_INTERVAL;
	uint64_t more = (now - h->grown_ms) / step_ms;

	h->grown_ms += more * step_ms;
	h->left = (unsigned)MIN(h->left + more, (uint64_t)SRV_LOG_BURST);
}

bool srv_log_pass(struct srv_log *log, const struct fab_addr *peer)
{
	uint64_t now = clock_now_ms();
	struct srv_log_host *h = log_host_of(log, peer, now);
	struct fab_addr addr = *peer;
	char text[FAB_ADDR_STRLEN];

	h->heard_ms = now;
	host_grow(h, now);
	if (now < h->silent_ms || !h->left) {
		h->held_back++;
		return false;
	}
	if (h->held_back)
		log_warn(NULL, "%u lines about %s were suppressed", h->held_back,
			 fab_addr_format(&addr, text, sizeof(text)));
	h->held_back = 0;
	if (!--h->left)
		h->silent_ms = now + SRV_LOG_INTERVAL_MS;
	return true;
}

static struct srv_log_line *log_line_of(struct srv_log *log, uint64_t key, uint64_t now)
{
	struct srv_log_line *l, *oldest = log->lines;

	for (l = log->lines; l < log->lines + ARRAY_SIZE(log->lines); l++) {
		if (l->key == key)
			return l;
		if (l->told_ms < oldest->told_ms)
			oldest = l;
	}
	*oldest = (struct srv_log_line){ .key = key, .told_ms = now - SRV_LOG_AGAIN_MS };
	return oldest;
}

bool srv_log_news(struct srv_log *log, const struct fab_addr *peer, struct log_limit *limit,
		  const char *obj, const char *line, unsigned *more)
{
	uint64_t key = fnv1a(fnv1a(FNV1A_INIT, obj, strlen(obj) + 1), line, strlen(line));
	uint64_t now = clock_now_ms();
	struct srv_log_line *l = log_line_of(log, key, now);

	if (now - l->told_ms < SRV_LOG_AGAIN_MS || !srv_log_pass(log, peer) ||
	    !log_limit_pass(limit, obj)) {
		l->more++;
		return false;
	}
	*more = l->more;
	l->more = 0;
	l->told_ms = now;
	return true;
}

void srv_log_again(struct srv_log *log, const struct fab_addr *peer, struct log_limit *limit,
		   enum log_level level, const struct log_fields *fields, const char *obj,
		   const char *line)
{
	char host[FAB_ADDR_STRLEN], whom[FAB_ADDR_STRLEN + 256], times[48] = "";
	unsigned more;

	snprintf(whom, sizeof(whom), "%s %s", fab_addr_format_host(peer, host, sizeof(host)),
		 fields->session ? fields->session : "");
	if (!srv_log_news(log, peer, limit, whom, line, &more))
		return;
	if (more)
		snprintf(times, sizeof(times), "; repeated %u more times", more);
	log_event(level, fields, obj, "%s%s", line, times);
}

/* ---- the last refusals ---- */

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

void srv_log_refusal(struct srv *srv, const struct fab_addr *peer, const char *identity,
		     const char *export, const char *why)
{
	struct srv_refused *r = entry_for(srv, peer, identity, export ? export : "");

	r->at_ms = clock_now_ms();
	r->peer = *peer;
	snprintf(r->identity, sizeof(r->identity), "%s", identity);
	snprintf(r->export, sizeof(r->export), "%s", export ? export : "");
	snprintf(r->why, sizeof(r->why), "%s", why);
}

const struct srv_refused *srv_log_last_refusal(const struct srv *srv,
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

/* ---- paths that flap ---- */

/* The entries are a part of struct srv.  Never fails: a full table writes over the entry of the
 * path that came up least often. */

static bool flap_is_over(const struct srv_flap *f, uint64_t now)
{
	if (!f->ups)
		return true;
	return f->is_up ? now - f->up_ms >= SRV_FLAP_STEADY_MS :
		now - f->lost_ms >= SRV_FLAP_AWAY_MS;
}

static struct srv_flap *flap_of(struct srv_flaps *flaps, const struct srv_path *path, uint64_t now)
{
	for (struct srv_flap *f = flaps->all; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (!flap_is_over(f, now) && !memcmp(f->uuid, path->uuid, sizeof(f->uuid)) &&
		    !strcmp(f->identity, path->identity))
			return f;
	}
	return NULL;
}

/* Is @f worth less than @other, NULL: none?  Of two that came up as often, the one that was lost
 * last: if more paths flap in turn than there are entries, the first ones keep theirs. */
static bool flap_is_worth_less(const struct srv_flap *f, const struct srv_flap *other)
{
	return !other || f->ups < other->ups ||
	       (f->ups == other->ups && f->lost_ms >= other->lost_ms);
}

/* The entry to write over for @client. */
static struct srv_flap *flap_victim(struct srv_flaps *flaps, const struct fab_addr *client,
				    uint64_t now)
{
	struct srv_flap *over = NULL, *least = NULL, *of_net = NULL;
	unsigned n = 0;

	for (struct srv_flap *f = flaps->all; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (flap_is_over(f, now)) {
			over = f;
			continue;
		}
		if (flap_is_worth_less(f, least))
			least = f;
		if (!fab_addr_same_net(&f->client, client))
			continue;
		n++;
		if (flap_is_worth_less(f, of_net))
			of_net = f;
	}
	if (n >= SRV_FLAPS_NET_MAX)
		return of_net;
	return over ? over : least;
}

void srv_flaps_up(struct srv_flaps *flaps, const struct srv_path *path)
{
	uint64_t now = clock_now_ms();
	struct srv_flap *f = flap_of(flaps, path, now);

	if (!f)
		return;
	f->ups++;
	f->up_ms = now;
	f->is_up = true;
}

void srv_flaps_lost(struct srv_flaps *flaps, const struct srv_path *path, const char *cause)
{
	uint64_t now = clock_now_ms();
	struct srv_flap *f = flap_of(flaps, path, now);

	if (now - path->up_since_ms >= SRV_FLAP_STEADY_MS)
		return;
	if (!f) {
		f = flap_victim(flaps, &path->client, now);
		*f = (struct srv_flap){ .ups = 1, .since_ms = path->up_since_ms,
					.up_ms = path->up_since_ms, .client = path->client };
		memcpy(f->uuid, path->uuid, sizeof(f->uuid));
		snprintf(f->identity, sizeof(f->identity), "%s", path->identity);
		snprintf(f->session, sizeof(f->session), "%s", path->sess->name);
		snprintf(f->path, sizeof(f->path), "%s", path->name);
	}
	f->lost_ms = now;
	f->is_up = false;
	snprintf(f->cause, sizeof(f->cause), "%s", cause);
}

const struct srv_flap *srv_flaps_next(const struct srv_flaps *flaps, const struct srv_flap *last)
{
	const struct srv_flap *f = last ? last + 1 : flaps->all;
	uint64_t now = clock_now_ms();

	for (; f < flaps->all + SRV_FLAPS_MAX; f++) {
		if (f->ups >= SRV_FLAP_UPS && !flap_is_over(f, now))
			return f;
	}
	return NULL;
}
