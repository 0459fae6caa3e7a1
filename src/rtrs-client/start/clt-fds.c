/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts descriptors.  Owns nothing; any thread; cannot fail. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "clt-fds.h"
#include "util.h"

#define RESERVE_PART 16			/* of the limit */
#define RESERVE_MIN (2 * CLT_FDS_CLIENT)
#define RESERVE_MAX (64 * CLT_FDS_CLIENT)

unsigned long long clt_fds_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

unsigned clt_fds_reserve(void)
{
	unsigned long long part = clt_fds_limit() / RESERVE_PART;

	return (unsigned)MAX(MIN(part, (unsigned long long)RESERVE_MAX),
			     (unsigned long long)RESERVE_MIN);
}

/* From above: the lowest ones are taken first. */
bool clt_fds_free(unsigned n)
{
	int fd = (int)MIN(clt_fds_limit(), (unsigned long long)INT_MAX);

	while (n && --fd >= 0) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			n--;
	}
	return n == 0;
}
