/* SPDX-License-Identifier: BSD-3-Clause */
/* Stderr: lines that stay, and, on a terminal, a line below, which is written again and again.  Any
 * thread. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>

/* Is stderr a terminal? */
bool progress_possible(void);
/* Show @text in place of the previous text. */
void progress_show(const char *text);
/* Clear the shown text. */
void progress_end(void);
/* Write a line that stays, with the program's name in front. */
void progress_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
