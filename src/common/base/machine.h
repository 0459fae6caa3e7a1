/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process may use of its machine: a container or a unit of systemd has less than all.
 *
 * The limits are those of control groups (cgroup(7)): in version 2 memory.max, memory.high and
 * cpu.max, in version 1 memory.limit_in_bytes and cpu.cfs_quota_us, of the process's group and of
 * all groups above that can be seen.  Short: one call. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

struct machine {
	uint64_t memory;		/* bytes: RAM, or the least limit */
	unsigned cpus;			/* of the affinity, or the least quota, rounded up; 1 at
					 * least */
};

/* As found by the first call: a limit that changes later makes no other default.  Any thread, but
 * the first call is made while there is but one. */
const struct machine *machine(void);

/* Lower @m to the limits that files below @root ("": the real ones) tell: /proc/self/cgroup,
 * /proc/self/mountinfo, and groups where these say.  For machine(), and for tests. */
void machine_limit(struct machine *m, const char *root);

#endif
