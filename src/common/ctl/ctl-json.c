/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl-json.h"
#include "names.h"

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

json_t *ctl_json_uuid(const uint8_t id[16])
{
	char text[2 * 16 + 5], *to = text;

	for (unsigned i = 0; i < 16; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
	return ctl_json_text(text);
}

json_t *ctl_json_bits(uint32_t bits, const char *const names[], unsigned n)
{
	json_t *array = json_array();
	bool ok = true;

	for (unsigned i = 0; i < n; i++)
		ok = ok && (!(bits >> i & 1) || ctl_json_add(array, ctl_json_text(names[i])));
	return ctl_json_whole(array, ok);
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
