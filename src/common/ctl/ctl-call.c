/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <string.h>

#include "ctl-call.h"

void ctl_call_done(struct ctl_client *client)
{
	ctl_answer(client, json_object());
}

static bool call_check(struct ctl_client *client, const json_t *command, const struct ctl_call *c)
{
	const char *name;
	json_t *value;

	if (c->needed && !json_object_get(command, c->member)) {
		ctl_refuse(client, "%s: needs \"%s\"", c->name, c->member);
		return false;
	}
	json_object_foreach((json_t *)command, name, value) {
		if (!strcmp(name, "command"))
			continue;
		if (!c->member || strcmp(name, c->member)) {
			ctl_refuse(client, "%s: takes no \"%s\"", c->name, name);
			return false;
		}
		if (!json_is_string(value)) {
			ctl_refuse(client, "%s: \"%s\" is to be a string", c->name, name);
			return false;
		}
	}
	return true;
}

void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg)
{
	const json_t *member = json_object_get(command, "command");
	const char *name = json_string_value(member);

	if (!name) {
		ctl_refuse(client, "\"command\" %s: expected one like {\"command\":\"%s\"}",
			   member ? "is no string" : "is missing", calls[0].name);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct ctl_call *c = &calls[i];

		if (strcmp(name, c->name))
			continue;
		if (call_check(client, command, c))
			c->fn(client,
			      c->member ? json_string_value(json_object_get(command, c->member)) :
						  NULL, arg);
		return;
	}
	ctl_refuse(client, "%s has no command '%s'", program, name);
}
