/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of /run/rtrs/attach.  A reader finds the old state or the new one, because a file is
 * replaced as a whole; only a full file system has the file written over (overwrite()). */
#include <config.h>

#include "attach-state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cleanup.h"
#include "lock-file.h"
#include "number.h"
#include "plain-file.h"
#include "process.h"
#include "util.h"

#define STATE_MAX 4096			/* bytes of a file */

/* Of files that stand beside states and links. */
static const char *const suffixes[] = { ".lock", ".new", ".session", ".tmp" };

static bool has_suffix(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (unsigned i = 0; dot && i < ARRAY_SIZE(suffixes); i++) {
		if (!strcmp(dot, suffixes[i]))
			return true;
	}
	return false;
}

bool attach_name_ok(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t len = strlen(name);

	return len && len < ATTACH_NAME_MAX && strspn(name, letters) == len && *name != '.' &&
	       *name != '-' && !has_suffix(name);
}

/* @hash of this program, and of @text with its zero, so that no two texts are like two others. */
static uint64_t hash_with(uint64_t hash, const char *text)
{
	return fnv1a(hash, text, strlen(text) + 1);
}

static uint64_t hash_of_name(const struct attach_state *s)
{
	return hash_with(hash_with(FNV1A_INIT, "rtrs-attach"), s->name);
}

uint64_t attach_state_mark(const struct attach_state *s)
{
	return (hash_of_name(s) & ATTACH_MARK_NAME) |
	       (hash_with(FNV1A_INIT, s->export_name) & ~ATTACH_MARK_NAME);
}

uint64_t attach_state_mark_0(const struct attach_state *s)
{
	return hash_with(hash_of_name(s), s->export_name);
}

static char *path_of(const char *name, const char *suffix)
{
	char *path;

	return asprintf(&path, ATTACH_DIRECTORY "/%s%s", name, suffix) < 0 ? NULL : path;
}

char *attach_state_session(const char *name)
{
	return path_of(name, ".session");
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
		snprintf(err, len, "%s: %s%s", path ? path : ATTACH_DIRECTORY, fds_strerror(r),
			 r == -EACCES ? ": expected root, who alone can make block devices" : "");
	return r;
}

void attach_state_unlock(int fd, const char *name)
{
	_cleanup_free_ char *path = path_of(name, ".lock");

	lock_file_drop(fd, AT_FDCWD, path ? path : "");
}

bool attach_state_served(const char *name)
{
	_cleanup_free_ char *path = path_of(name, ".lock");
	struct stat st;
	pid_t pid;

	/* Trying to lock would keep a process from its start. */
	return path && stat(path, &st) == 0 && lock_holders(&st, &pid, 1);
}

/* True if process @pid has the file @st open.  Asks no server of a file system. */
static bool has_open(const char *pid, const struct stat *st)
{
	_cleanup_free_ char *path = NULL;
	const struct dirent *e;
	bool found = false;
	struct statx other;
	DIR *dir;

	dir = asprintf(&path, "/proc/%s/fd", pid) < 0 ? NULL : opendir(path);
	while (dir && !found && (e = readdir(dir)))
		found = statx(dirfd(dir), e->d_name, AT_STATX_DONT_SYNC, STATX_INO, &other) == 0 &&
			makedev(other.stx_dev_major, other.stx_dev_minor) == st->st_dev &&
			other.stx_ino == st->st_ino;
	if (dir)
		closedir(dir);
	return found;
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
	unsigned most;
} numbers[] = {
	{ "index", offsetof(struct attach_state, index), INT_MAX },
	{ "pid", offsetof(struct attach_state, pid), INT_MAX },
	{ "ready", offsetof(struct attach_state, ready), ATTACH_READY },
	{ "wish", offsetof(struct attach_state, wish), ATTACH_WISHES - 1 },
};

static void take_line(struct attach_state *s, const char *key, const char *value)
{
	unsigned n;

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strcmp(texts[i].key, key))
			snprintf((char *)s + texts[i].offset, texts[i].size, "%s", value);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(numbers[i].key, key) &&
		    number_parse_u(value, 0, numbers[i].most, &n))
			*(int *)((char *)s + numbers[i].offset) = (int)n;
	}
}

void attach_state_take(struct attach_state *s, const char *name, char *text)
{
	char *save, *line, *value;

	*s = (struct attach_state){ .index = -1 };
	snprintf(s->name, sizeof(s->name), "%s", name);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		value = strchr(line, '=');
		if (!value)
			continue;
		*value = '\0';
		take_line(s, line, value + 1);
	}
}

void attach_state_put(const struct attach_state *s, FILE *out)
{
	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
		fprintf(out, "%s=%s\n", texts[i].key, (const char *)s + texts[i].offset);
	for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++)
		fprintf(out, "%s=%d\n", numbers[i].key,
			*(const int *)((const char *)s + numbers[i].offset));
}

/* ---- files ---- */

int attach_state_read(struct attach_state *s, const char *name, char *err, size_t len)
{
	_cleanup_free_ char *path = path_of(name, "");
	struct plain_file file = { 0 };
	char why[128] = "no memory", none[] = "";
	int r = path && access(path, F_OK) < 0 ? -errno : 0;

	attach_state_take(s, name, none);
	if (r == -ENOENT) {
		snprintf(err, len, "%s is not attached", name);
		return r;
	}
	r = path ? plain_file_load(path, STATE_MAX, &file, why, sizeof(why)) : -ENOMEM;
	if (r < 0) {
		snprintf(err, len, "%s: %s: remove this file, and rtrs-attach finds the device "
			 "again", path ? path : ATTACH_DIRECTORY, why);
		return r;
	}
	attach_state_take(s, name, file.text);
	plain_file_free(&file);
	return 0;
}

/* Put the @n bytes of @text in the place of what the file @path has.  A state fits into the page
 * that the file has already.  A shorter text ends with empty lines. */
static int overwrite(const char *path, const char *text, size_t n)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *page = malloc(STATE_MAX);
	struct stat st;

	if (!page || fd < 0 || fstat(fd, &st) < 0 || n > STATE_MAX || st.st_size > STATE_MAX)
		return -ENOSPC;
	memset(page, '\n', STATE_MAX);
	memcpy(page, text, n);
	n = MAX(n, (size_t)st.st_size);
	return pwrite(fd, page, n, 0) == (ssize_t)n ? 0 : -ENOSPC;
}

int attach_state_write(const struct attach_state *s, char *err, size_t len)
{
	_cleanup_free_ char *path = path_of(s->name, ""), *text = NULL;
	char why[128] = "no memory";
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r = -ENOMEM;

	if (f) {
		attach_state_put(s, f);
		r = fclose(f) || !path ? -ENOMEM : 0;
	}
	if (r == 0)
		r = plain_file_write(path, text, n, why, sizeof(why));
	/* A device must not stay for want of room: the wish of rtrs-detach is a digit. */
	if (r == -ENOSPC && overwrite(path, text, n) == 0)
		return 0;
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

pid_t attach_state_process(const char *name)
{
	_cleanup_free_ char *path = path_of(name, ".lock");
	struct attach_state state;
	const struct dirent *e;
	char err[256], own[16];
	struct stat st;
	pid_t pid = 0;
	DIR *dir;

	if (!path || stat(path, &st) < 0)
		return 0;
	/* The parent of a daemon that is not ready has it open, too. */
	if (attach_state_read(&state, name, err, sizeof(err)) == 0 && state.pid > 0) {
		snprintf(own, sizeof(own), "%d", state.pid);
		if (has_open(own, &st))
			return state.pid;
	}
	dir = opendir("/proc");
	while (dir && !pid && (e = readdir(dir))) {
		if (isdigit((unsigned char)*e->d_name) && atoi(e->d_name) != (int)getpid() &&
		    has_open(e->d_name, &st))
			pid = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return pid;
}

static int is_state(const struct dirent *e)
{
	return attach_name_ok(e->d_name);
}

static int is_lost(const struct dirent *e)
{
	_cleanup_free_ char *path = path_of(e->d_name, "");

	return is_state(e) && path && access(path, F_OK) < 0;
}

/* Append the names in @dir to the @n of *@names.  Their number, or -errno. */
static int add_names(char ***names, int n, const char *dir, int (*wants)(const struct dirent *e))
{
	struct dirent **entries;
	int more = scandir(dir, &entries, wants, alphasort), r = n;
	char **all;

	if (more < 0)
		return errno == ENOENT ? n : -errno;
	all = realloc(*names, (size_t)(n + more + 1) * sizeof(**names));
	if (all)
		*names = all;
	for (int i = 0; i < more; i++) {
		if (all && (all[r] = strdup(entries[i]->d_name)))
			r++;
		free(entries[i]);
	}
	free(entries);
	return r;
}

int attach_state_names(char ***names, char *err, size_t len)
{
	int n;

	*names = NULL;
	n = add_names(names, 0, ATTACH_DIRECTORY, is_state);
	if (n < 0)
		return fmt_error(n, err, len, ATTACH_DIRECTORY ": %s", fds_strerror(n));
	return MAX(add_names(names, n, ATTACH_LINKS, is_lost), n);
}

void attach_state_names_free(char **names, int n)
{
	for (int i = 0; names && i < n; i++)
		free(names[i]);
	free(names);
}
