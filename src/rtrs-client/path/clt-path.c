/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the objects of a path, from clt_path_init() to clt_path_fini().  Hands the calls of others
 * to the life of the path (clt-path-life.c).  Service thread but for clt_path_fail(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-path-priv.h"
#include "names.h"

/* ---- start and end ---- */

static void path_name_it(struct clt_path *path)
{
	strcpy(path->name, CLT_PATH_PREFIX);
	clt_sess_addr_text(&path->conf.addr, path->name + CLT_PATH_PREFIX_LEN,
			   sizeof(path->name) - CLT_PATH_PREFIX_LEN);
	/* Masked like all texts for people, so that the name is the same in all these texts. */
	mask_control(path->name);
	random_bytes(path->uuid, sizeof(path->uuid));
}

int clt_path_init(struct clt_path *path, const struct clt_path_conf *conf,
		  const struct clt_path_ops *ops)
{
	struct clt_attempt *att = &path->att;
	int r = -ENOMEM;

	memset(path, 0, sizeof(*path));
	path->conf = *conf;
	path->src = conf->addr.src;
	path->dst = conf->addr.dst;
	path->setup_ms = conf->setup_ms;
	path->ops = ops;
	path->loop = conf->io->loop;
	att->io = conf->io;
	att->index = conf->index;
	att->ncons = conf->ncons;
	path_name_it(path);
	clt_cause_init(&path->cause);
	clt_path_life_init(path);
	clt_con0_init(path);

	att->cons = aligned_alloc(64, align_up(att->ncons * sizeof(*att->cons), 64));
	if (!att->cons)
		goto err_cause;
	memset(att->cons, 0, att->ncons * sizeof(*att->cons));
	for (unsigned i = 0; i < att->ncons; i++) {
		struct clt_con *con = &att->cons[i];

		con->att = att;
		con->cid = i;
		con->key = 1 + conf->index * RTRS_MAX_CONS + i;
		r = i ? clt_wait_con_init(con) : 0;
		if (r < 0) {
			while (--i)
				clt_wait_con_fini(&att->cons[i]);
			goto err_cons;
		}
	}
	return 0;

err_cons:
	free(att->cons);
err_cause:
	clt_cause_fini(&path->cause);
	return r;
}

void clt_path_readdress(struct clt_path *path, const struct clt_sess_addr *addr)
{
	path->conf.addr = *addr;
	path->src = addr->src;
	path->dst = addr->dst;
	memset(&path->names, 0, sizeof(path->names));
	path->attempts = path->ups = path->failed = 0;
	path->lost_ms = 0;
	clt_cause_forget(&path->cause);
	path->tell_up = false;
	clt_stat_reset(path);
	path_name_it(path);
}

void clt_path_fini(struct clt_path *path)
{
	for (unsigned i = 1; i < path->att.ncons; i++)
		clt_wait_con_fini(&path->att.cons[i]);
	/* kept for the next attempt */
	clt_mem_detach(&path->att);
	if (path->att.pd)
		fab_pd_destroy(path->att.pd);
	if (path->cm)
		fab_cm_destroy(path->cm);
	free(path->att.cons);
	clt_cause_fini(&path->cause);
}

/* ---- calls of the owner and of others ---- */

void clt_path_fail(struct clt_path *path, int err, const char *cause)
{
	clt_path_step_fail(path, err, cause);
}

void clt_path_start(struct clt_path *path)
{
	path->fails = path->tries = 0;
	clt_path_step(path, CLT_PATH_EV_START);
}

void clt_path_retry(struct clt_path *path)
{
	clt_path_step(path, CLT_PATH_EV_RETRY);
}

void clt_path_hurry(struct clt_path *path)
{
	if (clt_path_state(path) == CLT_PATH_BACKOFF)
		loop_timer_set(path->loop, &path->retry_timer,
			       MIN(path->retry_timer.at_ms, clock_now_ms() + CLT_BACKOFF_ALONE_MS));
}

void clt_path_close(struct clt_path *path)
{
	clt_path_step(path, CLT_PATH_EV_CLOSE);
}

void clt_path_opened(struct clt_path *path)
{
	if (clt_path_state(path) != CLT_PATH_OPENING)
		return;
	/* RACE: unsealed before requests can see the path UP.  A failure in between wins: then
	 * OPENED comes too late. */
	for (unsigned i = 1; i < path->att.ncons; i++) {
		struct clt_con *con = &path->att.cons[i];

		clt_tx_unseal(con);
		clt_con_watch_hangup(con);
		clt_wait_con_release(con);
	}
	clt_path_step(path, CLT_PATH_EV_OPENED);
}

void clt_path_stand_by(struct clt_path *path)
{
	if (clt_path_state(path) != CLT_PATH_OPENING)
		return;
	clt_path_step(path, CLT_PATH_EV_STANDS_BY);
}

void clt_path_wanted(struct clt_path *path)
{
	clt_path_step(path, CLT_PATH_EV_WANTED);
}

unsigned clt_path_ask(struct clt_path *path)
{
	return clt_con0_ask(path);
}

bool clt_path_answered(const struct clt_path *path, unsigned asked)
{
	return rtrs_hb_acked(&path->att.hb, asked);
}

bool clt_path_holds(struct clt_path *path)
{
	enum clt_path_state state = clt_path_state(path);

	return path->up_since_ms && state >= CLT_PATH_UP && state != CLT_PATH_BACKOFF &&
	       state != CLT_PATH_CLOSED;
}

bool clt_path_goes_on(struct clt_path *path)
{
	return clt_path_names_go_on(path);
}

bool clt_path_tries(struct clt_path *path)
{
	enum clt_path_state state = clt_path_state(path);

	return state >= CLT_PATH_RESOLVING && state <= CLT_PATH_STANDBY;
}

void clt_path_lose_patience(struct clt_path *path)
{
	path->impatient = true;
	clt_con0_lose_patience(path);
}
