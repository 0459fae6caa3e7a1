/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of control groups, in folders like those of machines and containers. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "process.h"

#define MIB (1024.0 * 1024)
#define SELF "proc/self/"
#define V1_MEMORY                                                                                  \
	"30 29 0:9 %s /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n"
#define V1_CPU                                                                                     \
	"31 29 0:8 / /sys/fs/cgroup/cpu\\040acct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V2 "32 29 0:7 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"

static char root[] = "/tmp/test-machine.XXXXXX";
static struct machine m;

/* Write @text to @path below the root, with folders. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	strcpy(root, "/tmp/test-machine.XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	m = (struct machine){ .memory = UINT64_C(8) << 30, .cpus = 16 };
}

static void teardown(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(machine, .init = setup, .fini = teardown);

static void expect(double mib, unsigned cpus)
{
	machine_limit(&m, root);
	cr_expect_eq((double)m.memory / MIB, mib, "%.0f MiB", (double)m.memory / MIB);
	cr_expect_eq(m.cpus, cpus, "%u CPUs", m.cpus);
}

Test(machine, no_groups) { expect(8192, 16); }

/* The folder of a group may be missing. */
Test(machine, no_limits)
{
	put(SELF "cgroup", "5:memory:/gone\n0::/a/b\n");
	put(SELF "mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n" V2);
	put("sys/fs/cgroup/unified/a/b/memory.max", "max\n");
	put("sys/fs/cgroup/unified/a/b/cpu.max", "max 100000\n");
	/* The disk is no hierarchy. */
	put("a/b/memory.max", "4096\n");
	expect(8192, 16);
}

Test(machine, v2_of_an_ancestor)
{
	put(SELF "cgroup", "0::/a/b/c\n");
	put(SELF "mountinfo", V2);
	put("sys/fs/cgroup/unified/a/b/c/memory.max", "1073741824\n");
	put("sys/fs/cgroup/unified/a/memory.max", "268435456\n");
	put("sys/fs/cgroup/unified/a/b/memory.max", "536870912\n");
	put("sys/fs/cgroup/unified/a/cpu.max", "250000 100000\n");
	put("sys/fs/cgroup/unified/a/b/c/cpu.max", "max 100000\n");
	/* Another group's. */
	put("sys/fs/cgroup/unified/a/x/memory.max", "4096\n");
	put("sys/fs/cgroup/memory.max", "4096\n");
	expect(256, 3);
}

Test(machine, v2_throttled)
{
	put(SELF "cgroup", "0::/\n");
	put(SELF "mountinfo", V2);
	put("sys/fs/cgroup/unified/memory.max", "1073741824\n");
	put("sys/fs/cgroup/unified/memory.high", "536870912\n");
	put("sys/fs/cgroup/unified/cpu.max", "1000 100000\n");
	expect(512, 1);
}

Test(machine, v1)
{
	char mounts[512];

	put(SELF "cgroup", "4:cpu,cpuacct:/c\n3:memory:/a/b\n2:cpuset:/\n0::/\n");
	snprintf(mounts, sizeof(mounts), V1_CPU V1_MEMORY, "/");
	put(SELF "mountinfo", mounts);
	put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "134217728\n");
	put("sys/fs/cgroup/cpu acct/c/cpu.cfs_quota_us", "400000\n");
	put("sys/fs/cgroup/cpu acct/c/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/cpu acct/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu acct/cpu.cfs_period_us", "100000\n");
	expect(128, 4);
}

/* A container without a namespace for groups: its group is mounted, under the host's name. */
Test(machine, v1_mounted_group)
{
	char mounts[512];

	put(SELF "cgroup", "3:memory:/docker/1234/inner\n");
	snprintf(mounts, sizeof(mounts), V1_MEMORY, "/docker/1234");
	put(SELF "mountinfo", mounts);
	put("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "536870912\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
	expect(128, 16);
}

/* Another group is mounted: only what it has counts. */
Test(machine, v1_mounted_beside)
{
	char mounts[512];

	put(SELF "cgroup", "3:memory:/docker/12345\n");
	snprintf(mounts, sizeof(mounts), V1_MEMORY, "/docker/1234");
	put(SELF "mountinfo", mounts);
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
	expect(128, 16);
}

Test(machine, this_one)
{
	cr_assert_gt(machine()->memory, 0);
	cr_assert_leq(machine()->memory, (uint64_t)sysconf(_SC_PHYS_PAGES) * getpagesize());
	cr_assert_gt(machine()->cpus, 0);
}
