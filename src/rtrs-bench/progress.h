/* SPDX-License-Identifier: BSD-3-Clause */
/* Stderr: lines that stay, and, on a terminal, one below them that is written again and again.
 * Any thread. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>

/* Is stderr a terminal? */
bool progress_possible(void);
/* @text takes the place of the previous one. */
void progress_show(const char *text);
/* Take it away. */
void progress_end(void);
/* A line that stays, with the program's name in front. */
void progress_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
