/* SPDX-License-Identifier: BSD-3-Clause */
/* What each export and each session does now, one line each. */
#ifndef STATUS_H
#define STATUS_H

#include <stdbool.h>

#include <jansson.h>

/* Print the table of two answers to "stats", the second being the later one. */
void status_print(const json_t *before, const json_t *after);
/* Is each session of @answer up on all its paths, with each of its exports open? */
bool status_is_well(const json_t *answer);

#endif
