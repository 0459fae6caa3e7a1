/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the windows of a path from set-up to drained; control thread.
 *
 * How the windows end: srv_key_pool_close(), when no connection of the path can complete anything
 * any more.
 * How protection fails: a device that cannot protect requests is a failure only with
 * --invalidate=always.  Windows are never repaired; windows go with their path. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frwr.h"
#include "log.h"
#include "srv-chunk.h"
#include "srv-key-pool.h"
#include "srv-state.h"
#include "util.h"

/* True if auto takes windows: the device has windows in hardware.  If a kernel plays the device,
 * windows have quirks and cost more than a copy. */
static bool key_pool_in_hardware(const struct srv_chunks *c, const struct frwr_caps *caps)
{
	return c->pinned && !caps->rc[FRWR_MW1] && !caps->quirks;
}

/* Choose a mode.  Returns FRWR_SUSPEND or FRWR_MW1; -EPERM: --invalidate=always is impossible; any
 * other negative: copy.  The reason is in @why in each case. */
static int key_pool_mode(const struct srv_chunks *c, const struct frwr_caps *caps, char *why,
			 size_t len)
{
	int mode;

	if (c->srv->conf->invalidate == SRV_INVALIDATE_ALWAYS && caps->unable[FRWR_MW1]) {
		snprintf(why, len, "--invalidate=always: %s; auto and copy need none",
			 caps->why[FRWR_MW1]);
		return -EPERM;
	}
	/* A word in memory costs less than a copy and less than a window. */
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !caps->rc[FRWR_SUSPEND])
		return frwr_pick(caps, &frwr_order_server[1], 1, why, len);
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !key_pool_in_hardware(c, caps)) {
		snprintf(why, len, "%s", caps->rc[FRWR_MW1] ? caps->why[FRWR_MW1] :
			 "memory windows in software cost more");
		return -EOPNOTSUPP;
	}
	mode = frwr_pick(caps, frwr_order_server, ARRAY_SIZE(frwr_order_server), why, len);
	if (mode == FRWR_MW1 && caps->dev.max_mw < c->geom->queue_depth) {
		snprintf(why, len, "a path needs %u memory windows, the device has %u",
			 c->geom->queue_depth, caps->dev.max_mw);
		return -EOPNOTSUPP;
	}
	return mode;
}

const char *srv_key_pool_word(const struct srv_chunks *c)
{
	if (c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_SUSPEND)
		return frwr_mode_name(FRWR_SUSPEND);
	return srv_invalidate_names[c->invalidate];
}

/* Log the protection of @c, once for each kind of device: clients come as often as they like, and
 * by turns through a few kinds. */
static void key_pool_tell(const struct srv_chunks *c, struct fab_conn *conn, const char *why)
{
	const char *word = srv_key_pool_word(c);
	/* The text of frwr_pick() begins with the name of the mode, which may be @word. */
	bool twice = !strncmp(why, word, strlen(word));
	struct srv *srv = c->srv;
	struct fab_addr local;
	char text[sizeof(srv->told_protection[0])];

	fab_conn_addrs(conn, &local, NULL);
	snprintf(text, sizeof(text), "requests over %s: invalidate is %s%s%s",
		 fab_addr_transport(&local), twice ? "" : word, twice ? "" : ": ", why);
	for (unsigned i = 0; i < ARRAY_SIZE(srv->told_protection); i++) {
		if (!strcmp(srv->told_protection[i], text))
			return;
	}
	memcpy(srv->told_protection[srv->ntold++ % ARRAY_SIZE(srv->told_protection)], text,
	       sizeof(text));
	if (c->invalidate == SRV_INVALIDATE_COPY && srv->conf->invalidate == SRV_INVALIDATE_ALWAYS)
		log_warn(NULL, "%s", text);
	else
		log_info(NULL, "%s", text);
}

int srv_key_pool_choose(struct srv_chunks *c, struct fab_conn *conn)
{
	enum srv_invalidate conf = c->srv->conf->invalidate;
	struct frwr_caps caps;
	char why[192];
	int rc, mode;

	c->invalidate = conf;
	if (conf == SRV_INVALIDATE_COPY || conf == SRV_INVALIDATE_NEVER)
		return 0;
	rc = frwr_query(conn, c->pd, &caps);
	if (rc)
		return rc;
	frwr_lessons_apply(&c->srv->lessons, &caps);
	mode = key_pool_mode(c, &caps, why, sizeof(why));
	if (mode == -EPERM) {
		snprintf(c->refused, sizeof(c->refused), "%s", why);
		return -EOPNOTSUPP;
	}
	c->invalidate = SRV_INVALIDATE_COPY;
	if (mode >= 0)
		rc = frwr_pool_create(&c->keys, c->pd, (enum frwr_mode)mode, c->geom->queue_depth);
	if (rc) {	/* other paths may have all keys of the device */
		snprintf(why, sizeof(why),
			 "a path needs %u keys of the device, and it has no more: %s",
			 c->geom->queue_depth, strerror(-rc));
	} else if (mode >= 0) {
		frwr_pool_learn(c->keys, &c->srv->lessons, &caps);
		c->invalidate = SRV_INVALIDATE_ALWAYS;
		c->key_mode = (enum frwr_mode)mode;
		c->mr_each = mode == FRWR_MW1 && (caps.quirks & FRWR_QUIRK_MR_BOUNDS);
	}
	key_pool_tell(c, conn, why);
	return 0;
}

void srv_key_pool_close(struct srv_chunks *c, const char *name)
{
	struct frwr_stats s;

	if (!c->keys)
		return;
	frwr_stats(c->keys, &s);
	log_dbg(name,
		"keys: %llu given, %llu taken away, %llu flushed, %llu wraps, mode %s; "
		"%llu bound, %llu "
		"posts failed, %llu of them in part",
		(unsigned long long)s.mapped, (unsigned long long)s.local_inv,
		(unsigned long long)(s.flushed_bind + s.flushed_inv),
		(unsigned long long)s.key_wraps, frwr_mode_name(c->key_mode),
		(unsigned long long)s.bind_posted, (unsigned long long)s.post_fail,
		(unsigned long long)s.partial_post);
	/* A device may refuse to take windows back.  srv_chunk_fini() tries again, without
	 * connections, and leaves what the device refuses again to the device: no peer reaches
	 * memory through such a window any more. */
	if (!frwr_pool_destroy(c->keys))
		c->keys = NULL;
}
