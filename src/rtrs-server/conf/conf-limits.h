/* SPDX-License-Identifier: BSD-3-Clause */
/* What the administrator allows an export: how much IO a second all of its clients together may do,
 * and with which priority.  Pure, any thread.
 *
 * The keys of limits mean what QEMU's throttle means: an average, and a burst of what was not used
 * before. */
#ifndef CONF_LIMITS_H
#define CONF_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum limit {
	LIMIT_IOPS,			/* READ and modifying requests together */
	LIMIT_IOPS_READ,
	LIMIT_IOPS_WRITE,
	LIMIT_BPS,			/* the bytes of READ and WRITE */
	LIMIT_BPS_READ,
	LIMIT_BPS_WRITE,
	LIMITS
};

struct limits {
	uint64_t rate[LIMITS];		/* requests or bytes a second; 0: no limit */
	unsigned burst_s;		/* 0: LIMIT_BURST_MS */
};

#define LIMIT_BURST_MS 100u		/* the default of QEMU */
#define LIMIT_BURST_MAX 3600u		/* seconds */
#define LIMIT_IOPS_MAX 1000000000u
#define LIMIT_BPS_MIN 4096u
#define LIMIT_BPS_MAX (UINT64_C(1) << 40)

/* "iops", "iops-read", ...: the keys of a configuration file and of rtrsctl. */
extern const char *const limit_names[LIMITS];

/* True if @limits has a limit. */
bool conf_limits_any(const struct limits *limits);
/* The time for which units of @limits are saved up. */
uint64_t conf_limits_burst_ns(const struct limits *limits);
/* True if @a and @b are the same. */
bool conf_limits_same(const struct limits *a, const struct limits *b);
/* Write to @buf each key that differs: "iops 1000 -> 2000, bps none -> 100M".  "": none differs.
 * Returns @buf. */
const char *conf_limits_change_text(const struct limits *was, const struct limits *now, char *buf,
			       size_t len);

/* ---- the priority: a class and a level, as ionice(1) names them, in the form of <linux/ioprio.h>
 * ---- */

/* Bytes for conf_limits_priority_text(). */
#define PRIORITY_TEXT_MAX 16u

/* Parse "realtime", "best-effort", each perhaps with ":LEVEL" from 0, the highest, to 7, or "idle",
 * or "none", which is 0.  Without LEVEL the level is 4, as with ionice(1).  0, or -EINVAL with the
 * expected form in @why. */
int conf_limits_parse_priority(const char *text, uint16_t *prio, char *why, size_t len);
/* Write @prio to @buf as users write a priority.  Returns @buf. */
const char *conf_limits_priority_text(uint16_t prio, char buf[PRIORITY_TEXT_MAX]);

#endif
