/* SPDX-License-Identifier: BSD-3-Clause */
/* A command to programs, and the answers as text. */
#ifndef RUN_H
#define RUN_H

#include "args.h"
#include "find.h"

/* Send the command of @ctx to each program of @found, and print the answers, once or until the
 * output ends.  Returns the exit status, the highest of all. */
int run_command(const struct ctx *ctx, const struct found *found);

#endif
