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
/* A text that only @ex, an export of an answer, and what is open of it have: the export's number,
 * "id" of the export and "export_id" of what is open, because a removed export and its successor
 * may have one name; without a number the name.  Returns @key. */
#define ANSWER_KEY 256
const char *answer_export_key(const json_t *ex, char key[ANSWER_KEY]);
const char *answer_device_key(const json_t *dev, char key[ANSWER_KEY]);
/* True if @answer is of an rtrs-server, false for a client. */
bool answer_is_server(const json_t *answer);
/* True if @answer is of rtrs-nbd, which alone has the command "clients". */
bool answer_is_nbd(const json_t *answer);

/* ---- files of keys and directories of certificates, in an answer to "show" ---- */

struct answer_secret {
	const char *member;
	const char *option, *file_name;	/* of the command line, and in a file */
	bool nbd;			/* rtrs-nbd's, for NBD clients */
	bool certificates;
};

#define ANSWER_SECRETS 5
extern const struct answer_secret answer_secrets[ANSWER_SECRETS];
/* The object of @answer that has the members of @secret; NULL: none. */
const json_t *answer_secret_object(const json_t *answer, const struct answer_secret *secret);
/* The path of @secret; NULL: none. */
const char *answer_secret_path(const json_t *answer, const struct answer_secret *secret);

/* ---- counters of two answers as rates ---- */

/* All operations together. */
struct rate_sums {
	uint64_t count, bytes, errors;
	struct hist latency;
};

/* Two answers of one program, the later one for values, the earlier one for what has happened
 * since. */
struct answer_pair {
	const json_t *after;		/* the caller's */
	/* of @after, by answer_export_key() the first of each: a client has an export of one name
	 * for each mode */
	json_t *exports;
	json_t *exports_before, *paths_before, *clients_before;	/* private */
	uint64_t ns;			/* between the two answers */
};

void answer_pair_init(struct answer_pair *pair, const json_t *before, const json_t *after);
/* Free what answer_pair_init() has made. */
void answer_pair_fini(struct answer_pair *pair);

/* Add the counters in "stats" of @object, an export or a path of a server; NULL: nothing. */
void answer_rate_add(struct rate_sums *sums, const json_t *object);
/* Add @one to @sum. */
void answer_rate_sum(struct rate_sums *sum, const struct rate_sums *one);
/* The requests on the export @ex between the two answers. */
struct rate_sums answer_rate_export(const struct answer_pair *pair, const json_t *ex);
/* Those on @path of the session @sess.  A client has no latency of a path. */
struct rate_sums answer_rate_path(const struct answer_pair *pair, const json_t *sess,
				  const json_t *path);
/* The same for all paths of @sess.  A path lost between the two answers takes the count of the last
 * requests along. */
struct rate_sums answer_rate_session(const struct answer_pair *pair, const json_t *sess);
/* The requests of the NBD connection @client. */
struct rate_sums answer_rate_nbd(const struct answer_pair *pair, const json_t *client);

#endif
