/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "explain.h"
#include "text.h"

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

static void print_end(const json_t *answer)
{
	char client[512], export[512], why[128];

	text_safe(answer_string(answer, "client"), client, sizeof(client));
	text_safe(answer_string(answer, "export"), export, sizeof(export));
	name_checks(answer, "refuses", why, sizeof(why));
	if (explain_may(answer)) {
		printf("%s may open %s (%s)\n", client, export, answer_string(answer, "mode"));
		return;
	}
	if (*why) {
		printf("%s may not open %s: %s\n", client, export, why);
		return;
	}
	name_checks(answer, "depends", why, sizeof(why));
	printf("whether %s may open %s depends: %s\n", client, export, why);
}

/* The last refusal of the client, which the server keeps. */
static void print_last(const json_t *answer)
{
	const json_t *last = json_object_get(answer, "last_refusal");
	uint64_t ago_ns = answer_number(last, "ago_ns");
	char ago[32], why[512];

	if (!last)
		return;
	printf("last refused %s ago, from %s as %s: %s\n",
	       ago_ns ? text_time(ago_ns, ago, sizeof(ago)) : "0 s",
	       answer_string(last, "from"),
	       json_string_length(json_object_get(last, "identity")) ?
	       answer_string(last, "identity") : "a client without a name",
	       text_safe(answer_string(last, "reason"), why, sizeof(why)));
}

void explain_print(const json_t *answer)
{
	const json_t *check;
	char line[LINE_LEN];
	size_t i;

	json_array_foreach(json_object_get(answer, "checks"), i, check)
		printf("%-8s %-9s %s\n", answer_string(check, "verdict"),
		       answer_string(check, "check"),
		       text_safe(answer_string(check, "text"), line, sizeof(line)));
	print_last(answer);
	print_end(answer);
}
