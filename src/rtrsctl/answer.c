/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

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
