/* SPDX-License-Identifier: BSD-3-Clause */
/* The findings of the doctor, and the worst of them.  One finding is one line, "warn rtrs-nbd
 * disk0: path: ...".  Main thread. */
#ifndef DOCTOR_NOTE_H
#define DOCTOR_NOTE_H

#include <stdbool.h>

#include <jansson.h>

#include "check.h"

struct doctor {
	enum check_level level;		/* the worst finding: CHECK_OK, _WARNING, _CRITICAL */
	json_t *findings;
	const char *program;		/* that the next findings are about; NULL: the machine */
};

/* Add a finding about @what of doctor->program.  @level: CHECK_OK, _WARNING or _CRITICAL.  Bytes of
 * a file or a peer are made safe. */
void doctor_note(struct doctor *doctor, enum check_level level, const char *what, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));
/* Print the findings on standard output, as JSON or as lines. */
void doctor_note_print(const struct doctor *doctor, bool json);

#endif
