/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Rates and latencies are of the time between the two answers; all other values are
 * from the later answer.  Rows: an export and a session with this export open; an export without
 * such a session; a session without an open export. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "state.h"
#include "text.h"
#include "views.h"

enum column {
	COL_EXPORT, COL_SIZE, COL_MODE, COL_STATE, COL_SESSION, COL_PEER, COL_TRANSPORT,
	COL_IOPS, COL_MBS, COL_P50, COL_P99, COL_ERR, NCOLUMNS
};
#define COL_NUMBERS COL_IOPS		/* the first column of numbers */

static const char *const heads[NCOLUMNS] = {
	"EXPORT", "SIZE", "MODE", "STATE", "SESSION", "PEER", "TRANSPORT", "IOPS", "MB/s", "p50",
	"p99", "ERR",
};

struct table {
	char (*cells)[TEXT_CELL];
	unsigned nrows;
	struct answer_pair pair;
	json_t *users, *names;		/* of pair.after, index_users() and state_index_names() */
};

/* ---- cells ---- */

/* Write the member @name of the first path, and how many other values the other paths have.  Only
 * paths that are up count, unless none is up. */
static void put_of_paths(const json_t *sess, const char *name, char cell[TEXT_CELL])
{
	bool any = state_paths(sess).up;
	const char *first = NULL;
	unsigned others = 0;
	json_t *path, *seen = json_object();
	size_t i, len;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *value = answer_string(path, name);

		if ((any && strcmp(answer_string(path, "state"), "connected")) ||
		    json_object_get(seen, value))
			continue;
		json_object_set_new(seen, value, json_true());
		first = first ? first : value;
		others += first != value;
	}
	text_safe(first ? first : "-", cell, TEXT_CELL - sizeof(" +4294967295"));
	len = strlen(cell);
	if (others)
		snprintf(cell + len, TEXT_CELL - len, " +%u", others);
	json_decref(seen);
}

/* Write the state of @ex alone, if there is something to say. */
static void put_export_state(const struct table *t, const json_t *ex, char (*row)[TEXT_CELL])
{
	state_of_export(t->pair.after, ex, row[COL_STATE], NULL);
}

/* Write @sess to @row, and return its health with @dev. */
static enum health put_session(const struct table *t, const json_t *sess, const json_t *dev,
			       char (*row)[TEXT_CELL])
{
	enum health health = state_tell(sess, dev, row[COL_STATE]);

	state_name(t->names, sess, answer_string(sess, "name"), row[COL_SESSION], TEXT_CELL);
	put_of_paths(sess, "peer", row[COL_PEER]);
	put_of_paths(sess, "transport", row[COL_TRANSPORT]);
	return health;
}

static void put_rates(const struct table *t, const json_t *ex, char (*row)[TEXT_CELL])
{
	struct rate_sums all = { 0 }, now = answer_rate_export(&t->pair, ex);
	double per_second = t->pair.ns ? 1e9 / (double)t->pair.ns : 0;

	answer_rate_add(&all, ex);
	snprintf(row[COL_ERR], TEXT_CELL, "%llu", (unsigned long long)all.errors);
	snprintf(row[COL_IOPS], TEXT_CELL, "%.0f", (double)now.count * per_second);
	snprintf(row[COL_MBS], TEXT_CELL, "%.1f", (double)now.bytes * per_second / 1e6);
	text_time(hist_quantile(&now.latency, 500), row[COL_P50], TEXT_CELL);
	text_time(hist_quantile(&now.latency, 990), row[COL_P99], TEXT_CELL);
}

/* ---- rows ---- */

/* Add a row of "-". */
static char (*add_row(struct table *t))[TEXT_CELL]
{
	char (*row)[TEXT_CELL] = &t->cells[(size_t)t->nrows++ * NCOLUMNS];

	for (unsigned col = 0; col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "-");
	return row;
}

/* Add a row of @ex, with the export's own mode.  Counters are not kept by session, so the @first
 * row of an export has the counters of all sessions. */
static char (*add_export_row(struct table *t, const json_t *ex, bool first))[TEXT_CELL]
{
	char (*row)[TEXT_CELL] = add_row(t);

	text_safe(answer_string(ex, "name"), row[COL_EXPORT], TEXT_CELL);
	if (!json_object_get(ex, "size"))	/* no storage */
		return row;
	text_bytes(answer_number(ex, "size"), row[COL_SIZE], TEXT_CELL);
	text_safe(answer_string(ex, "mode"), row[COL_MODE], TEXT_CELL);
	if (first)
		put_rates(t, ex, row);
	for (unsigned col = COL_NUMBERS; !first && col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "\"");
	return row;
}

/* The open devices of @answer by the key of their export, with their session: {KEY: [[DEV,
 * SESSION]]}. */
static json_t *index_users(const json_t *answer)
{
	json_t *index = json_object(), *sess, *dev;
	char key[ANSWER_KEY];
	size_t i, j;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "devices"), j, dev) {
			json_t *users = json_object_get(index, answer_device_key(dev, key));

			if (!users) {
				users = json_array();
				json_object_set_new(index, key, users);
			}
			json_array_append_new(users, json_pack("[O,O]", dev, sess));
		}
	}
	return index;
}

static void add_users(struct table *t, const json_t *ex)
{
	char key[ANSWER_KEY];
	const json_t *users = json_object_get(t->users, answer_export_key(ex, key));
	json_t *user;
	size_t i;

	json_array_foreach(users, i, user) {
		const json_t *dev = json_array_get(user, 0), *sess = json_array_get(user, 1);
		char (*row)[TEXT_CELL] = add_export_row(t, ex, !i);

		text_safe(state_dev_mode(dev), row[COL_MODE], TEXT_CELL);
		if (put_session(t, sess, dev, row) != HEALTH_DOWN)
			put_export_state(t, ex, row);
	}
	if (!users)
		put_export_state(t, ex, add_export_row(t, ex, true));
}

/* The number of rows that status_print() makes at most. */
static size_t count_rows(const json_t *answer)
{
	size_t i, n = 1 + json_array_size(json_object_get(answer, "exports"));
	json_t *sess;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess)
		n += 1 + json_array_size(json_object_get(sess, "devices"));
	return n;
}

void status_print(const json_t *before, const json_t *after)
{
	struct table t = {
		.cells = calloc(count_rows(after) * NCOLUMNS, TEXT_CELL),
		.users = index_users(after),
		.names = state_index_names(after),
	};
	char (*row)[TEXT_CELL];
	json_t *ex, *sess;
	size_t i;

	answer_pair_init(&t.pair, before, after);
	if (!t.cells)
		goto out;
	row = add_row(&t);
	for (unsigned col = 0; col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "%s", heads[col]);
	json_array_foreach(t.pair.exports, i, ex)
		add_users(&t, ex);
	json_array_foreach(json_object_get(after, "sessions"), i, sess) {
		if (!json_array_size(json_object_get(sess, "devices")) && state_is_user(sess))
			put_session(&t, sess, NULL, add_row(&t));
	}
	text_table((const char (*)[TEXT_CELL])t.cells, t.nrows, NCOLUMNS, COL_NUMBERS, 0);
out:
	answer_pair_fini(&t.pair);
	json_decref(t.users);
	json_decref(t.names);
	free(t.cells);
}
