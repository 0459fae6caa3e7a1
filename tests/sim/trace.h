/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of what happened.  Log lines come in through trace_sink(), which is for log_init(). */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>

#include "log.h"

void trace_sink(enum log_level level, const char *line);
/* A line for @who. */
void trace_line(const char *who, const char *text);
/* Forget all. */
void trace_reset(void);
const char *trace_text(void);
/* The text must be @expected; then it is forgotten.  Otherwise print both, end the program. */
void trace_expect(const char *expected);

#endif
