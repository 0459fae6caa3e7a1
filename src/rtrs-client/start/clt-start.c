/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the session with its loops and their threads, its reloads, the control socket, the metrics,
 * and a thread.  While requests wait for a server that is away or holds them, the thread listens
 * for the end of the front end's process. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "clt-kept.h"
#include "clt-start.h"
#include "dev.h"
#include "log.h"
#include "loop.h"
#include "process.h"
#include "signals.h"

#define PATH_FDS 4			/* of a path, beside its connections */
#define NAP_END_S 2			/* a nap lasts a second, see clt_front.nap() */
#define CON_FDS 2			/* a socket, and the loop's copy */

/* ---- the session of a process: its loops and threads ---- */

/* A failure leaves nothing behind. */

int clt_run_thread(struct clt_run *run, const char *name)
{
	int r = loop_poll_create(name, &run->loop);

	if (r < 0)
		run->loop = NULL;
	run->loops[0] = run->loop;
	run->nloops = 1;
	return r;
}

static void end_threads(struct clt_run *run)
{
	while (run->nloops)
		loop_poll_destroy(run->loops[--run->nloops]);
	run->loop = NULL;
}

int clt_run_more(struct clt_run *run, const char *name, unsigned n)
{
	int r = 0;

	assert(run->nloops + n <= CLT_RUN_LOOPS);
	while (r == 0 && n--) {
		r = loop_poll_create(name, &run->loops[run->nloops]);
		if (r == 0)
			run->nloops++;
	}
	if (r < 0)
		end_threads(run);
	return r;
}

int clt_run_session(struct clt_run *run, const struct clt_sess_conf *conf)
{
	struct clt_sess_conf with_loops = *conf;
	int r;

	with_loops.loops = run->loops;
	with_loops.nloops = run->nloops;
	r = client_init(&run->clt, run->loop, &with_loops);
	if (r < 0)
		end_threads(run);
	return r;
}

int clt_run_wait_up(struct clt_run *run, char *why, size_t len)
{
	int r = client_wait_up(&run->clt);

	if (r < 0)
		snprintf(why, len, "%s", run->clt.cause);
	return r;
}

void clt_run_close(struct clt_run *run)
{
	client_close(&run->clt);
}

void clt_run_fini(struct clt_run *run)
{
	end_threads(run);
	client_fini(&run->clt);
}

/* ---- the session of a front end ---- */

int clt_start_run(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
		  bool once, unsigned setup_ms, char err[CLT_FRONT_ERR])
{
	char base[RTRS_NAME_MAX], name[RTRS_NAME_MAX + 8];
	struct clt_sess_conf sess = conf->sess;
	int r;

	sess.name = name;
	sess.wait = conf->front->wait;
	sess.paths = conf->paths;
	sess.npaths = conf->npaths;
	sess.kept = clt_kept_page(conf);
	sess.path.setup_ms = setup_ms;
	sess.path.lessons = &start->lessons;
	sess.path.tls = conf->tls;
	sess.path.auth = conf->auth;
	sess.path.once = once;
	clt_conf_sessname(conf, base);
	snprintf(name, sizeof(name), "%.*s%s", (int)(RTRS_NAME_MAX - 1 - strlen(suffix)), base,
		 suffix);
	r = clt_run_thread(&start->run, "rtrs-service");
	if (r == 0)
		r = clt_run_more(&start->run, "rtrs-io", conf->sess.nloops - 1);
	if (r < 0) {
		snprintf(err, CLT_FRONT_ERR, "cannot start a thread: %s", threads_strerror(r));
		return r;
	}
	r = clt_run_session(&start->run, &sess);
	/* transport=auto has made two paths the same, which differed in the transport. */
	if (r == -EEXIST)
		snprintf(err, CLT_FRONT_ERR,
			 "two of server= and path= use the same addresses: give each "
			 "path once");
	else if (r < 0)
		snprintf(err, CLT_FRONT_ERR, "cannot start a session with connections=%u: %s",
			 conf->sess.connections, threads_strerror(r));
	return r;
}

/* A nap may last for ever: nbdkit's writes to a log that nobody may read. */
static void watch_end(struct clt_start *start)
{
	enum clt_start_watch naps = CLT_WATCH_NAPS;
	struct timespec until;
	int r;

	if (atomic_load(&start->watched) == CLT_WATCH_NONE)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += NAP_END_S;
	do {
		r = sem_clockwait(&start->watch_over, CLOCK_MONOTONIC, &until);
	} while (r && errno == EINTR);
	if (r && atomic_compare_exchange_strong(&start->watched, &naps, CLT_WATCH_LEFT)) {
		if (start->conf->front->nap_left)
			start->conf->front->nap_left(start->watch);
		pthread_detach(start->watch);
		return;
	}
	pthread_join(start->watch, NULL);
	sem_destroy(&start->watch_over);
	atomic_store(&start->watched, CLT_WATCH_NONE);
}

void clt_start_end(struct clt_start *start)
{
	if (!start->run.loop)
		return;
	clt_reload_stop(&start->reload);
	clt_metrics_close(start->metrics);
	start->metrics = NULL;
	/* A command that reloads is waited for. */
	clt_ctl_close(start->ctl);
	start->ctl = NULL;
	clt_reload_end(&start->reload);
	clt_run_close(&start->run);
	watch_end(start);
	clt_run_fini(&start->run);
}

static void *watch_main(void *arg)
{
	struct clt_start *start = arg;

	while (client_wait_away(&start->run.clt)) {
		enum clt_start_watch naps = CLT_WATCH_NAPS;
		int r;

		atomic_store(&start->watched, CLT_WATCH_NAPS);
		r = start->conf->front->nap();
		if (!atomic_compare_exchange_strong(&start->watched, &naps, CLT_WATCH_RUNS))
			return NULL;
		if (r < 0) {
			client_lose_patience(&start->run.clt);
			break;
		}
	}
	sem_post(&start->watch_over);
	return NULL;
}

static int watch_start(struct clt_start *start)
{
	int r;

	sem_init(&start->watch_over, 0, 0);
	atomic_store(&start->watched, CLT_WATCH_RUNS);
	r = signals_thread(&start->watch, watch_main, start);
	if (r < 0) {
		atomic_store(&start->watched, CLT_WATCH_NONE);
		return r;
	}
	pthread_setname_np(start->watch, "rtrs-watch");
	return 0;
}

static int session_start(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	struct clt_conf *conf = start->conf;
	int r = clt_start_run(start, conf, "", false, 0, err);
	char why[CLT_FRONT_ERR - 16];

	if (r < 0)
		return fds_name_limit(r, err, CLT_FRONT_ERR);
	r = conf->front->nap ? watch_start(start) : 0;
	if (r == 0 && conf->export_name)
		r = dev_watch_start(&start->run.clt, conf->export_name, conf->mode,
				    conf->mode_auto ? DEV_WATCH_ANY : DEV_WATCH_MODE,
				    !start->without);
	if (r < 0) {
		clt_start_end(start);
		snprintf(err, CLT_FRONT_ERR, "cannot start: %s", threads_strerror(r));
		return r;
	}
	clt_reload_begin(&start->reload, conf, &start->run.clt.sess, start->run.loop);
	r = clt_ctl_open(conf, &start->run.clt, &start->reload, &start->ctl, why, sizeof(why));
	if (r < 0) {
		clt_start_end(start);
		snprintf(err, CLT_FRONT_ERR, "control=%s", why);
		return r;
	}
	r = clt_metrics_open(conf, &start->run.clt, &start->metrics, err, CLT_FRONT_ERR);
	if (r < 0)
		clt_start_end(start);
	return r;
}

void clt_start_init(struct clt_start *start, struct clt_conf *conf)
{
	memset(start, 0, sizeof(*start));
	start->conf = conf;
	frwr_lessons_init(&start->lessons);
	pthread_mutex_init(&start->lock, NULL);
}

int clt_start_session(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	LOCK_SCOPE(&start->lock);
	return session_start(start, err);
}

/* Start the session now, if no session runs.  0, or -errno with @err. */
static int session_try_again(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	int r = 0;

	LOCK_SCOPE(&start->lock);
	if (start->run.loop)
		return 0;
	r = session_start(start, err);
	if (r == 0)
		log_warn(NULL, "the session has started, for a new client");
	return r;
}

unsigned clt_start_cons(struct clt_start *start)
{
	struct clt_io *io = &start->run.clt.sess.io;
	unsigned n = 0;

	for (unsigned i = 0; i < atomic_load(&io->natts); i++)
		n += io->atts[i]->ncons;
	return n;
}

/* The number of descriptors that paths which are not up may still open. */
static unsigned missing_fds(struct clt_start *start)
{
	struct clt_io *io = &start->run.clt.sess.io;
	unsigned n = 0;

	for (unsigned i = 0; i < atomic_load(&io->natts); i++)
		n += clt_attempt_is_up(io->atts[i]) ? 0 :
						      PATH_FDS + CON_FDS * io->atts[i]->ncons;
	return n;
}

bool clt_start_has_room(struct clt_start *start)
{
	return fds_free(fds_reserve(start->conf->front->client_fds) + missing_fds(start));
}

int clt_start_admit(struct clt_start *start, char err[CLT_FRONT_ERR])
{
	int r = session_try_again(start, err);

	if (r < 0 || clt_start_has_room(start))
		return r;
	snprintf(err, CLT_FRONT_ERR, "too few descriptors for another client");
	return fds_name_limit(-EMFILE, err, CLT_FRONT_ERR);
}
