/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

#include "clock.h"

void random_bytes(void *buf, size_t len)
{
	while (getrandom(buf, len, 0) != (ssize_t)len) {
		if (errno != EINTR)	/* does not happen on Linux */
			abort();
	}
}
