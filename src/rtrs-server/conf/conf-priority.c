/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes priorities.  Owns nothing. */
#include <errno.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf-priority.h"
#include "number.h"
#include "util.h"

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

int conf_priority_parse(const char *text, uint16_t *prio, char *why, size_t len)
{
	size_t n = strcspn(text, ":");
	const struct class *class = find_class(text, n);
	unsigned level = class && class->levels ? LEVEL_DEFAULT : 0;

	if (!class || (text[n] && (!class->levels ||
				   !number_parse_u(text + n + 1, 0, LEVELS - 1, &level)))) {
		snprintf(why, len, "expected realtime or best-effort, each optionally with :0 to "
			 ":%u, idle or none", LEVELS - 1);
		return -EINVAL;
	}
	*prio = (uint16_t)(class->number << IOPRIO_CLASS_SHIFT | level);
	return 0;
}

const char *conf_priority_text(uint16_t prio, char buf[PRIORITY_TEXT_MAX])
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
