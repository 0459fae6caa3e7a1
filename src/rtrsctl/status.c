/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Rates and latencies are those of the time between the two answers; all else is
 * that of the later one.  A row is an export and a session that has it open, an export that nobody
 * has open, or a session that has nothing open. */
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
#define COL_NUMBERS COL_IOPS		/* the first column that is one */

static const char *const heads[NCOLUMNS] = {
	"EXPORT", "SIZE", "MODE", "STATE", "SESSION", "PEER", "TRANSPORT", "IOPS", "MB/s", "p50",
	"p99", "ERR",
};

struct table {
	char (*cells)[TEXT_CELL];
	unsigned nrows;
	const json_t *before, *after;
	uint64_t ns;			/* between them */
};

struct sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

static const char *string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && *text ? text : "-";
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* The first export of @answer that is called @name, or NULL. */
static json_t *find_export(const json_t *answer, const char *name)
{
	const json_t *exports = json_object_get(answer, "exports");
	json_t *ex;
	size_t i;

	json_array_foreach(exports, i, ex) {
		if (!strcmp(string(ex, "name"), name))
			return ex;
	}
	return NULL;
}

/* ---- state ---- */

struct count {
	unsigned up, all;
};

/* The paths of @sess.  What is left of a lost path of a server while its storage works is none. */
static struct count count_paths(const json_t *sess)
{
	struct count n = { 0 };
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *state = string(path, "state");

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

/* How @sess does, and, unless that is NULL, its device @dev.  Returns @cell, which is "up" when
 * nothing is wrong. */
static const char *put_state(const json_t *sess, const json_t *dev, char cell[TEXT_CELL])
{
	const char *state = string(sess, "state"), *open = dev ? string(dev, "state") : "open";
	struct count paths = count_paths(sess);
	char since[32];

	if (!strcmp(state, "down") || !strcmp(state, "expired")) {
		put_duration(number(sess, "down_ns"), since, sizeof(since));
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

/* Is @sess of no interest: in set-up and so without a name, or gone but for what its storage still
 * works on? */
static bool is_no_user(const json_t *sess)
{
	return !strcmp(string(sess, "name"), "-") ||
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

/* The member @name of the paths of @sess that are up, or of all if none is: the first, and how many
 * others there are. */
static void put_of_paths(const json_t *sess, const char *name, char cell[TEXT_CELL])
{
	bool any = count_paths(sess).up;
	const char *first = NULL;
	unsigned others = 0;
	json_t *path, *seen = json_object();
	size_t i, len;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *value = string(path, name);

		if ((any && strcmp(string(path, "state"), "connected")) ||
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
	text_safe(string(sess, "name"), row[COL_SESSION], TEXT_CELL);
	put_of_paths(sess, "peer", row[COL_PEER]);
	put_of_paths(sess, "transport", row[COL_TRANSPORT]);
}

/* Of all operations of @ex. */
static void add_up(const json_t *ex, struct sums *sums)
{
	json_t *op, *n;
	const char *name;
	size_t i;

	memset(sums, 0, sizeof(*sums));
	json_object_foreach(json_object_get(ex, "stats"), name, op) {
		sums->count += number(op, "count");
		sums->bytes += number(op, "bytes");
		sums->errors += number(op, "errors");
		json_array_foreach(json_object_get(op, "log2_ns"), i, n) {
			if (i < HIST_BUCKETS)
				counter_add(&sums->latency.n[i], (uint64_t)json_integer_value(n));
		}
	}
}

/* Or somebody has reset the counters in between: then what there is @now is newer than @then. */
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

/* A row of "-". */
static char (*add_row(struct table *t))[TEXT_CELL]
{
	char (*row)[TEXT_CELL] = &t->cells[(size_t)t->nrows++ * NCOLUMNS];

	for (unsigned col = 0; col < NCOLUMNS; col++)
		snprintf(row[col], TEXT_CELL, "-");
	return row;
}

/* A row of @ex, with its mode where nobody has it open.  Counters are not kept by session, so the
 * first row of an export has those of all. */
static char (*add_export(struct table *t, const json_t *ex, bool first))[TEXT_CELL]
{
	char (*row)[TEXT_CELL] = add_row(t);

	text_safe(string(ex, "name"), row[COL_EXPORT], TEXT_CELL);
	text_bytes(number(ex, "size"), row[COL_SIZE], TEXT_CELL);
	text_safe(string(ex, "mode"), row[COL_MODE], TEXT_CELL);
	if (first)
		put_rates(ex, find_export(t->before, string(ex, "name")), t->ns, row);
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

			if (strcmp(string(dev, "export"), string(ex, "name")))
				continue;
			row = add_export(t, ex, first);
			text_safe(json_is_true(json_object_get(dev, "read_only")) ? "ro" :
				  string(dev, "access_mode"), row[COL_MODE], TEXT_CELL);
			put_session(sess, dev, row);
			first = false;
		}
	}
	if (first)
		add_export(t, ex, true);
}

/* As many as status_print() can make. */
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
		.ns = number(after, "now_ns") - number(before, "now_ns"),
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
		/* A client has one for each mode. */
		if (find_export(after, string(ex, "name")) == ex)
			add_users(&t, ex);
	}
	json_array_foreach(json_object_get(after, "sessions"), i, sess) {
		if (!json_array_size(json_object_get(sess, "devices")) && !is_no_user(sess))
			put_session(sess, NULL, add_row(&t));
	}
	text_table((const char (*)[TEXT_CELL])t.cells, t.nrows, NCOLUMNS, COL_NUMBERS, 0);
	free(t.cells);
}
