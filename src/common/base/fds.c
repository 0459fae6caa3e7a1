/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts descriptors.  Owns nothing; any thread; cannot fail. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "fds.h"
#include "util.h"

#define RESERVE_PART 16			/* of the limit */
#define RESERVE_MIN 2			/* clients */
#define RESERVE_MAX 64

/* The current RLIMIT_NOFILE; 0: unknown. */
static unsigned long long fds_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

int fds_name_limit(int r, char *err, size_t len)
{
	size_t at = strlen(err);

	if (r == -EMFILE)
		snprintf(err + at, len - at, " (RLIMIT_NOFILE is %llu: raise it)", fds_limit());
	return r;
}

unsigned fds_reserve(unsigned client)
{
	unsigned long long part = fds_limit() / RESERVE_PART,
		least = (unsigned long long)RESERVE_MIN * client,
			   most = (unsigned long long)RESERVE_MAX * client;

	return (unsigned)MAX(MIN(part, most), least);
}

/* Count from above: the lowest descriptors are taken first. */
bool fds_free(unsigned n)
{
	int fd = (int)MIN(fds_limit(), (unsigned long long)INT_MAX);

	while (n && --fd >= 0) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			n--;
	}
	return n == 0;
}
