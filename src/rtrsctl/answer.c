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

bool answer_is_server(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "rtrs-server");
}

bool answer_is_nbd(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "rtrs-nbd");
}

/* ---- secrets ---- */

const struct answer_secret answer_secrets[ANSWER_SECRETS] = {
	{ "tls_psk", "tls-psk", "tls-psk", false, false },
	{ "tls_certificates", "tls-certificates", "tls-certificates", false, true },
	{ "auth_psk", "auth-psk", "auth-psk", false, false },
	{ "tls_psk", "--tls-psk", "nbd-tls-psk", true, false },
	{ "tls_certificates", "--tls-certificates", "nbd-tls-certificates", true, true },
};

const json_t *answer_secret_object(const json_t *answer, const struct answer_secret *secret)
{
	return secret->nbd ? json_object_get(answer, "nbd") : answer;
}

const char *answer_secret_path(const json_t *answer, const struct answer_secret *secret)
{
	return json_string_value(json_object_get(answer_secret_object(answer, secret),
						 secret->member));
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

/* ---- two answers ---- */

/* Add @item to @index by @key.  False: the index has the key. */
static bool index_add(json_t *index, const char *key, json_t *item)
{
	return !json_object_get(index, key) && !json_object_set(index, key, item);
}

/* The exports of @answer by answer_export_key(), the first of each; @firsts, unless NULL, gets
 * these, too. */
static json_t *index_exports(const json_t *answer, json_t *firsts)
{
	json_t *index = json_object(), *ex;
	char key[ANSWER_KEY];
	size_t i;

	json_array_foreach(json_object_get(answer, "exports"), i, ex) {
		if (index_add(index, answer_export_key(ex, key), ex))
			json_array_append(firsts, ex);
	}
	return index;
}

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

static json_t *index_paths(const json_t *answer)
{
	json_t *index = json_object(), *sess, *path;
	char key[PATH_KEY];
	size_t i, j;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "paths"), j, path)
			index_add(index, path_key(sess, path, key), path);
	}
	return index;
}

/* The NBD connections of @answer: a name is never used again. */
static json_t *index_clients(const json_t *answer)
{
	json_t *index = json_object(), *client;
	size_t i;

	json_array_foreach(json_object_get(answer, "clients"), i, client)
		index_add(index, answer_string(client, "name"), client);
	return index;
}

void answer_pair_init(struct answer_pair *pair, const json_t *before, const json_t *after)
{
	*pair = (struct answer_pair){
		.after = after,
		.exports = json_array(),
		.exports_before = index_exports(before, NULL),
		.paths_before = index_paths(before),
		.clients_before = index_clients(before),
		.ns = answer_number(after, "now_ns") - answer_number(before, "now_ns"),
	};
	json_decref(index_exports(after, pair->exports));
}

void answer_pair_fini(struct answer_pair *pair)
{
	json_decref(pair->exports);
	json_decref(pair->exports_before);
	json_decref(pair->paths_before);
	json_decref(pair->clients_before);
}

struct rate_sums answer_rate_export(const struct answer_pair *pair, const json_t *ex)
{
	struct rate_sums now = { 0 }, then = { 0 };
	char key[ANSWER_KEY];

	answer_rate_add(&now, ex);
	answer_rate_add(&then, json_object_get(pair->exports_before, answer_export_key(ex, key)));
	rate_since(&now, &then);
	return now;
}

/* A path of a client has counters of its own, and so has an NBD connection. */
static void path_add(struct rate_sums *sums, const json_t *path)
{
	answer_rate_add(sums, path);
	sums->count += answer_number(path, "reads") + answer_number(path, "writes") +
		       answer_number(path, "others");
	sums->bytes += answer_number(path, "read_bytes") + answer_number(path, "write_bytes");
}

/* What @now, a path or a connection, has done since @then, the same one; NULL: it is newer. */
static struct rate_sums rate_of_path(const json_t *now, const json_t *then)
{
	struct rate_sums sums = { 0 }, before = { 0 };

	path_add(&sums, now);
	path_add(&before, then);
	rate_since(&sums, &before);
	return sums;
}

struct rate_sums answer_rate_path(const struct answer_pair *pair, const json_t *sess,
				  const json_t *path)
{
	char key[PATH_KEY];

	return rate_of_path(path, json_object_get(pair->paths_before, path_key(sess, path, key)));
}

struct rate_sums answer_rate_nbd(const struct answer_pair *pair, const json_t *client)
{
	return rate_of_path(client, json_object_get(pair->clients_before,
						    answer_string(client, "name")));
}

void answer_rate_sum(struct rate_sums *sum, const struct rate_sums *one)
{
	sum->count += one->count;
	sum->bytes += one->bytes;
	sum->errors += one->errors;
	hist_add(&sum->latency, &one->latency, 1);
}

struct rate_sums answer_rate_session(const struct answer_pair *pair, const json_t *sess)
{
	struct rate_sums sum = { 0 };
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		struct rate_sums one = answer_rate_path(pair, sess, path);

		answer_rate_sum(&sum, &one);
	}
	return sum;
}
