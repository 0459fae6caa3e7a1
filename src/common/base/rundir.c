/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "mask.h"
#include "rundir.h"
#include "unix-sock.h"

#define SUFFIX ".sock"

const char *rundir_default(void)
{
	static char path[4096];
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir && *dir) {
		/* Several directories are separated by colons: systemd.exec(5). */
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

const char *rundir_parent(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir && *dir)
		return NULL;
	if (!geteuid())
		return "/run";
	dir = getenv("XDG_RUNTIME_DIR");
	return dir && *dir ? dir : NULL;
}

void rundir_socket_name(const char *kind, int pid, char *buf, size_t len)
{
	snprintf(buf, len, "%s-%d" SUFFIX, kind, pid);
}

static bool is_of_kind(const char *name, const char *kind)
{
	size_t len = strlen(kind), digits;

	if (strncmp(name, kind, len) || name[len] != '-')
		return false;
	digits = strspn(name + len + 1, "0123456789");
	return digits && !strcmp(name + len + 1 + digits, SUFFIX);
}

bool rundir_is_socket(const char *name, const char *kind)
{
	bool client = is_of_kind(name, RUNDIR_NBDKIT) || is_of_kind(name, RUNDIR_GATEWAY);

	if (!kind)
		return client || is_of_kind(name, RUNDIR_SERVER);
	return strcmp(kind, RUNDIR_NBDKIT) ? is_of_kind(name, kind) : client;
}

bool rundir_name_ok(const char *name)
{
	char masked[RUNDIR_NAME_MAX];
	size_t len = strlen(name);

	if (!len || len >= sizeof(masked))
		return false;
	memcpy(masked, name, len + 1);
	mask_control(masked);
	return !strcmp(masked, name);
}

void rundir_sweep(const char *dir)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *path = NULL;

		if (rundir_is_socket(entry->d_name, NULL) &&
		    asprintf(&path, "%s/%s", dir, entry->d_name) >= 0)
			unix_sock_remove_dead(path);
	}
	if (d)
		closedir(d);
}
