/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice of a form: a line for people, the line of "check", or JSON.  One thread. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "check.h"
#include "ctl-json.h"
#include "find.h"
#include "say.h"
#include "text.h"

#define PLAIN_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static bool json, check;

void say_json(void)
{
	json = true;
}

void say_check(void)
{
	check = true;
}

static void print_json(json_t *object)
{
	text_json(object);
	fflush(stdout);
}

int say_error(int status, const char *fmt, ...)
{
	static char text[TEXT_MAX_BYTES], safe[TEXT_MAX_BYTES];
	va_list ap;
	char *line;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (json) {
		print_json(json_pack("{s:b,s:o}", "ok", 0, "error", ctl_json_text(text)));
	} else if (check) {
		printf("RTRS UNKNOWN - %s\n", text_safe(text, safe, sizeof(safe)));
	} else {
		for (char *rest = text; (line = strsep(&rest, "\n"));)
			fprintf(stderr, "rtrsctl: %s\n", text_safe(line, safe, sizeof(safe)));
	}
	return check ? CHECK_UNKNOWN : status;
}

/* False: a shell would not take @name as it stands, or another program of @found has it, too. */
static bool name_chooses(const struct found *found, const char *name)
{
	unsigned n = 0;

	if (!name || !*name || strspn(name, PLAIN_LETTERS) != strlen(name))
		return false;
	for (size_t i = 0; i < found->n; i++)
		n += found->at[i].name && !strcmp(found->at[i].name, name);
	return n == 1;
}

int say_choice(const char *text, const char *command, const struct found *found)
{
	json_t *names = json_array();
	static char line[4500];		/* the longest contains the name of a directory */

	if (!json)
		say_error(EXIT_USAGE, "%s", text);
	for (size_t i = 0; i < found->n; i++) {
		text_safe(found->at[i].path, line, sizeof(line));
		if (json)
			json_array_append_new(names, ctl_json_text(line));
		else if (name_chooses(found, found->at[i].name))
			fprintf(stderr, "  rtrsctl --name=%s %s\n", found->at[i].name, command);
		else
			fprintf(stderr, "  rtrsctl --socket=%s %s\n", line, command);
	}
	if (json)
		print_json(json_pack("{s:b,s:o,s:O}", "ok", 0, "error", ctl_json_text(text),
				     "sockets", names));
	json_decref(names);
	return EXIT_USAGE;
}
