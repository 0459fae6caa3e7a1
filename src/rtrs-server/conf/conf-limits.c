/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads, compares and writes limits and priorities as users do. */
#include <errno.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf-limits.h"
#include "number.h"
#include "util.h"

const char *const limit_names[LIMITS] = {
	[LIMIT_IOPS] = "iops",
	[LIMIT_IOPS_READ] = "iops-read",
	[LIMIT_IOPS_WRITE] = "iops-write",
	[LIMIT_BPS] = "bps",
	[LIMIT_BPS_READ] = "bps-read",
	[LIMIT_BPS_WRITE] = "bps-write",
};

bool conf_limits_any(const struct limits *limits)
{
	bool any = false;

	for (unsigned i = 0; i < LIMITS; i++)
		any = any || limits->rate[i];
	return any;
}

uint64_t conf_limits_burst_ns(const struct limits *limits)
{
	return limits->burst_s ? limits->burst_s * UINT64_C(1000000000) :
	       LIMIT_BURST_MS * UINT64_C(1000000);
}

bool conf_limits_same(const struct limits *a, const struct limits *b)
{
	return !memcmp(a->rate, b->rate, sizeof(a->rate)) && a->burst_s == b->burst_s;
}

static const char *rate_text(unsigned i, uint64_t rate, char buf[SIZE_TEXT_MAX])
{
	if (!rate)
		return "none";
	if (i >= LIMIT_BPS)
		return size_text(rate, buf);
	snprintf(buf, SIZE_TEXT_MAX, "%" PRIu64, rate);
	return buf;
}

static const char *burst_text(unsigned seconds, char buf[SIZE_TEXT_MAX])
{
	if (!seconds)
		return "none";
	snprintf(buf, SIZE_TEXT_MAX, "%us", seconds);
	return buf;
}

static void append_change(char *buf, size_t len, const char *name, const char *was, const char *now)
{
	size_t at = strlen(buf);

	snprintf(buf + at, len - at, "%s%s %s -> %s", at ? ", " : "", name, was, now);
}

const char *conf_limits_change_text(const struct limits *was, const struct limits *now, char *buf,
			       size_t len)
{
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	buf[0] = '\0';
	for (unsigned i = 0; i < LIMITS; i++) {
		if (was->rate[i] != now->rate[i])
			append_change(buf, len, limit_names[i], rate_text(i, was->rate[i], a),
				      rate_text(i, now->rate[i], b));
	}
	if (was->burst_s != now->burst_s)
		append_change(buf, len, "burst", burst_text(was->burst_s, a),
			      burst_text(now->burst_s, b));
	return buf;
}

/* ---- priorities ---- */

#define LEVELS 8u
#define LEVEL_DEFAULT 4u

static const struct class {
	const char *name;
	uint16_t number;
	bool levels;
} classes[] = {
	{ "none", IOPRIO_CLASS_NONE, false },
	{ "realtime", IOPRIO_CLASS_RT, true },
	{ "best-effort", IOPRIO_CLASS_BE, true },
	{ "idle", IOPRIO_CLASS_IDLE, false },
};

/* The class whose name is the first @n bytes of @name, or NULL. */
static const struct class *find_class(const char *name, size_t n)
{
	for (unsigned i = 0; i < ARRAY_SIZE(classes); i++) {
		if (strlen(classes[i].name) == n && !memcmp(classes[i].name, name, n))
			return &classes[i];
	}
	return NULL;
}

int conf_limits_parse_priority(const char *text, uint16_t *prio, char *why, size_t len)
{
	size_t n = strcspn(text, ":");
	const struct class *class = find_class(text, n);
	unsigned level = class && class->levels ? LEVEL_DEFAULT : 0;

	if (!class || (text[n] && (!class->levels ||
				   !number_parse_u(text + n + 1, 0, LEVELS - 1, &level))))
		return fmt_error(-EINVAL, why, len, "expected realtime or best-effort, each "
				 "optionally with :0 to :%u, idle or none", LEVELS - 1);
	*prio = (uint16_t)(class->number << IOPRIO_CLASS_SHIFT | level);
	return 0;
}

const char *conf_limits_priority_text(uint16_t prio, char buf[PRIORITY_TEXT_MAX])
{
	const struct class *class = classes;

	for (unsigned i = 0; i < ARRAY_SIZE(classes); i++) {
		if (classes[i].number == prio >> IOPRIO_CLASS_SHIFT)
			class = &classes[i];
	}
	if (class->levels)
		snprintf(buf, PRIORITY_TEXT_MAX, "%s:%u", class->name, prio % LEVELS);
	else
		snprintf(buf, PRIORITY_TEXT_MAX, "%s", class->name);
	return buf;
}
