/* SPDX-License-Identifier: BSD-3-Clause */
/* What each export does now, one line each. */
#ifndef STATUS_H
#define STATUS_H

#include <jansson.h>

/* From two answers to "stats", the second being the later one. */
void status_print(const json_t *before, const json_t *after);

#endif
