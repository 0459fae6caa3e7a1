/* SPDX-License-Identifier: BSD-3-Clause */
/* The findings of the doctor, and how they are printed. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "answer.h"
#include "ctl-json.h"
#include "doctor.h"
#include "text.h"
#include "util.h"

static const char *const words[CHECK_LEVELS] = {
	[CHECK_OK] = "ok", [CHECK_WARNING] = "warn", [CHECK_CRITICAL] = "bad",
};
static const char *const levels[CHECK_LEVELS] = {
	[CHECK_OK] = "OK", [CHECK_WARNING] = "WARNING", [CHECK_CRITICAL] = "CRITICAL",
};

void doctor_note(struct doctor *doctor, enum check_level level, const char *what, const char *fmt,
		 ...)
{
	char text[1536], safe[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_safe(text, safe, sizeof(safe));
	doctor->level = MAX(doctor->level, level);
	json_array_append_new(doctor->findings,
			      json_pack("{s:o,s:o,s:o,s:o}",
					"level", ctl_json_text(words[level]),
					"program", ctl_json_text(doctor->program ?
								 doctor->program : ""),
					"what", ctl_json_text(what),
					"text", ctl_json_text(safe)));
}

void doctor_note_print(const struct doctor *doctor, bool json)
{
	json_t *object, *finding;
	size_t i;

	if (json) {
		object = json_pack("{s:b,s:o,s:O}", "ok", 1,
				   "level", ctl_json_text(levels[doctor->level]),
				   "findings", doctor->findings);
		json_dumpf(object, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(object);
		return;
	}
	json_array_foreach(doctor->findings, i, finding) {
		const char *program = json_string_value(json_object_get(finding, "program"));

		printf("%-4s %s%s%s: %s\n", answer_string(finding, "level"),
		       program ? program : "", program && *program ? ": " : "",
		       answer_string(finding, "what"), answer_string(finding, "text"));
	}
}
