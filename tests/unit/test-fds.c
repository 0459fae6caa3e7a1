/* SPDX-License-Identifier: BSD-3-Clause */
/* How many descriptors are kept for clients (process.h), by the process's limit. */
#include "unit.h"

#include <sys/resource.h>

#include "process.h"

#define RESERVE_MAX 64u			/* clients, as process.c has it; a part of the limit: */
#define RESERVE_PART 16u

static unsigned reserve_at(rlim_t limit, unsigned client)
{
	struct rlimit rlimit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &rlimit), 0);
	cr_assert_geq(rlimit.rlim_max, limit, "raise the hard limit of open files");
	rlimit.rlim_cur = limit;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &rlimit), 0);
	return fds_reserve(client);
}

Test(fds, reserve_up_to_the_limit)
{
	for (unsigned client = 1; client <= 3; client++) {
		unsigned most = RESERVE_MAX * client, limit = RESERVE_PART * most;

		cr_assert_eq(reserve_at(limit - 1, client), most - 1);
		cr_assert_eq(reserve_at(limit, client), most);
		cr_assert_eq(reserve_at(limit + RESERVE_PART, client), most);
		if (client == 1)
			cr_assert_eq(reserve_at(4 * limit, client), most);
		/* And never for fewer than two. */
		cr_assert_eq(reserve_at(RESERVE_PART, client), 2 * client);
	}
}
