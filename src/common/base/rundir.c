/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rundir.h"

const char *rundir_default(void)
{
	static char path[4096];
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir && *dir) {
		/* One or more, separated by colons: systemd.exec(5). */
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(dir, ":"), dir);
		return path;
	}
	if (!geteuid())
		return "/run/nbdkit-rtrs";
	dir = getenv("XDG_RUNTIME_DIR");
	if (!dir || !*dir)
		return NULL;
	snprintf(path, sizeof(path), "%s/nbdkit-rtrs", dir);
	return path;
}
