/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of an answer.  A program of another version may lack a member, or give another type to a
 * member, which is as good as empty then.  Pure. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

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
/* Add @item to @index unless @key is there. */
void answer_index_add(json_t *index, const char *key, json_t *item);
/* True if @answer is of an rtrs-server, false for a client. */
bool answer_is_server(const json_t *answer);
/* True if @answer is of the plugin of nbdkit. */
bool answer_is_plugin(const json_t *answer);

#endif
