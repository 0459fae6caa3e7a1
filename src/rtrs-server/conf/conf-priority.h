/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority of an export: a class and a level, as ionice(1) names them, in the form of
 * <linux/ioprio.h>.  Pure, any thread. */
#ifndef CONF_PRIORITY_H
#define CONF_PRIORITY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes for conf_priority_text(). */
#define PRIORITY_TEXT_MAX 16u

/* Parse "realtime", "best-effort", each perhaps with ":LEVEL" from 0, the highest, to 7, or "idle",
 * or "none", which is 0.  Without LEVEL the level is 4, as with ionice(1).  0, or -EINVAL with the
 * expected form in @why. */
int conf_priority_parse(const char *text, uint16_t *prio, char *why, size_t len);
/* Write @prio to @buf as users write a priority.  Returns @buf. */
const char *conf_priority_text(uint16_t prio, char buf[PRIORITY_TEXT_MAX]);

#endif
