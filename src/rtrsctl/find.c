/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "find.h"
#include "rundir.h"

static int is_socket(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && !strcmp(end, ".sock");
}

void find_sockets(struct found *found)
{
	const char *dir = rundir_default();
	struct dirent **entries;
	int n = dir ? scandir(dir, &entries, is_socket, alphasort) : -1;

	found->n = 0;
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		char *path;
		int len = asprintf(&path, "%s/%s", dir, entries[i]->d_name);

		free(entries[i]);
		if (len < 0)
			continue;
		/* Those of programs that were killed stay. */
		if (found->n == FIND_MAX || call_try(path))
			free(path);
		else
			found->path[found->n++] = path;
	}
	free(entries);
}

void find_free(struct found *found)
{
	for (size_t i = 0; i < found->n; i++)
		free(found->path[i]);
}
