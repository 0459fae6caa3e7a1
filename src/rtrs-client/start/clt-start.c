/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the session of the process and its service thread, one after the other that of the probe and
 * the one that stays; decides what transport=auto is. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-ctl.h"
#include "clt-fds.h"
#include "clt-start.h"
#include "log.h"
#include "loop-poll.h"
#include "mask.h"

/* RDMA's own way to say that nobody is there takes a minute; who leaves the choice to us does not
 * wait for that before tcp is tried. */
#define AUTO_RDMA_MS 5000

/* So long the start waits for another session to let go of the export. */
#define PROBE_HELD_MS 5000

/* What the probe learns, the session that stays knows. */
static struct frwr_lessons lessons = FRWR_LESSONS_INIT;
static struct loop *loop;
static struct client clt;
static pthread_t watch;
static bool watched;
static struct clt_ctl *ctl;

/* Of the session that stays.  Without one, @loop is NULL, whoever has the lock may try to start
 * it; who has had the lock and seen it may use it until the end. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct clt_conf *start_conf;
static int (*watch_nap)(void);

/* @err is about @r, and has room for it. */
static int name_limit(int r, char err[CLT_START_ERR])
{
	size_t len = strlen(err);

	if (r == -EMFILE)
		snprintf(err + len, CLT_START_ERR - len, " (RLIMIT_NOFILE is %llu: raise it)",
			 clt_fds_limit());
	return r;
}

static int session_open(const struct clt_conf *conf, const char *suffix, bool once, unsigned setup_ms,
			char err[CLT_START_ERR])
{
	char base[RTRS_NAME_MAX], name[RTRS_NAME_MAX + 8];
	struct clt_sess_conf sess = {
		.name = name,
		.wait = &clt_wait_threads,
		.paths = conf->paths,
		.npaths = conf->npaths,
		.policy = conf->policy,
		.hb_interval_ms = conf->heartbeat_ms,
		.hb_misses = conf->heartbeat_misses,
		.max_reconnect_attempts = conf->max_reconnect_attempts,
		.connections = conf->connections,
		.io_timeout_ms = conf->io_timeout_ms,
		.poll_us = conf->poll_us,
		.setup_ms = setup_ms,
		.registration = conf->registration,
		.servers = conf->servers,
		.once = once,
		.lessons = &lessons,
	};
	int r;

	clt_conf_sessname(conf, base);
	snprintf(name, sizeof(name), "%.*s%s", (int)(RTRS_NAME_MAX - 1 - strlen(suffix)), base,
		 suffix);
	r = loop_poll_create("rtrs-service", &loop);
	if (r < 0) {
		loop = NULL;
		snprintf(err, CLT_START_ERR, "cannot start a thread: %s", strerror(-r));
		return r;
	}
	r = client_init(&clt, loop, &sess);
	if (r == 0)
		return 0;
	loop_poll_destroy(loop);
	loop = NULL;
	/* transport=auto has made one transport of two. */
	if (r == -EEXIST)
		snprintf(err, CLT_START_ERR, "two of server= and path= lead over the same addresses: "
			 "give each path once");
	else
		snprintf(err, CLT_START_ERR, "cannot start a session with connections=%u: %s",
			 conf->connections, strerror(-r));
	return r;
}

void clt_start_end(void)
{
	if (!loop)
		return;
	clt_ctl_close(ctl);
	ctl = NULL;
	client_close(&clt);
	if (watched)
		pthread_join(watch, NULL);
	watched = false;
	loop_poll_destroy(loop);
	loop = NULL;
	client_fini(&clt);
}

static void *watch_main(void *arg)
{
	while (client_wait_away(&clt)) {
		if (watch_nap() < 0) {
			client_lose_patience(&clt);
			break;
		}
	}
	return NULL;
}

static int session_start(char err[CLT_START_ERR])
{
	int r = session_open(start_conf, "", false, 0, err);
	char why[CLT_START_ERR - 16];

	if (r < 0)
		return name_limit(r, err);
	r = -pthread_create(&watch, NULL, watch_main, NULL);
	if (r < 0) {
		clt_start_end();
		snprintf(err, CLT_START_ERR, "cannot start a thread: %s", strerror(-r));
		return r;
	}
	watched = true;
	pthread_setname_np(watch, "rtrs-watch");
	r = clt_ctl_open(start_conf->front, &clt, loop, start_conf->control, &ctl, why, sizeof(why));
	if (r < 0) {
		clt_start_end();
		snprintf(err, CLT_START_ERR, "control=%s", why);
	}
	return r;
}

int clt_start_session(const struct clt_conf *conf, int (*nap)(void), char err[CLT_START_ERR])
{
	LOCK_SCOPE(&start_lock);
	start_conf = conf;
	watch_nap = nap;
	return session_start(err);
}

/* 0, or what is wrong still. */
static int session_try_again(char err[CLT_START_ERR])
{
	int r = 0;

	LOCK_SCOPE(&start_lock);
	if (loop)
		return 0;
	r = session_start(err);
	if (r == 0)
		log_warn(NULL, "the session has started now, for a client that came");
	return r;
}

/* Connected: @err is untouched; else the session is closed again. */
static int probe_attempt(const struct clt_conf *conf, unsigned setup_ms, char err[CLT_START_ERR])
{
	int r = session_open(conf, "-probe", true, setup_ms, err);

	if (r < 0)
		return r;
	r = client_wait_up(&clt);
	if (r < 0) {
		snprintf(err, CLT_START_ERR, "%s", clt.cause);
		clt_start_end();
	}
	return r;
}

/* As probe_attempt(); again when the device has turned out not to do what it was asked to.  The
 * server's may have, too, which is seen here as a reset. */
static int probe_connect(const struct clt_conf *conf, unsigned setup_ms, char err[CLT_START_ERR])
{
	char why[CLT_START_ERR] = "";
	bool reset = false, again;
	unsigned known;
	int r;

	do {
		known = frwr_lessons_count(&lessons);
		r = probe_attempt(conf, setup_ms, why);
		again = frwr_lessons_count(&lessons) != known || (r == -ECONNRESET && !reset);
		reset |= r == -ECONNRESET;
	} while (r < 0 && again);
	if (r < 0)
		snprintf(err, CLT_START_ERR, "%s", why);
	return r;
}

/* There is no RDMA between here and the server, or it does not listen there: nothing is wrong. */
static bool no_rdma(int r)
{
	return r == -ENODEV || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -EHOSTUNREACH ||
	       r == -ENETUNREACH || r == -EADDRNOTAVAIL;
}

/* @conf with those paths only whose transport is to be chosen: another one that is up says nothing
 * of them. */
static void choosing_paths(const struct clt_conf *conf, struct clt_conf *choosing)
{
	*choosing = *conf;
	choosing->npaths = 0;
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (conf->chooses[i])
			choosing->paths[choosing->npaths++] = conf->paths[i];
	}
}

static int probe_auto(struct clt_conf *conf, char err[CLT_START_ERR])
{
	const struct fab_provider *rdma = fab_provider_find("rdma");
	char why[CLT_START_ERR] = "built without RDMA", addr[FAB_ADDR_STRLEN];
	static struct clt_conf choosing;	/* large for a stack */
	int r, rdma_r = -ENODEV;

	choosing_paths(conf, &choosing);
	fab_addr_format(&choosing.paths[0].dst, addr, sizeof(addr));
	if (rdma) {
		clt_conf_choose(conf, rdma);
		choosing_paths(conf, &choosing);
		rdma_r = probe_connect(&choosing, AUTO_RDMA_MS, why);
		if (rdma_r == 0) {
			log_info(addr, "transport=auto: rdma, because an RDMA device reaches the server");
			return 0;
		}
	}
	clt_conf_choose(conf, fab_provider_find("tcp"));
	if (no_rdma(rdma_r))
		log_info(addr, "transport=auto: tcp, because of rdma: %s", why);
	else
		log_warn(addr, "transport=auto: tcp, because rdma fails: %s", why);
	r = probe_connect(conf, 0, err);
	if (r < 0 && rdma_r == r && r == -ECONNREFUSED)		/* the same in other words */
		snprintf(err + strlen(err), CLT_START_ERR - strlen(err), " (over rdma, too)");
	else if (r < 0 && rdma_r != -ENODEV)
		snprintf(err + strlen(err), CLT_START_ERR - strlen(err), " (over rdma: %s)", why);
	return r;
}

/* Connections that the session has, or, with @missing, may still open: how many a path has while it
 * is not up only its own thread knows. */
static unsigned sess_cons(bool missing)
{
	unsigned n = 0;

	for (unsigned i = 0; i < atomic_load(&clt.sess.io.natts); i++) {
		struct clt_attempt *att = clt.sess.io.atts[i];

		n += missing && clt_attempt_is_up(att) ? 0 : att->ncons;
	}
	return n;
}

/* With the probe's session open, which needs as many as the one that stays.  Room for a client that
 * comes before that one is up, too. */
static int probe_fds(char err[CLT_START_ERR])
{
	unsigned n = CLT_FDS_NBDKIT + CLT_FDS_CLIENT + clt_fds_reserve() + sess_cons(false);

	if (clt_fds_free(n))
		return 0;
	snprintf(err, CLT_START_ERR, "too few descriptors: nbdkit and the session need %u more", n);
	return name_limit(-EMFILE, err);
}

int clt_start_admit(char err[CLT_START_ERR])
{
	int r = session_try_again(err);

	if (r < 0 || clt_fds_free(clt_fds_reserve() + sess_cons(true)))
		return r;
	snprintf(err, CLT_START_ERR, "too few descriptors for another client");
	return name_limit(-EMFILE, err);
}

static const char *open_reason(int r)
{
	switch (r) {
	case -EPERM:
		return "open for writing by another session, which the server's log names (mode=ro or "
		       "mode=migration would share it)";
	case -EROFS: case -EACCES:
		return "read-only on the server (mode=auto or mode=ro would take it)";
	case -ENOENT:
		return "the server has no such export";
	case -EMEDIUMTYPE:
		return "smaller now than those know it who have it open";
	case -ECONNABORTED:
		return "the server was lost";
	default:
		return strerror(-r);
	}
}

/* Append to @err which exports there are, as many as there is room for. */
static void name_exports(char err[CLT_START_ERR])
{
	static const char more[] = " and 10000 more";
	size_t len = strlen(err), end = CLT_START_ERR - sizeof(more);
	struct dev_list list;
	unsigned i = 0;

	if (dev_list(&clt, &list) == 0 && list.n) {
		for (; i < list.n; i++) {
			const char *sep = i ? ", " : "; it has ";

			if (len + strlen(sep) + strlen(list.names[i]) > end)
				break;
			len += (size_t)snprintf(err + len, CLT_START_ERR - len, "%s%s", sep, list.names[i]);
		}
		if (i && i < list.n)
			snprintf(err + len, CLT_START_ERR - len, " and %u more", list.n - i);
	}
	dev_list_fini(&list);
}

int clt_start_list(struct dev_list *list, char err[CLT_START_ERR])
{
	int r = dev_list(&clt, list);

	if (r == -EOPNOTSUPP)
		return 0;
	if (r < 0)
		snprintf(err, CLT_START_ERR, "the server's exports cannot be listed: %s", strerror(-r));
	return r;
}

int clt_start_open(const struct clt_conf *conf, const char *name, struct dev **dev,
		   char err[CLT_START_ERR])
{
	int r = dev_open(&clt, name, conf->mode, dev);

	/* EACCES: the kernel's server. */
	if (conf->mode_auto && (r == -EROFS || r == -EACCES)) {
		log_info(name, "read-only on the server: mode=auto is ro");
		r = dev_open(&clt, name, RNBD_ACCESS_RO, dev);
	}
	if (r < 0) {
		/* As much of a name as RNBD has room for: an NBD client may have chosen it. */
		snprintf(err, CLT_START_ERR, "export '%.*s' of server=%.64s: %s", RNBD_NAME_MAX - 1,
			 name, conf->server, open_reason(r));
		if (r == -ENOENT)
			name_exports(err);
		mask_control(err);
	}
	return r;
}

/* The session of a process that was just killed, this one's predecessor, may be open for a moment
 * more. */
static int probe_export(const struct clt_conf *conf, struct dev **dev, char err[CLT_START_ERR])
{
	const struct timespec nap = { .tv_nsec = 500000000 };
	uint64_t deadline_ms = clock_now_ms() + PROBE_HELD_MS;
	int r;

	do {
		r = clt_start_open(conf, conf->export_name, dev, err);
	} while (r == -EPERM && clock_now_ms() < deadline_ms && nanosleep(&nap, NULL) == 0);
	return r;
}

/* Nobody is there, or not yet.  ENOENT: there is no socket of that name. */
static bool is_away(int r)
{
	return no_rdma(r) || r == -ECONNRESET || r == -ENOENT;
}

/* Until it answers, or connect-timeout is over. */
static int probe_server(struct clt_conf *conf, char why[CLT_START_ERR])
{
	const struct timespec nap = { .tv_sec = 1 };
	uint64_t start_ms = clock_now_ms();
	int r;

	do {
		r = conf->automatic ? probe_auto(conf, why) : probe_connect(conf, 0, why);
	} while (r < 0 && is_away(r) && conf->connect_timeout_ms != CLOCK_NEVER &&
		 clock_now_ms() - start_ms < conf->connect_timeout_ms && nanosleep(&nap, NULL) == 0);
	return r;
}

static int probe(struct clt_conf *conf, char err[CLT_START_ERR])
{
	char why[CLT_START_ERR];
	struct dev *dev;
	int r;

	r = probe_server(conf, why);
	if (r < 0 && conf->connect_timeout_ms == CLOCK_NEVER && is_away(r)) {
		log_warn(NULL, "server=%s: %s; starting without", conf->server, why);
		return 0;
	}
	if (r < 0) {
		snprintf(err, CLT_START_ERR, "server=%s: %.*s", conf->server, CLT_START_ERR - 128, why);
		return name_limit(r, err);
	}
	r = probe_fds(err);
	if (r == 0 && conf->export_name) {
		r = probe_export(conf, &dev, err);
		if (r == 0)
			dev_close(dev);
	}
	clt_start_end();
	return r;
}

int clt_start_probe(struct clt_conf *conf, char err[CLT_START_ERR])
{
	char why[CLT_START_ERR - 16];
	int r = probe(conf, err);

	/* ORDER: last, because who asks there waits until the session is there. */
	if (r == 0) {
		r = clt_ctl_bind(conf->control, why, sizeof(why));
		if (r < 0)
			snprintf(err, CLT_START_ERR, "control=%s", why);
	}
	return r;
}
