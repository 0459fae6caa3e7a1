/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a server, and how fast each client is. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>

#include <jansson.h>

/* Print the clients of a server, from two answers to "stats", @before and, later, @after: as a
 * table, or as a JSON object on a single line. */
void clients_print(const json_t *before, const json_t *after, bool json);

#endif
