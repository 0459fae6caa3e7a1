/* SPDX-License-Identifier: BSD-3-Clause */
/* The current work and state of each export and session, as a table. */
#ifndef STATUS_H
#define STATUS_H

#include <jansson.h>

/* Print the table of two answers to "stats", @before and, later, @after. */
void status_print(const json_t *before, const json_t *after);

#endif
