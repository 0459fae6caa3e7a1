/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers the counters of a path.  Owns nothing. */
#include <string.h>

#include "clt-path.h"

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
};

const char *clt_stat_name(enum clt_stat_what what)
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

void clt_stat_ever(const struct clt_path *path, struct clt_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	for (unsigned i = 0; i < path->att.ncons; i++)
		con_add(&path->att.cons[i], stat->n);
	keys_add(&path->att, stat->n);
	stat->n[CLT_STAT_RECONNECTS] = path->ups ? path->ups - 1 : 0;
	stat->n[CLT_STAT_RECONNECTS_FAILED] = path->failed;
}

void clt_stat_get(const struct clt_path *path, struct clt_stat *stat)
{
	clt_stat_ever(path, stat);
	for (unsigned i = 0; i < CLT_STAT_N; i++)
		stat->n[i] -= path->stat_base.n[i];
}

uint64_t clt_stat_answered(const struct clt_path *path)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < path->att.ncons; i++)
		n += counter_get(&path->att.cons[i].answered);
	return n;
}

void clt_stat_reset(struct clt_path *path)
{
	clt_stat_ever(path, &path->stat_base);
}
