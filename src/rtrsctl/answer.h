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
/* Add @item to @index unless @key is there. */
void answer_index_add(json_t *index, const char *key, json_t *item);
/* True if @answer is of an rtrs-server, false for a client. */
bool answer_is_server(const json_t *answer);
/* True if @answer is of the plugin of nbdkit. */
bool answer_is_plugin(const json_t *answer);

#endif
