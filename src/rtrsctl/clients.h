/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a program, and how fast each client is. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>

#include <jansson.h>

/* Print the clients of a program, from two of its answers, @before and, later, @after: of a server
 * to "stats", of a gateway for NBD to "clients".  As a table, or as a JSON object on a single
 * line. */
void clients_print(const json_t *before, const json_t *after, bool json);

#endif
