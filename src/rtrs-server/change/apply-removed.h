/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports that were removed, and that clients still have open (exports.removed).  Main thread. */
#ifndef APPLY_REMOVED_H
#define APPLY_REMOVED_H

#include <stddef.h>
#include <stdio.h>

struct export_life;

/* Write to @buf who has a removed export called @name open, "gw1, gw2"; "": nobody.  Cut at
 * @len. */
void apply_removed_openers(struct export_life *life, const char *name, char *buf, size_t len);
/* Take the removed exports called @name, all if @name is NULL, away from who has them open, and
 * write a line about each to @out. */
void apply_removed_kick(struct export_life *life, const char *name, FILE *out);

#endif
