/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Rates and latencies are those of the time between the two answers; sizes, users
 * and errors those of the later one. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "status.h"
#include "text.h"
#include "util.h"

static const char *const heads[] = {
	"EXPORT", "SIZE", "MODE", "SESSION", "PEER", "TRANSPORT", "IOPS", "MB/s", "p50", "p99", "ERR",
};

#define COLUMNS ARRAY_SIZE(heads)
#define NUMBERS 6			/* the first column that is one */

struct sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

static const char *string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "-";
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* The export of @answer that is called @name, or NULL. */
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

/* Of sessions that have @ex open: the one, or how many. */
static void put_peer(const json_t *answer, const json_t *ex, char (*cells)[TEXT_CELL])
{
	const json_t *user = NULL, *path;
	size_t i, j, nsessions = 0, npaths = 0;
	json_t *sess, *dev;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "devices"), j, dev) {
			if (strcmp(string(dev, "export"), string(ex, "name")))
				continue;
			user = sess;
			nsessions++;
			npaths += json_array_size(json_object_get(sess, "paths"));
		}
	}
	path = nsessions == 1 ? json_array_get(json_object_get(user, "paths"), 0) : NULL;
	if (nsessions <= 1)
		text_safe(string(user, "name"), cells[0], TEXT_CELL);
	else
		snprintf(cells[0], TEXT_CELL, "%zu sessions", nsessions);
	if (npaths <= 1)
		text_safe(string(path, "src_addr"), cells[1], TEXT_CELL);
	else
		snprintf(cells[1], TEXT_CELL, "%zu paths", npaths);
	text_safe(string(path, "transport"), cells[2], TEXT_CELL);
}

static void put_rates(const json_t *ex, const json_t *before, uint64_t ns, char (*cells)[TEXT_CELL])
{
	struct sums now, then;

	add_up(ex, &now);
	add_up(before, &then);
	snprintf(cells[4], TEXT_CELL, "%llu", (unsigned long long)now.errors);
	/* Somebody has reset them in between: what there is now is newer than that. */
	if (now.count >= then.count && now.bytes >= then.bytes) {
		now.count -= then.count;
		now.bytes -= then.bytes;
		hist_sub(&now.latency, &then.latency);
	}
	snprintf(cells[0], TEXT_CELL, "%.0f", ns ? (double)now.count * 1e9 / (double)ns : 0);
	snprintf(cells[1], TEXT_CELL, "%.1f", ns ? (double)now.bytes * 1e3 / (double)ns : 0);
	text_time(hist_quantile(&now.latency, 500), cells[2], TEXT_CELL);
	text_time(hist_quantile(&now.latency, 990), cells[3], TEXT_CELL);
}

void status_print(const json_t *before, const json_t *after)
{
	const json_t *exports = json_object_get(after, "exports");
	size_t i, nrows = json_array_size(exports) + 1;
	char (*cells)[TEXT_CELL] = calloc(nrows * COLUMNS, TEXT_CELL);
	uint64_t ns = number(after, "now_ns") - number(before, "now_ns");
	json_t *ex;

	if (!cells)
		return;
	for (unsigned col = 0; col < COLUMNS; col++)
		snprintf(cells[col], TEXT_CELL, "%s", heads[col]);
	json_array_foreach(exports, i, ex) {
		char (*row)[TEXT_CELL] = &cells[(i + 1) * COLUMNS];

		text_safe(string(ex, "name"), row[0], TEXT_CELL);
		text_bytes(number(ex, "size"), row[1], TEXT_CELL);
		text_safe(string(ex, "mode"), row[2], TEXT_CELL);
		put_peer(after, ex, &row[3]);
		put_rates(ex, find_export(before, string(ex, "name")), ns, &row[NUMBERS]);
	}
	text_table((const char (*)[TEXT_CELL])cells, (unsigned)nrows, COLUMNS, NUMBERS, 0);
	free(cells);
}
