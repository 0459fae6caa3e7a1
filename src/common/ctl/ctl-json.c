/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "ctl-json.h"
#include "mask.h"

json_t *ctl_json_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	mask_control(copy);
	string = json_string(copy);
	free(copy);
	return string;
}

bool ctl_json_add(json_t *array, json_t *item)
{
	return array && !json_array_append_new(array, item);
}

json_t *ctl_json_whole(json_t *value, bool complete)
{
	if (complete)
		return value;
	json_decref(value);
	return NULL;
}

json_t *ctl_json_with(json_t *object, json_t *more)
{
	int rc = object && more ? json_object_update(object, more) : -1;

	json_decref(more);
	return ctl_json_whole(object, !rc);
}
