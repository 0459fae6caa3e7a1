/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl top": the screen that follows programs until the user leaves it. */
#ifndef TOP_H
#define TOP_H

#include "args.h"

/* Follow the programs that @ctx selects, each ctx->watch_s seconds; 0: each second.  Returns the
 * exit status.  Blocks. */
int top_run(const struct ctx *ctx);

#endif
