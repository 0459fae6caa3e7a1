/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice of a transport.  Blocks as long as the attempts; leaves no session behind. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "clt-cause.h"
#include "clt-export.h"
#include "clt-kept.h"
#include "clt-start.h"
#include "log.h"
#include "process.h"
#include "util.h"

/* The start waits for up to this time until another session closes the export. */
#define PROBE_HELD_MS 5000

/* The start tries again for up to this time where too many paths connect at once: as long as a
 * server keeps a place for a path in set-up (--setup-timeout). */
#define PROBE_BUSY_MS 30000

#define PROBE_NAP_MS 1000
#define PROBE_BUSY_FIRST_MS 250
#define PROBE_BUSY_SHIFT_MAX 4u		/* 4 s */

/* The same before a server at another of its limits: the probes of other clients, which start at
 * the same time, have places for a moment. */
#define PROBE_FULL_MS 5000

/* Connect once.  0: connected, and @err is untouched; else the session is closed again. */
static int probe_attempt(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
			 unsigned setup_ms, char err[CLT_FRONT_ERR])
{
	int r = clt_start_run(start, conf, suffix, true, setup_ms, err);

	if (r < 0)
		return r;
	r = clt_run_wait_up(&start->run, err, CLT_FRONT_ERR);
	if (r < 0)
		clt_start_end(start);
	return r;
}

/* Connect, and again after learning that the device lacks an ability.  The device of the server may
 * lack an ability, too: the client sees a reset. */
static int probe_connect(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
			 unsigned setup_ms, char err[CLT_FRONT_ERR])
{
	char why[CLT_FRONT_ERR] = "";
	bool reset = false, again;
	unsigned known;
	int r;

	do {
		known = frwr_lessons_count(&start->lessons);
		r = probe_attempt(start, conf, suffix, setup_ms, why);
		again = frwr_lessons_count(&start->lessons) != known ||
			(r == -ECONNRESET && !reset);
		reset |= r == -ECONNRESET;
	} while (r < 0 && again);
	if (r < 0)
		snprintf(err, CLT_FRONT_ERR, "%s", why);
	return r;
}

/* Does @r mean no RDMA to the server, or no server that listens for RDMA?  Then nothing is
 * wrong. */
static bool no_rdma(int r)
{
	return r == -ENODEV || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -EHOSTUNREACH ||
	       r == -ENETUNREACH || r == -EADDRNOTAVAIL;
}

/* Copy @conf with only the paths whose transport is to be chosen: another path that is up says
 * nothing of these. */
static void choosing_paths(const struct clt_conf *conf, struct clt_conf *choosing)
{
	*choosing = *conf;
	choosing->npaths = 0;
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (conf->chooses[i])
			choosing->paths[choosing->npaths++] = conf->paths[i];
	}
}

/* Set @tcp if the server is busy over tcp, the transport that is left. */
static int probe_auto(struct clt_start *start, const char *suffix, bool *tcp,
		      char err[CLT_FRONT_ERR])
{
	const struct fab_provider *rdma = fab_provider_find("rdma");
	char why[CLT_FRONT_ERR] = "built without RDMA", addr[FAB_ADDR_STRLEN];
	const char *where;
	static struct clt_conf choosing;	/* large for a stack */
	struct clt_conf *conf = start->conf;
	int r, rdma_r = -ENODEV;

	choosing_paths(conf, &choosing);
	where = choosing.paths[0].dst_name;
	if (!*where)
		where = fab_addr_format(&choosing.paths[0].dst, addr, sizeof(addr));
	if (rdma) {
		clt_conf_choose(conf, rdma);
		choosing_paths(conf, &choosing);
		rdma_r = probe_connect(start, &choosing, suffix, CLT_PROBE_RDMA_MS, why);
		/* The server answers over RDMA, later. */
		if (rdma_r == CLT_BUSY) {
			snprintf(err, CLT_FRONT_ERR, "%s", why);
			return rdma_r;
		}
		if (rdma_r == 0) {
			log_info(where,
				 "transport=auto: rdma, because an RDMA device reaches the server");
			return 0;
		}
	}
	clt_conf_choose(conf, fab_provider_find("tcp"));
	if (no_rdma(rdma_r) || rdma_r == -EOPNOTSUPP)
		log_info(where, "transport=auto: tcp, because of rdma: %s", why);
	else
		log_warn(where, "transport=auto: tcp, because rdma fails: %s", why);
	r = probe_connect(start, conf, suffix, 0, err);
	*tcp = r == CLT_BUSY;
	if (r < 0 && rdma_r == r && r == -ECONNREFUSED)		/* the same in other words */
		snprintf(err + strlen(err), CLT_FRONT_ERR - strlen(err), " (over rdma, too)");
	else if (r < 0 && rdma_r != -ENODEV && rdma_r != -EADDRNOTAVAIL)
		snprintf(err + strlen(err), CLT_FRONT_ERR - strlen(err), " (over rdma: %s)", why);
	return r;
}

/* Is the server away, not started yet, or full? ENOENT: no socket has the name; EBUSY: another
 * session has the name of this one, that of a predecessor for instance; ENOMEM: the server is at a
 * limit. */
static bool is_away(int r)
{
	return no_rdma(r) || r == -ECONNRESET || r == -ENOENT || r == -EBUSY ||
	       r == -ENOMEM || r == CLT_BUSY;
}

/* For how long the server is to be tried again, @ms after the start, because of @r; 0: no more.
 * With connect-timeout=forever the session that lasts does that. */
static uint64_t probe_left_ms(const struct clt_conf *conf, int r, uint64_t ms)
{
	uint64_t limit = conf->connect_timeout_ms;

	if (limit == CLOCK_NEVER || !is_away(r))
		return 0;
	if (!limit && r == CLT_BUSY)
		limit = PROBE_BUSY_MS;
	else if (!limit && r == -ENOMEM)
		limit = PROBE_FULL_MS;
	return limit > ms ? limit - ms : 0;
}

/* How long the start waits behind attempt @n that met a busy server.  Clients that come again at
 * the same time push each other out. */
static uint64_t busy_ms(unsigned n)
{
	uint64_t ms = (uint64_t)PROBE_BUSY_FIRST_MS << MIN(n, PROBE_BUSY_SHIFT_MAX);
	uint16_t rnd;

	random_bytes(&rnd, sizeof(rnd));
	return ms / 2 + ms / 2 * rnd / UINT16_MAX;
}

/* False: a signal has ended the nap. */
static bool probe_nap(uint64_t ms)
{
	const struct timespec nap = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	return nanosleep(&nap, NULL) == 0;
}

int clt_probe_connect(struct clt_start *start, const char *suffix, char err[CLT_FRONT_ERR])
{
	uint64_t start_ms = clock_now_ms(), left_ms;
	bool tcp = !start->conf->automatic;
	unsigned tries = 0;
	int r;

	do {
		if (tcp)
			r = probe_connect(start, start->conf, suffix, 0, err);
		else
			r = probe_auto(start, suffix, &tcp, err);
		if (r != CLT_BUSY)
			tcp = !start->conf->automatic;
		left_ms = r < 0 ? probe_left_ms(start->conf, r, clock_now_ms() - start_ms) : 0;
	} while (left_ms &&
		 probe_nap(MIN(left_ms, r == CLT_BUSY ? busy_ms(tries++) : PROBE_NAP_MS)));
	return r;
}

/* Check for enough descriptors while the session of the probe is open, which needs as many as the
 * lasting session.  A client may come before the lasting session is up, so count both. */
static int probe_fds(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	const struct clt_front *front = start->conf->front;
	unsigned n = front->start_fds + front->client_fds + fds_reserve(front->client_fds) +
		     clt_start_cons(start) +
		     (start->conf->metrics ? CLT_METRICS_FDS : 0);

	if (fds_free(n))
		return 0;
	snprintf(err, CLT_FRONT_ERR, "too few descriptors: %s and the session need %u more",
		 front->name, n);
	return fds_name_limit(-EMFILE, err, CLT_FRONT_ERR);
}

/* True if the export is to be tried again after @ms, because of @r. */
static bool probe_waits(const struct clt_conf *conf, int r, uint64_t ms)
{
	if (r == -EAGAIN)
		return conf->connect_timeout_ms != CLOCK_NEVER && ms < conf->connect_timeout_ms;
	return r == -EPERM && ms < PROBE_HELD_MS;
}

/* Open the export.  The session of a process just killed, the predecessor, may keep the export open
 * for a moment more.  An export whose storage is away is as a server that is away: *@dev is
 * NULL. */
static int probe_export(struct clt_start *start, struct dev **dev, char err[CLT_FRONT_ERR])
{
	const struct timespec nap = { .tv_nsec = 500000000 };
	uint64_t since_ms = clock_now_ms();
	int r;

	do {
		r = clt_export_open(&start->run.clt, start->conf, start->conf->export_name, dev,
				    err);
	} while (probe_waits(start->conf, r, clock_now_ms() - since_ms) &&
		 nanosleep(&nap, NULL) == 0);
	if (r != -EAGAIN || start->conf->connect_timeout_ms != CLOCK_NEVER)
		return r;
	log_warn(NULL, "%s; starting without", err);
	start->without = true;
	*dev = NULL;
	return 0;
}

static int probe_session(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	const struct clt_conf *conf = start->conf;
	char why[CLT_FRONT_ERR];
	struct dev *dev;
	int r;

	r = clt_probe_connect(start, "-probe", why);
	if (r < 0 && conf->connect_timeout_ms == CLOCK_NEVER && is_away(r)) {
		log_warn(NULL, "server=%s: %s; starting without", conf->server, why);
		start->without = true;
		return 0;
	}
	if (r < 0) {
		snprintf(err, CLT_FRONT_ERR, "server=%s: %.*s", conf->server, CLT_FRONT_ERR - 128,
			 why);
		return fds_name_limit(r, err, CLT_FRONT_ERR);
	}
	r = probe_fds(start, err);
	if (r == 0 && conf->export_name) {
		r = probe_export(start, &dev, err);
		if (r == 0 && dev)
			dev_close(dev);
	}
	clt_start_end(start);
	return r;
}

/* The process before has probed: its users wait, for this process and not for a server that may be
 * away.  False: it has not found the transport that is to be chosen. */
static bool probe_resumes(struct clt_conf *conf)
{
	const struct fab_provider *found = clt_kept_provider(conf);

	if (!clt_kept_resumes(conf) || (conf->automatic && !found))
		return false;
	if (conf->automatic)
		clt_conf_choose(conf, found);
	return true;
}

int clt_probe(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	char why[CLT_FRONT_ERR - 16];
	int r = probe_resumes(start->conf) ? 0 : probe_session(start, err);

	if (r == 0)
		clt_kept_choose(start->conf);
	/* ORDER: last, because a command at the control socket, and a reader of metrics, waits
	 * until the session has started. */
	if (r == 0) {
		r = clt_ctl_bind(start->conf->control, why, sizeof(why));
		if (r < 0)
			snprintf(err, CLT_FRONT_ERR, "control=%s", why);
	}
	if (r == 0) {
		r = clt_metrics_bind(start->conf, why, sizeof(why));
		if (r < 0)
			snprintf(err, CLT_FRONT_ERR, "metrics=%s", why);
	}
	return r;
}
