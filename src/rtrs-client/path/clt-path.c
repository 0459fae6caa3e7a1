/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the objects of a path, from clt_path_init() to clt_path_fini().  Hands the calls of others
 * to the life of the path (clt-path-life.c).  Service thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-path-priv.h"
#include "clt-path.h"
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
	clt_con_zero_init(path);

	att->cons = aligned_alloc(64, align_up(att->ncons * sizeof(*att->cons), 64));
	if (!att->cons)
		goto err_cause;
	memset(att->cons, 0, att->ncons * sizeof(*att->cons));
	for (unsigned i = 0; i < att->ncons; i++) {
		struct clt_con *con = &att->cons[i];

		con->att = att;
		con->cid = i;
		con->key = 1 + conf->index * RTRS_MAX_CONS + i;
		r = i ? att->io->wait->con_init(con) : 0;
		if (r < 0) {
			while (--i)
				att->io->wait->con_fini(&att->cons[i]);
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
	path->attempts = path->ups = path->failed = path->stuck = 0;
	path->round = 0;
	path->auth.passed_over = false;
	path->lost_ms = 0;
	clt_cause_forget(&path->cause);
	path->tell_up = false;
	clt_path_stat_reset(path);
	path_name_it(path);
}

void clt_path_fini(struct clt_path *path)
{
	for (unsigned i = 1; i < path->att.ncons; i++)
		path->att.io->wait->con_fini(&path->att.cons[i]);
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
		con->att->io->wait->con_release(con);
	}
	clt_path_step(path, CLT_PATH_EV_OPENED);
}

void clt_path_stand_by(struct clt_path *path)
{
	clt_path_step(path, CLT_PATH_EV_STANDS_BY);
}

void clt_path_wanted(struct clt_path *path)
{
	clt_path_step(path, CLT_PATH_EV_WANTED);
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

bool clt_path_tries(struct clt_path *path)
{
	enum clt_path_state state = clt_path_state(path);

	return state >= CLT_PATH_RESOLVING && state <= CLT_PATH_STANDBY;
}

void clt_path_lose_patience(struct clt_path *path)
{
	path->impatient = true;
	clt_con_zero_lose_patience(path);
}

/* ---- counters ---- */

static const char *const names[CLT_STAT_N] = {
	[CLT_STAT_READS] = "reads", [CLT_STAT_READ_BYTES] = "read_bytes",
	[CLT_STAT_WRITES] = "writes", [CLT_STAT_WRITE_BYTES] = "write_bytes",
	[CLT_STAT_FAILOVERS] = "failovers",
	[CLT_STAT_RECONNECTS] = "reconnects", [CLT_STAT_RECONNECTS_FAILED] = "reconnects_failed",
	[CLT_STAT_POLL_HANDOVERS] = "poll_handovers", [CLT_STAT_WAKEUPS] = "wakeups",
	[CLT_STAT_KEYS_MAPPED] = "keys_mapped", [CLT_STAT_KEYS_BOUND] = "keys_bound",
	[CLT_STAT_REMOTE_INVALIDATES] = "remote_invalidates",
	[CLT_STAT_LOCAL_INVALIDATES] = "local_invalidates",
	[CLT_STAT_MISSING_INVALIDATES] = "missing_invalidates",
	[CLT_STAT_DIGEST_ERRORS] = "digest_errors",
};

const char *clt_path_stat_name(enum clt_stat_what what)
{
	return names[what];
}

static void con_add(const struct clt_con *con, uint64_t n[CLT_STAT_N])
{
	n[CLT_STAT_READS] += counter_get(&con->sent[RTRS_DIR_READ]);
	n[CLT_STAT_READ_BYTES] += counter_get(&con->sent_bytes[RTRS_DIR_READ]);
	n[CLT_STAT_WRITES] += counter_get(&con->sent[RTRS_DIR_WRITE]);
	n[CLT_STAT_WRITE_BYTES] += counter_get(&con->sent_bytes[RTRS_DIR_WRITE]);
	n[CLT_STAT_FAILOVERS] += counter_get(&con->failovers);
	n[CLT_STAT_POLL_HANDOVERS] += counter_get(&con->wait.handovers);
	n[CLT_STAT_WAKEUPS] += counter_get(&con->wait.wakeups);
}

static void keys_add(const struct clt_attempt *att, uint64_t n[CLT_STAT_N])
{
	struct frwr_stats keys;

	clt_key_stats(att, &keys);
	n[CLT_STAT_KEYS_MAPPED] += keys.mapped;
	n[CLT_STAT_KEYS_BOUND] += keys.bind_posted;
	n[CLT_STAT_REMOTE_INVALIDATES] += keys.remote_inv;
	n[CLT_STAT_LOCAL_INVALIDATES] += keys.local_inv;
	n[CLT_STAT_MISSING_INVALIDATES] += keys.remote_inv_missing;
}

void clt_path_stat_ever(const struct clt_path *path, struct clt_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	for (unsigned i = 0; i < path->att.ncons; i++)
		con_add(&path->att.cons[i], stat->n);
	keys_add(&path->att, stat->n);
	stat->n[CLT_STAT_RECONNECTS] = path->ups ? path->ups - 1 : 0;
	stat->n[CLT_STAT_RECONNECTS_FAILED] = path->failed;
	stat->n[CLT_STAT_DIGEST_ERRORS] = path->digest_errors;
}

void clt_path_stat_get(const struct clt_path *path, struct clt_stat *stat)
{
	clt_path_stat_ever(path, stat);
	for (unsigned i = 0; i < CLT_STAT_N; i++)
		stat->n[i] -= path->stat_base.n[i];
}

uint64_t clt_path_stat_answered(const struct clt_path *path)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < path->att.ncons; i++)
		n += counter_get(&path->att.cons[i].answered);
	return n;
}

void clt_path_stat_reset(struct clt_path *path)
{
	clt_path_stat_ever(path, &path->stat_base);
}
