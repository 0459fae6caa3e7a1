/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "text.h"
#include "views.h"

/* Of a line; the server cuts its own at less. */
#define LINE_LEN 2048u

bool explain_may(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "may_open"));
}

/* The checks that @verdict is of, "key, rights"; "": none. */
static void name_checks(const json_t *answer, const char *verdict, char *buf, size_t len)
{
	const json_t *check;
	size_t i, at = 0;

	*buf = '\0';
	json_array_foreach(json_object_get(answer, "checks"), i, check) {
		if (!strcmp(answer_string(check, "verdict"), verdict) && at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
					       answer_string(check, "check"));
	}
}

static const char *member(const json_t *object, const char *name, char *buf, size_t len)
{
	return text_safe(answer_string(object, name), buf, len);
}

static void print_end(const json_t *answer)
{
	char client[512], export[512], mode[32], checks[128], why[128];

	member(answer, "client", client, sizeof(client));
	member(answer, "export", export, sizeof(export));
	if (explain_may(answer)) {
		printf("%s may open %s (%s)\n", client, export,
		       member(answer, "mode", mode, sizeof(mode)));
		return;
	}
	name_checks(answer, "refuses", checks, sizeof(checks));
	if (*checks) {
		printf("%s may not open %s: %s\n", client, export,
		       text_safe(checks, why, sizeof(why)));
		return;
	}
	name_checks(answer, "depends", checks, sizeof(checks));
	printf("whether %s may open %s depends: %s\n", client, export,
	       text_safe(checks, why, sizeof(why)));
}

/* The last refusal of the client, which the server keeps. */
static void print_last(const json_t *answer)
{
	const json_t *last = json_object_get(answer, "last_refusal");
	bool named = json_string_length(json_object_get(last, "identity"));
	uint64_t ago_ns = answer_number(last, "ago_ns");
	char ago[32], from[128], who[256], why[512];

	if (!last)
		return;
	printf("last refused %s ago, from %s as %s: %s\n",
	       ago_ns ? text_time(ago_ns, ago, sizeof(ago)) : "0 s",
	       member(last, "from", from, sizeof(from)),
	       named ? member(last, "identity", who, sizeof(who)) : "a client without a name",
	       member(last, "reason", why, sizeof(why)));
}

static void print_check(const json_t *check)
{
	char verdict[16], name[16], text[LINE_LEN];

	printf("%-8s %-9s %s\n", member(check, "verdict", verdict, sizeof(verdict)),
	       member(check, "check", name, sizeof(name)),
	       member(check, "text", text, sizeof(text)));
}

void explain_print(const json_t *answer)
{
	const json_t *check;
	size_t i;

	json_array_foreach(json_object_get(answer, "checks"), i, check)
		print_check(check);
	print_last(answer);
	print_end(answer);
}
