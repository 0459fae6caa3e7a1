/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of /run/rtrs/attach.  A reader finds the old state or the new one, because a file is
 * replaced as a whole. */
#include <config.h>

#include "attach-state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "lock-file.h"
#include "number.h"
#include "plain-file.h"
#include "util.h"

#define ATTACH_DIRECTORY "/run/rtrs/attach"
#define STATE_MAX 4096			/* bytes of a file */

bool attach_name_ok(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t len = strlen(name);

	return len && len < ATTACH_NAME_MAX && strspn(name, letters) == len && *name != '.' &&
	       *name != '-';
}

static char *path_of(const char *name, const char *suffix)
{
	char *path;

	return asprintf(&path, ATTACH_DIRECTORY "/%s%s", name, suffix) < 0 ? NULL : path;
}

static int make_directory(void)
{
	if ((mkdir("/run/rtrs", 0755) < 0 && errno != EEXIST) ||
	    (mkdir(ATTACH_DIRECTORY, 0755) < 0 && errno != EEXIST))
		return -errno;
	return 0;
}

int attach_state_lock(const char *name, char *err, size_t len)
{
	_cleanup_free_ char *path = path_of(name, ".lock");
	int r = path ? make_directory() : -ENOMEM;

	if (r == 0)
		r = lock_file_take(AT_FDCWD, path, LOCK_EX);
	if (r == -EWOULDBLOCK)
		snprintf(err, len, "%s is attached already, by another process (rtrs-attach "
			 "--list)", name);
	else if (r < 0)
		snprintf(err, len, "%s: %s", path ? path : ATTACH_DIRECTORY, strerror(-r));
	return r;
}

/* ---- lines ---- */

static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
#define TEXT(key_, field) { key_, offsetof(struct attach_state, field), \
			    sizeof(((struct attach_state *)0)->field) }
	TEXT("driver", driver), TEXT("disk", disk), TEXT("server", server),
	TEXT("export", export_name),
#undef TEXT
};

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{ "index", offsetof(struct attach_state, index) },
	{ "pid", offsetof(struct attach_state, pid) },
};

/* A key of a later version is passed over. */
static void take_line(struct attach_state *s, char *line)
{
	char *value = strchr(line, '=');

	if (!value)
		return;
	*value++ = '\0';
	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strcmp(texts[i].key, line))
			snprintf((char *)s + texts[i].offset, texts[i].size, "%s", value);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(numbers[i].key, line))
			*(int *)((char *)s + numbers[i].offset) = atoi(value);
	}
}

static void begin(struct attach_state *s, const char *name)
{
	*s = (struct attach_state){ .index = -1 };
	snprintf(s->name, sizeof(s->name), "%s", name);
}

int attach_state_read(struct attach_state *s, const char *name, char *err, size_t len)
{
	_cleanup_free_ char *path = path_of(name, "");
	struct plain_file file = { 0 };
	char *save, *line, why[128] = "no memory";
	int r;

	begin(s, name);
	r = path ? plain_file_load(path, STATE_MAX, &file, why, sizeof(why)) : -ENOMEM;
	if (r < 0) {
		snprintf(err, len, "%s: %s", path ? path : ATTACH_DIRECTORY, why);
		return r;
	}
	for (line = strtok_r(file.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		take_line(s, line);
	plain_file_free(&file);
	return 0;
}

int attach_state_write(const struct attach_state *s, char *err, size_t len)
{
	_cleanup_free_ char *path = path_of(s->name, ""), *text = NULL;
	char why[128] = "no memory";
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r = -ENOMEM;

	if (f && path) {
		for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
			fprintf(f, "%s=%s\n", texts[i].key, (const char *)s + texts[i].offset);
		for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++)
			fprintf(f, "%s=%d\n", numbers[i].key,
				*(const int *)((const char *)s + numbers[i].offset));
		r = 0;
	}
	if (f && fclose(f))
		r = -ENOMEM;
	if (r == 0)
		r = plain_file_write(path, text, n, why, sizeof(why));
	if (r < 0)
		snprintf(err, len, "%s: %s", path ? path : ATTACH_DIRECTORY, why);
	return r;
}

void attach_state_remove(const char *name)
{
	_cleanup_free_ char *path = path_of(name, "");
	char why[128];

	if (path)
		plain_file_remove(path, why, sizeof(why));
}
