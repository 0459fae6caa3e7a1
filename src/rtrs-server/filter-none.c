/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without libseccomp, or with sanitizers, which trace and map in ways that the filter
 * denies. */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "filter.h"
#include "log.h"

bool filter_built(void)
{
	return false;
}

const char *filter_missing(void)
{
	return FILTER_MISSING;
}

int filter_load(bool let_through)
{
	log_err(NULL, "--seccomp=%s: %s; expected off", let_through ? "log" : "on", FILTER_MISSING);
	return -EOPNOTSUPP;
}

void filter_call_name(int nr, char *name, size_t len)
{
	snprintf(name, len, "%d", nr);
}
