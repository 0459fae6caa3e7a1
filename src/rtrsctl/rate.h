/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of two answers as rates.  Pure. */
#ifndef RATE_H
#define RATE_H

#include <stdint.h>

#include <jansson.h>

#include "hist.h"
#include "text.h"

/* All operations together. */
struct rate_sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

/* Add the counters in "stats" of @object, an export or a path of a server; NULL: nothing. */
void rate_add(struct rate_sums *sums, const json_t *object);
/* The requests on the export @ex since the answer of which @before is the index
 * (answer_index_exports()). */
struct rate_sums rate_export(const json_t *before, const json_t *ex);
/* Index the paths of all sessions of @answer for the next two.  A new reference. */
json_t *rate_index_paths(const json_t *answer);
/* What @path of the session @sess has done since the answer of which @before is the index.  A
 * client has no latency of a path. */
struct rate_sums rate_path(const json_t *before, const json_t *sess, const json_t *path);
/* The same for all paths of @sess.  A path lost between the two answers takes the count of the last
 * requests along. */
struct rate_sums rate_session(const json_t *before, const json_t *sess);
/* What the NBD connection @client has done since @then, the same one in an older answer; NULL: it
 * is newer. */
struct rate_sums rate_nbd(const json_t *then, const json_t *client);
/* Write the rates of @sums in @ns: requests and megabytes a second. */
void rate_print(const struct rate_sums *sums, uint64_t ns, char iops[TEXT_CELL],
		char mbs[TEXT_CELL]);

#endif
