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

json_t *answer_export(const json_t *answer, const char *name)
{
	json_t *ex;
	size_t i;

	json_array_foreach(json_object_get(answer, "exports"), i, ex) {
		if (!strcmp(answer_string(ex, "name"), name))
			return ex;
	}
	return NULL;
}

bool answer_is_server(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "rtrs-server");
}

bool answer_is_plugin(const json_t *answer)
{
	return !strcmp(answer_string(answer, "program"), "nbdkit-rtrs-plugin");
}
