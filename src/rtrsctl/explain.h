/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl explain": the checks of a server for a client and an export. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include <stdbool.h>

#include <jansson.h>

/* Print @answer: a line for each check, and whether the client may open the export. */
void explain_print(const json_t *answer);
/* True if the client of @answer may open the export. */
bool explain_may(const json_t *answer);

#endif
