/* SPDX-License-Identifier: BSD-3-Clause */
/* The views that rtrsctl computes from answers, a file each; "check" has check.h.  Main thread. */
#ifndef VIEWS_H
#define VIEWS_H

#include <stdbool.h>

#include <jansson.h>

#include "args.h"

/* ---- clients.c ---- */

/* Print the clients of a program, and how fast each client is, from two of its answers, @before
 * and, later, @after: of a server to "stats", of a gateway for NBD to "clients".  As a table, or as
 * a JSON object on a single line. */
void clients_print(const json_t *before, const json_t *after, bool json);

/* ---- explain.c: the checks of a server for a client and an export ---- */

/* Print @answer: a line for each check, and whether the client may open the export. */
void explain_print(const json_t *answer);
/* True if the client of @answer may open the export. */
bool explain_may(const json_t *answer);

/* ---- status.c ---- */

/* Print the current work and state of each export and session as a table, from two answers to
 * "stats", @before and, later, @after. */
void status_print(const json_t *before, const json_t *after);

/* ---- top.c ---- */

/* Follow the programs that @ctx selects on a screen, each ctx->watch_s seconds; 0: each second.
 * Returns the exit status when the user leaves.  Blocks. */
int top_run(const struct ctx *ctx);

/* ---- doctor.c ---- */

/* Print what may keep the programs of this machine from starting, from reaching each other, or from
 * being fast, and what to do about it (doctor.h).  Returns the exit status: that of "check".
 * Blocks. */
int doctor_run(const struct ctx *ctx);

#endif
