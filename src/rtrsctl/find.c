/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Looks in the default directory for sockets of this user's programs.  Also looks in
 * the neighbours, which systemd makes for services with a RuntimeDirectory= of another name. */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "cleanup.h"
#include "find.h"
#include "rundir.h"

static int is_control_socket(const struct dirent *entry)
{
	return rundir_is_socket(entry->d_name, NULL);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void find_in(struct found *found, const char *dir)
{
	struct dirent **entries;
	int n;

	rundir_sweep(dir);
	n = scandir(dir, &entries, is_control_socket, alphasort);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		char *path;
		int len = asprintf(&path, "%s/%s", dir, entries[i]->d_name);

		free(entries[i]);
		if (len < 0)
			continue;
		/* Skip sockets of killed programs, and of other users. */
		if (found->n == FIND_MAX || call_try(path))
			free(path);
		else
			found->path[found->n++] = path;
	}
	free(entries);
}

/* Can only root and this user write to @dir? Other users could imitate a program of this user. */
static bool is_safe(const char *dir)
{
	struct stat st;

	return !stat(dir, &st) && S_ISDIR(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static void find_beside(struct found *found, const char *parent, const char *dir)
{
	struct dirent **entries;
	int n = scandir(parent, &entries, is_visible, alphasort);

	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s", parent, entries[i]->d_name) >= 0 &&
		    strcmp(path, dir) && is_safe(path))
			find_in(found, path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

void find_sockets(struct found *found)
{
	const char *dir = rundir_default(), *parent = rundir_parent();

	found->n = 0;
	if (dir)
		find_in(found, dir);
	if (dir && parent)
		find_beside(found, parent, dir);
}

void find_only(struct found *found, const char *kind)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		const char *name = strrchr(found->path[i], '/') + 1;

		if (rundir_is_socket(name, kind))
			found->path[n++] = found->path[i];
		else
			free(found->path[i]);
	}
	found->n = n;
}

void find_free(struct found *found)
{
	for (size_t i = 0; i < found->n; i++)
		free(found->path[i]);
}
