/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"

const char *answer_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && *text ? text : "-";
}

uint64_t answer_number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* Add @item to @index unless @key is there. */
static void answer_index_add(json_t *index, const char *key, json_t *item)
{
	if (!json_object_get(index, key))
		json_object_set(index, key, item);
}

json_t *answer_index(const json_t *answer, const char *list, const char *member)
{
	json_t *index = json_object(), *item;
	size_t i;

	json_array_foreach(json_object_get(answer, list), i, item)
		answer_index_add(index, answer_string(item, member), item);
	return index;
}

/* A name has no control characters. */
static const char *export_key(const json_t *id, const char *name, char key[ANSWER_KEY])
{
	if (json_is_integer(id))
		snprintf(key, ANSWER_KEY, "\n%lld", (long long)json_integer_value(id));
	else
		snprintf(key, ANSWER_KEY, "%s", name);
	return key;
}

const char *answer_export_key(const json_t *ex, char key[ANSWER_KEY])
{
	return export_key(json_object_get(ex, "id"), answer_string(ex, "name"), key);
}

const char *answer_device_key(const json_t *dev, char key[ANSWER_KEY])
{
	return export_key(json_object_get(dev, "export_id"), answer_string(dev, "export"), key);
}

json_t *answer_index_exports(const json_t *answer)
{
	json_t *index = json_object(), *ex;
	char key[ANSWER_KEY];
	size_t i;

	json_array_foreach(json_object_get(answer, "exports"), i, ex)
		answer_index_add(index, answer_export_key(ex, key), ex);
	return index;
}

bool answer_is_server(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "rtrs-server");
}

bool answer_is_plugin(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "nbdkit-rtrs-plugin");
}

/* ---- rates ---- */

void answer_rate_add(struct rate_sums *sums, const json_t *object)
{
	json_t *op, *n;
	const char *name;
	size_t i;

	json_object_foreach(json_object_get(object, "stats"), name, op) {
		sums->count += answer_number(op, "count");
		sums->bytes += answer_number(op, "bytes");
		sums->errors += answer_number(op, "errors");
		json_array_foreach(json_object_get(op, "log2_ns"), i, n) {
			if (i < HIST_BUCKETS)
				counter_add(&sums->latency.n[i], (uint64_t)json_integer_value(n));
		}
	}
}

/* Is @now the continuation of @then? */
static bool went_on(const struct rate_sums *now, const struct rate_sums *then)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (counter_get(&now->latency.n[i]) < counter_get(&then->latency.n[i]))
			return false;
	}
	return now->count >= then->count && now->bytes >= then->bytes &&
		now->errors >= then->errors;
}

/* Subtract from @now the older counters @then.  If the counters were reset in between, all of @now
 * is newer than @then. */
static void rate_since(struct rate_sums *now, const struct rate_sums *then)
{
	if (!went_on(now, then))
		return;
	now->count -= then->count;
	now->bytes -= then->bytes;
	now->errors -= then->errors;
	hist_add(&now->latency, &then->latency, -1);
}

void answer_rate_print(const struct rate_sums *sums, uint64_t ns, char iops[TEXT_CELL],
		       char mbs[TEXT_CELL])
{
	snprintf(iops, TEXT_CELL, "%.0f", ns ? (double)sums->count * 1e9 / (double)ns : 0);
	snprintf(mbs, TEXT_CELL, "%.1f", ns ? (double)sums->bytes * 1e3 / (double)ns : 0);
}

struct rate_sums answer_rate_export(const json_t *before, const json_t *ex)
{
	struct rate_sums now = { 0 }, then = { 0 };
	char key[ANSWER_KEY];

	answer_rate_add(&now, ex);
	answer_rate_add(&then, json_object_get(before, answer_export_key(ex, key)));
	rate_since(&now, &then);
	return now;
}

/* ---- paths ---- */

#define PATH_KEY 1024

/* A text that two answers have in common for @path of @sess.  The counters of a server's path begin
 * again with a reconnect, which has another port of the client.  Those of a client's path go on. */
static const char *path_key(const json_t *sess, const json_t *path, char key[PATH_KEY])
{
	snprintf(key, PATH_KEY, "%s\n%s\n%s", answer_string(sess, "uuid"),
		 answer_string(path, "name"),
		 json_object_get(path, "stats") ? answer_string(path, "src_addr") : "");
	return key;
}

json_t *answer_rate_index_paths(const json_t *answer)
{
	json_t *index = json_object(), *sess, *path;
	char key[PATH_KEY];
	size_t i, j;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "paths"), j, path)
			answer_index_add(index, path_key(sess, path, key), path);
	}
	return index;
}

static void path_add(struct rate_sums *sums, const json_t *path)
{
	answer_rate_add(sums, path);
	sums->count += answer_number(path, "reads") + answer_number(path, "writes");
	sums->bytes += answer_number(path, "read_bytes") + answer_number(path, "write_bytes");
}

struct rate_sums answer_rate_path(const json_t *before, const json_t *sess, const json_t *path)
{
	struct rate_sums now = { 0 }, then = { 0 };
	char key[PATH_KEY];

	path_add(&now, path);
	path_add(&then, json_object_get(before, path_key(sess, path, key)));
	rate_since(&now, &then);
	return now;
}

struct rate_sums answer_rate_session(const json_t *before, const json_t *sess)
{
	struct rate_sums sum = { 0 };
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		struct rate_sums one = answer_rate_path(before, sess, path);

		sum.count += one.count;
		sum.bytes += one.bytes;
		sum.errors += one.errors;
		hist_add(&sum.latency, &one.latency, 1);
	}
	return sum;
}

/* ---- connections of NBD ---- */

static void nbd_add(struct rate_sums *sums, const json_t *client)
{
	path_add(sums, client);
	sums->count += answer_number(client, "others");
}

struct rate_sums answer_rate_nbd(const json_t *then, const json_t *client)
{
	struct rate_sums now = { 0 }, before = { 0 };

	nbd_add(&now, client);
	nbd_add(&before, then);
	rate_since(&now, &before);
	return now;
}
