/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the kernel in /proc and /sys, above all of block devices (/sys/dev/block).  Main thread,
 * or a worker (export-life.h); owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "store-file-priv.h"

bool store_file_sysfs_line(const char *path, char *buf, int len)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, len, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

bool store_file_sysfs(dev_t dev, const char *attr, char *buf, int len)
{
	static const char *const up[] = { "", "../" };

	for (unsigned i = 0; i < ARRAY_SIZE(up); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s", major(dev), minor(dev),
			 up[i], attr);
		if (store_file_sysfs_line(path, buf, len))
			return true;
	}
	return false;
}

uint64_t store_file_sysfs_number(dev_t dev, const char *attr, uint64_t otherwise)
{
	unsigned long long value;
	char buf[64];

	if (!store_file_sysfs(dev, attr, buf, sizeof(buf)) || sscanf(buf, "%llu", &value) != 1)
		return otherwise;
	return value;
}
