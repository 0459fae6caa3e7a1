/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because all files need it, and the tests have another.
 *
 * The reason why a command was not done: a line for people, or a JSON object. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>

#include "process.h"

#define TEXT_MAX_BYTES 16384		/* of an error: the mistakes of a file, a line each */

struct ctx;
struct found;

/* From now on the process ends with an error where a JSON value finds no memory: what is printed is
 * whole, and no caller need ask. */
void say_begin(void);
/* From now on write errors as JSON: {"ok":false,"error":TEXT}, a line of standard output.  Before
 * this call errors are lines of standard error. */
void say_json(void);
/* With @on an error is from now on the answer of "check": a line of standard output, unless
 * say_json() was called, and CHECK_UNKNOWN (check.h) as the exit status. */
void say_check(bool on);
/* Write an error, with control characters masked for the terminal.  Returns the exit status:
 * @status, unless say_check() is on. */
int say_error(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write the error @text, and below the command line of @ctx for each of the programs @found to
 * choose from: by its name, or by its socket where others have the name.  Returns EXIT_USAGE. */
int say_choice(const char *text, const struct ctx *ctx, const struct found *found);

#endif
