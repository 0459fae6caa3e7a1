/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <stdlib.h>
#include <string.h>

#include "ctl-call.h"
#include "ctl-json.h"
#include "util.h"

void ctl_call_done(struct ctl_client *client)
{
	ctl_answer(client, json_object());
}

/* {"changes": [...]} with the lines of @text. */
static json_t *changes_json(const char *text)
{
	json_t *lines = json_array();

	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		json_array_append_new(lines, ctl_json_text(line ? line : ""));
		free(line);
		text += len + (text[len] == '\n');
	}
	return json_pack("{s:o}", "changes", lines);
}

void ctl_call_ended(void *client, int rc, const char *text)
{
	size_t len = strlen(text);

	if (rc)		/* without the end of the last line */
		ctl_refuse(client, "%.*s", (int)(len - (len && text[len - 1] == '\n')), text);
	else
		ctl_answer(client, changes_json(text));
}

static bool takes(const struct ctl_call *c, const char *member)
{
	return (c->member && !strcmp(member, c->member)) ||
	       (c->second && !strcmp(member, c->second));
}

/* The string @member of @command; NULL: not given. */
static const char *value_of(const json_t *command, const char *member)
{
	return member ? json_string_value(json_object_get(command, member)) : NULL;
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
		if (!takes(c, name)) {
			ctl_refuse(client, "%s: takes no \"%s\"", c->name, name);
			return false;
		}
		if (!json_is_string(value)) {
			ctl_refuse(client, "%s: \"%s\" must be a string", c->name, name);
			return false;
		}
	}
	return true;
}

/* True if @name is that of @c, or has " force" after it, which @force says. */
static bool call_matches(const struct ctl_call *c, const char *name, bool *force)
{
	size_t len = strlen(c->name);

	*force = c->takes_force && !strcmp(name + MIN(len, strlen(name)), " force");
	return *force ? !strncmp(name, c->name, len) : !strcmp(name, c->name);
}

/* The entry of @calls called @name; NULL: none. */
static const struct ctl_call *call_find(const char *name, const struct ctl_call *calls, size_t n,
					bool *force)
{
	for (size_t i = 0; i < n; i++) {
		if (call_matches(&calls[i], name, force))
			return &calls[i];
	}
	return NULL;
}

bool ctl_call_has(const json_t *command, const struct ctl_call *calls, size_t n)
{
	const char *name = value_of(command, "command");
	bool force;

	return name && call_find(name, calls, n, &force);
}

void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg)
{
	const json_t *member = json_object_get(command, "command");
	const char *name = json_string_value(member);
	const struct ctl_call *c;
	bool force;

	if (!name) {
		ctl_refuse(client, "\"command\" %s: expected one like {\"command\":\"%s\"}",
			   member ? "is no string" : "is missing", calls[0].name);
		return;
	}
	c = call_find(name, calls, n, &force);
	if (!c) {
		ctl_refuse(client, "%s has no command '%s'", program, name);
		return;
	}
	if (!call_check(client, command, c))
		return;
	if (c->fn_change)
		c->fn_change(client, c->change, value_of(command, c->member), force, arg);
	else if (c->fn_two)
		c->fn_two(client, value_of(command, c->member), value_of(command, c->second), arg);
	else
		c->fn(client, value_of(command, c->member), arg);
}
