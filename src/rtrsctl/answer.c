/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

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

void answer_index_add(json_t *index, const char *key, json_t *item)
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

bool answer_is_server(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "rtrs-server");
}

bool answer_is_plugin(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "nbdkit-rtrs-plugin");
}
