/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Rates and latencies are of the time between the two answers; all other values are
 * from the later answer.  Rows: an export and a session with this export open; an export without
 * such a session; a session without an open export. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "status.h"
#include "text.h"
#include "util.h"

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
	const json_t *before, *after;
	uint64_t ns;			/* from @before to @after */
};

struct sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

static const char *get_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && *text ? text : "-";
}

static uint64_t get_number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* The first export of @answer with the name @name, or NULL. */
static json_t *find_export(const json_t *answer, const char *name)
{
	const json_t *exports = json_object_get(answer, "exports");
	json_t *ex;
	size_t i;

	json_array_foreach(exports, i, ex) {
		if (!strcmp(get_string(ex, "name"), name))
			return ex;
	}
	return NULL;
}

/* ---- state ---- */

struct count {
	unsigned up, all;
};

/* Count the paths of @sess.  The rest of a server's lost path, while the storage still works, is no
 * path. */
static struct count count_paths(const json_t *sess)
{
	struct count n = { 0 };
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *state = get_string(path, "state");

		n.up += !strcmp(state, "connected");
		n.all += strcmp(state, "lingering") && strcmp(state, "gone");
	}
	return n;
}

/* "12 s", "5 min", "3 h", "4 d". */
static void put_duration(uint64_t ns, char *buf, size_t len)
{
	uint64_t s = ns / 1000000000;

	if (s < 60)
		snprintf(buf, len, "%llu s", (unsigned long long)s);
	else if (s < 3600)
		snprintf(buf, len, "%llu min", (unsigned long long)s / 60);
	else if (s < UINT64_C(48) * 3600)
		snprintf(buf, len, "%llu h", (unsigned long long)s / 3600);
	else
		snprintf(buf, len, "%llu d", (unsigned long long)s / 86400);
}

/* Write the state of @sess, and of the device @dev, unless NULL.  Returns @cell, "up" if nothing is
 * wrong. */
static const char *put_state(const json_t *sess, const json_t *dev, char cell[TEXT_CELL])
{
	const char *state = get_string(sess, "state");
	const char *open = dev ? get_string(dev, "state") : "open";
	struct count paths = count_paths(sess);
	char since[32];

	if (!strcmp(state, "down") || !strcmp(state, "expired")) {
		put_duration(get_number(sess, "down_ns"), since, sizeof(since));
		snprintf(cell, TEXT_CELL, "down since %s", since);
	} else if (strcmp(state, "up")) {
		text_safe(state, cell, TEXT_CELL);
	} else if (!paths.up) {
		snprintf(cell, TEXT_CELL, "silent");
	} else if (strcmp(open, "open")) {
		text_safe(open, cell, TEXT_CELL);
	} else if (paths.up < paths.all) {
		snprintf(cell, TEXT_CELL, "degraded %u/%u", paths.up, paths.all);
	} else {
		snprintf(cell, TEXT_CELL, "up");
	}
	return cell;
}

/* Is @sess of no interest? In set-up, and so without a name, or gone, except for work of the
 * storage. */
static bool is_no_user(const json_t *sess)
{
	return !strcmp(get_string(sess, "name"), "-") ||
	       (!count_paths(sess).all && !json_array_size(json_object_get(sess, "devices")));
}

bool status_is_well(const json_t *answer)
{
	char cell[TEXT_CELL];
	json_t *sess, *dev;
	size_t i, j;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		if (!is_no_user(sess) && strcmp(put_state(sess, NULL, cell), "up"))
			return false;
		json_array_foreach(json_object_get(sess, "devices"), j, dev) {
			if (strcmp(put_state(sess, dev, cell), "up"))
				return false;
		}
	}
	return true;
}

/* ---- cells ---- */

/* Write the member @name of the first path, and how many other values the other paths have.  Only
 * paths that are up count, unless none is up. */
static void put_of_paths(const json_t *sess, const char *name, char cell[TEXT_CELL])
{
	bool any = count_paths(sess).up;
	const char *first = NULL;
	unsigned others = 0;
	json_t *path, *seen = json_object();
	size_t i, len;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *value = get_string(path, name);

		if ((any && strcmp(get_string(path, "state"), "connected")) ||
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

static void put_session(const json_t *sess, const json_t *dev, char (*row)[TEXT_CELL])
{
	put_state(sess, dev, row[COL_STATE]);
	text_safe(get_string(sess, "name"), row[COL_SESSION], TEXT_CELL);
	put_of_paths(sess, "peer", row[COL_PEER]);
	put_of_paths(sess, "transport", row[COL_TRANSPORT]);
}

/* Add up the counters of all operations of @ex. */
static void add_up(const json_t *ex, struct sums *sums)
{
	json_t *op, *n;
	const char *name;
	size_t i;

	memset(sums, 0, sizeof(*sums));
	json_object_foreach(json_object_get(ex, "stats"), name, op) {
		sums->count += get_number(op, "count");
		sums->bytes += get_number(op, "bytes");
		sums->errors += get_number(op, "errors");
		json_array_foreach(json_object_get(op, "log2_ns"), i, n) {
			if (i < HIST_BUCKETS)
				counter_add(&sums->latency.n[i], (uint64_t)json_integer_value(n));
		}
	}
}

/* Is @now the continuation of @then? If the counters were reset in between, all of @now is newer
 * than @then. */
static bool went_on(const struct sums *now, const struct sums *then)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (counter_get(&now->latency.n[i]) < counter_get(&then->latency.n[i]))
			return false;
	}
	return now->count >= then->count && now->bytes >= then->bytes &&
		now->errors >= then->errors;
}

static void put_rates(const json_t *ex, const json_t *before, uint64_t ns, char (*row)[TEXT_CELL])
{
	struct sums now, then;

	add_up(ex, &now);
	add_up(before, &then);
	snprintf(row[COL_ERR], TEXT_CELL, "%llu", (unsigned long long)now.errors);
	if (went_on(&now, &then)) {
		now.count -= then.count;
		now.bytes -= then.bytes;
		hist_add(&now.latency, &then.latency, -1);
	}
	snprintf(row[COL_IOPS], TEXT_CELL, "%.0f", ns ? (double)now.count * 1e9 / (double)ns : 0);
	snprintf(row[COL_MBS], TEXT_CELL, "%.1f", ns ? (double)now.bytes * 1e3 / (double)ns : 0);
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

	text_safe(get_string(ex, "name"), row[COL_EXPORT], TEXT_CELL);
	text_bytes(get_number(ex, "size"), row[COL_SIZE], TEXT_CELL);
	text_safe(get_string(ex, "mode"), row[COL_MODE], TEXT_CELL);
	if (first)
		put_rates(ex, find_export(t->before, get_string(ex, "name")), t->ns, row);
	for (unsigned col = COL_NUMBERS; !first && col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "\"");
	return row;
}

static void add_users(struct table *t, const json_t *ex)
{
	json_t *sess, *dev;
	bool first = true;
	size_t i, j;

	json_array_foreach(json_object_get(t->after, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "devices"), j, dev) {
			char (*row)[TEXT_CELL];

			if (strcmp(get_string(dev, "export"), get_string(ex, "name")))
				continue;
			row = add_export_row(t, ex, first);
			text_safe(json_is_true(json_object_get(dev, "read_only")) ? "ro" :
				  get_string(dev, "access_mode"), row[COL_MODE], TEXT_CELL);
			put_session(sess, dev, row);
			first = false;
		}
	}
	if (first)
		add_export_row(t, ex, true);
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
		.before = before,
		.after = after,
		.ns = get_number(after, "now_ns") - get_number(before, "now_ns"),
	};
	char (*row)[TEXT_CELL];
	json_t *ex, *sess;
	size_t i;

	if (!t.cells)
		return;
	row = add_row(&t);
	for (unsigned col = 0; col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "%s", heads[col]);
	json_array_foreach(json_object_get(after, "exports"), i, ex) {
		/* A client has an export of this name for each mode. */
		if (find_export(after, get_string(ex, "name")) == ex)
			add_users(&t, ex);
	}
	json_array_foreach(json_object_get(after, "sessions"), i, sess) {
		if (!json_array_size(json_object_get(sess, "devices")) && !is_no_user(sess))
			put_session(sess, NULL, add_row(&t));
	}
	text_table((const char (*)[TEXT_CELL])t.cells, t.nrows, NCOLUMNS, COL_NUMBERS, 0);
	free(t.cells);
}
