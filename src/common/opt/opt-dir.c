/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: files are read by the caller, and written by plain-file.h. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "number.h"
#include "opt-file.h"
#include "plain-file.h"
#include "process.h"

#define SAVED "rtrsctl-saved.conf"

/* ---- reading ---- */

int opt_dir_is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 5, ".conf");
}

static int read_entries(const char *dir, int (*read)(void *arg, const char *path, FILE *errors),
			void *arg, FILE *errors)
{
	struct dirent **entries;
	char why[256];
	int n = plain_file_list(dir, opt_dir_is_conf, &entries, why, sizeof(why)), rc = 0;

	if (n == -ENOENT)
		return 0;
	if (n < 0) {
		fprintf(errors, "%s: %s\n", dir, why);
		return exit_file_error(n);
	}
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = fmt_new("%s/%s", dir, entries[i]->d_name);
		int one = path ? read(arg, path, errors) : -ENOMEM;

		if (!path)
			fprintf(errors, "out of memory\n");
		rc = rc ? rc : one;
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int opt_dir_read(const char *file, int (*read)(void *arg, const char *path, FILE *errors),
		 void *arg, FILE *errors)
{
	_cleanup_free_ char *dir = fmt_new("%s.d", file);
	int rc = read(arg, file, errors), more;

	if (!dir) {
		fprintf(errors, "out of memory\n");
		return -ENOMEM;
	}
	more = read_entries(dir, read, arg, errors);
	return rc ? rc : more;
}

/* ---- the program's file ---- */

char *opt_dir_saved(const char *file)
{
	return fmt_new("%s.d/" SAVED, file);
}

bool opt_dir_is_saved(const char *saved, const char *where)
{
	size_t n = strlen(saved);

	return where && !strncmp(where, saved, n) && where[n] == ':';
}

int opt_dir_save(const char *saved, const char *text, size_t n, char *err, size_t len)
{
	char why[256];
	int rc = plain_file_save(saved, text, n, why, sizeof(why));

	switch (-rc) {
	case 0:
		break;
	case EACCES: case EPERM: case EROFS: case ENOENT:
		snprintf(err, len, "%s: %s: the user of this program has to own the directory, and "
			 "a unit has to find it when it starts: install -d -o %u %.*s", saved, why,
			 (unsigned)geteuid(), (int)(strlen(saved) - strlen("/" SAVED)), saved);
		break;
	default:
		snprintf(err, len, "%s: %s", saved, why);
	}
	return rc;
}
