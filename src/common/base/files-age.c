/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the time of the last reset. */
#include <config.h>

#include <stdatomic.h>

#include "clock.h"
#include "files-age.h"

static atomic_uint_fast64_t reset_ns;

void files_age_reset(void)
{
	reset_ns = clock_now_ns();
}

uint64_t files_age_ns(void)
{
	return clock_now_ns() - reset_ns;
}
