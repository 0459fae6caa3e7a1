/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs a command is for. */
#ifndef WHICH_H
#define WHICH_H

#include "args.h"
#include "find.h"

/* Make @found the programs for the command of @ctx: the program of --socket, or all wanted
 * programs, but a single program for a command with an effect.  EXIT_DONE: @found has a program or
 * more.  Another exit status: the user has the reason.  @found is to be freed with find_free() in
 * any case. */
int which_programs(const struct ctx *ctx, struct found *found);

#endif
