/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads --cpus.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf-priv.h"
#include "number.h"

/* Read "N" or "N-M" at *@text, and set *@text behind. */
static bool read_range(const char **text, uint64_t *first, uint64_t *last)
{
	if (!number_prefix(*text, text, first))
		return false;
	*last = *first;
	if (**text == '-' && !number_prefix(*text + 1, text, last))
		return false;
	return *first <= *last && *last < CPU_SETSIZE;
}

static bool read_list(const char *text, cpu_set_t *cpus)
{
	uint64_t first, last;

	CPU_ZERO(cpus);
	for (;; text++) {
		if (!read_range(&text, &first, &last))
			return false;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
		if (*text != ',')
			return !*text;
	}
}

/* Write "0,2-3" for @cpus to @buf. */
static void list_text(const cpu_set_t *cpus, char *buf, size_t len)
{
	buf[0] = '\0';
	for (unsigned first = 0, last; first < CPU_SETSIZE; first = last + 1) {
		size_t at = strlen(buf);

		last = first;
		if (!CPU_ISSET(first, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		snprintf(buf + at, len - at, last > first ? "%s%u-%u" : "%s%u", at ? "," : "",
			 first, last);
	}
}

int conf_cpus_read(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;
	cpu_set_t allowed, both;
	char list[128];

	if (!read_list(text, &conf->cpus)) {
		snprintf(why, len, "expected a list of CPUs like 0,2-3");
		return -EINVAL;
	}
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) {
		snprintf(why, len, "cannot read the CPUs of this process: %s", strerror(errno));
		return -errno;
	}
	CPU_AND(&both, &conf->cpus, &allowed);
	if (CPU_EQUAL(&both, &conf->cpus))
		return 0;
	list_text(&allowed, list, sizeof(list));
	snprintf(why, len, "expected CPUs that this process may use: %s", list);
	return -ENODEV;
}
