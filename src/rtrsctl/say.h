/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a command was not done: a line for people, or a JSON object. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>
#include <stddef.h>

/* Exit status of the program (man/rtrsctl.pod). */
enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_UNWELL };

/* Errors are JSON from now on: {"ok":false,"error":TEXT}, one line of standard output.  Until then
 * an error is a line of standard error. */
void say_json(void);
/* Say an error, without anything that a terminal might act on.  Returns @status. */
int say_error(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As say_error() with EXIT_USAGE: @text is followed by a command line with @command for each of the
 * @n @sockets to choose from. */
int say_choice(const char *text, const char *command, char *const *sockets, size_t n);

#endif
