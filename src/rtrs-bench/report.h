/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user sees of a load: its progress, and its result.  Small: it only prints. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "options.h"

/* Stderr: lines that stay, and, on a terminal, a line below, which is written again and again.  Any
 * thread. */

/* Is stderr a terminal? */
bool report_progress_possible(void);
/* Show @text in place of the previous text. */
void report_progress(const char *text);
/* Clear the shown text. */
void report_progress_end(void);
/* Write a line that stays, with the program's name in front. */
void report_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print the result to stdout, for people. */
void report_text(const struct options *o, const struct load *l);
/* Print the result to stdout as JSON.  0, or -ENOMEM after a message on stderr. */
int report_json(const struct options *o, const struct load *l);

#endif
