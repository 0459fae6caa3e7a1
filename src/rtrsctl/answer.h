/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of an answer.  A program of another version may lack a member, or give another type to a
 * member, which is as good as empty then.  Pure. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "counter.h"
#include "text.h"

/* The text of the member @name of @object; "-": no text, or an empty text.  Lives as long as
 * @object. */
const char *answer_string(const json_t *object, const char *name);
/* The number in the member @name of @object; 0: none. */
uint64_t answer_number(const json_t *object, const char *name);
/* The members of the array @list of @answer by their text @member, the first of each text: a client
 * has an export of one name for each mode.  A new reference. */
json_t *answer_index(const json_t *answer, const char *list, const char *member);
/* A text that only @ex, an export of an answer, and what is open of it have: the export's number,
 * "id" of the export and "export_id" of what is open, because a removed export and its successor
 * may have one name; without a number the name.  Returns @key. */
#define ANSWER_KEY 256
const char *answer_export_key(const json_t *ex, char key[ANSWER_KEY]);
const char *answer_device_key(const json_t *dev, char key[ANSWER_KEY]);
/* Index the exports of @answer by answer_export_key(), the first of each.  A new reference. */
json_t *answer_index_exports(const json_t *answer);
/* True if @answer is of an rtrs-server, false for a client. */
bool answer_is_server(const json_t *answer);
/* True if @answer is of the plugin of nbdkit. */
bool answer_is_plugin(const json_t *answer);

/* ---- counters of two answers as rates ---- */

/* All operations together. */
struct rate_sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

/* Add the counters in "stats" of @object, an export or a path of a server; NULL: nothing. */
void answer_rate_add(struct rate_sums *sums, const json_t *object);
/* The requests on the export @ex since the answer of which @before is the index
 * (answer_index_exports()). */
struct rate_sums answer_rate_export(const json_t *before, const json_t *ex);
/* Index the paths of all sessions of @answer for the next two.  A new reference. */
json_t *answer_rate_index_paths(const json_t *answer);
/* What @path of the session @sess has done since the answer of which @before is the index.  A
 * client has no latency of a path. */
struct rate_sums answer_rate_path(const json_t *before, const json_t *sess, const json_t *path);
/* The same for all paths of @sess.  A path lost between the two answers takes the count of the last
 * requests along. */
struct rate_sums answer_rate_session(const json_t *before, const json_t *sess);
/* What the NBD connection @client has done since @then, the same one in an older answer; NULL: it
 * is newer. */
struct rate_sums answer_rate_nbd(const json_t *then, const json_t *client);
/* Write the rates of @sums in @ns: requests and megabytes a second. */
void answer_rate_print(const struct rate_sums *sums, uint64_t ns, char iops[TEXT_CELL],
		       char mbs[TEXT_CELL]);

#endif
