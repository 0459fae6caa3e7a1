/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  /proc/locks names the process that asked for a lock.  The lock belongs to the
 * file description, which a child or another process may have since.  So this file looks through
 * the processes for the description, by the "lock:" lines of their fdinfo.  The real user of a
 * process counts: everybody may hand a description to a set-user-ID program.
 *
 * In a PID namespace of its own, as a container has, /proc/locks leaves out each lock whose asker
 * the namespace does not show or has ended; fdinfo has the lock all the same. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cleanup.h"
#include "lock-file.h"
#include "number.h"
#include "store-file-priv.h"

#define PIDS_MAX 64
#define FIRST_PID_NS 0xeffffffcu	/* the kernel's PROC_PID_INIT_INO */

struct search {
	struct stat st;
	char where[64];			/* "08:01:99 ", in the line of a lock on the file */
	pid_t asked[PIDS_MAX];		/* for the locks; may have ended */
	size_t nasked;
	pid_t counts, other;		/* 0: none found */
	uid_t other_uid;
	bool single;			/* the file has no lock but the one that was found */
	bool hidden;			/* some processes are hidden, or closed to this process */
};

/* ---- one process ---- */

/* @single: true if the lock excludes all others. */
static bool fdinfo_has_lock(int dirfd, const char *name, const char *where, bool *single)
{
	char line[256];
	bool found = false;
	FILE *f;
	int fd;

	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "lock:", 5) && strstr(line, " FLOCK ") &&
			strstr(line, where);
	*single = *single || (found && strstr(line, " WRITE "));
	fclose(f);
	return found;
}

/* 1: @pid has a description with a lock on the file; 0: no such description; -1: @pid is closed to
 * this process. */
static int process_has_lock(pid_t pid, const char *where, bool *single)
{
	const struct dirent *entry;
	char path[32];
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		return lock_holder_lives(pid) ? -1 : 0;
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' &&
			fdinfo_has_lock(dirfd(dir), entry->d_name, where, single);
	closedir(dir);
	return found;
}

/* True if @line, "Groups:" or "Gid:", lists @gid. */
static bool line_has_gid(const char *line, gid_t gid)
{
	const char *p = strchr(line, ':') + 1;
	uint64_t n;

	while (number_prefix(p + strspn(p, " \t"), &p, &n)) {
		if (n == gid)
			return true;
	}
	return false;
}

/* Find the real user of @pid, and whether @gid is a group of @pid.  False: @pid has ended, or is
 * hidden. */
static bool process_user(pid_t pid, gid_t gid, uid_t *uid, bool *in_group)
{
	_cleanup_free_ char *line = NULL;
	bool known = false;
	size_t size = 0;
	char path[32];
	FILE *f;

	*in_group = false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (getline(&line, &size, f) > 0) {
		if (!strncmp(line, "Uid:", 4))
			known = sscanf(line + 4, "%u", uid) == 1;
		else if (!strncmp(line, "Gid:", 4) || !strncmp(line, "Groups:", 7))
			*in_group = *in_group || line_has_gid(line, gid);
	}
	fclose(f);
	return known;
}

/* Note @pid, which has the lock, as a process that counts or as another one. */
static void holder_judge(struct search *s, pid_t pid)
{
	bool in_group;
	uid_t uid;

	if (!process_user(pid, s->st.st_gid, &uid, &in_group)) {
		s->hidden = s->hidden || lock_holder_lives(pid);
		return;
	}
	if (!uid || uid == geteuid() || uid == s->st.st_uid || (s->st.st_mode & S_IWOTH) ||
	    (in_group && (s->st.st_mode & S_IWGRP))) {
		s->counts = pid;
	} else {
		s->other = pid;
		s->other_uid = uid;
	}
}

/* ---- all processes ---- */

static bool holder_has_asked(const struct search *s, pid_t pid)
{
	for (size_t i = 0; i < s->nasked; i++) {
		if (s->asked[i] == pid)
			return true;
	}
	return false;
}

/* Root may look into every process but those with more rights than a container gives root; such a
 * process is a holder only if its own request for the lock is known. */
static void holder_look_into(struct search *s, pid_t pid)
{
	int has = process_has_lock(pid, s->where, &s->single);

	if (has > 0 || (has < 0 && holder_has_asked(s, pid)))
		holder_judge(s, pid);
	else if (has < 0 && geteuid())
		s->hidden = true;
}

/* True if no namespace of PIDs is around this process's own: no process is outside of it. */
static bool pid_ns_is_first(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NS;
}

static void holder_look_through(struct search *s)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");

	/* By number first: /proc with hidepid=2 does not list the processes of others. */
	for (size_t i = 0; i < s->nasked; i++)
		holder_look_into(s, s->asked[i]);
	if (!proc || (access("/proc/1", F_OK) && errno == ENOENT && lock_holder_lives(1)))
		s->hidden = true;
	while (proc && !s->counts && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);	/* 0: of no process */

		if (pid)
			holder_look_into(s, pid);
	}
	if (proc)
		closedir(proc);
}

/* Describe in @who the process for which the caller waits. */
static void holder_name(const struct search *s, bool first_ns, char *who, size_t len)
{
	pid_t pid = s->counts ? s->counts : s->other ? s->other : s->nasked ? s->asked[0] : 0;
	size_t n;

	lock_holder_name(pid, who, len);
	n = strlen(who);
	if (!s->counts && s->other)
		snprintf(who + n, len - n, " of user %u", s->other_uid);
	else if (!pid && !first_ns)
		snprintf(who + n, len - n, ", which this PID namespace (container) does not show");
}

bool store_file_holder_counts(int fd, char *who, size_t len)
{
	struct search s = { 0 };
	bool first_ns = pid_ns_is_first();

	lock_holder_name(0, who, len);
	if (fstat(fd, &s.st))
		return true;
	s.nasked = lock_holders(&s.st, s.asked, PIDS_MAX);
	if (!s.nasked && first_ns)
		return true;
	s.single = s.nasked == 1 && first_ns;
	snprintf(s.where, sizeof(s.where), " %02x:%02x:%llu ", major(s.st.st_dev),
		 minor(s.st.st_dev), (unsigned long long)s.st.st_ino);
	holder_look_through(&s);
	holder_name(&s, first_ns, who, len);
	/* A process outside of this namespace may have the lock, or a second one beside that of
	 * s.other. */
	s.hidden = s.hidden || (!first_ns && (!s.nasked || s.other));
	/* The holder of a single lock is known.  Of several locks one may be with a hidden
	 * process. */
	return s.counts || (s.hidden && !(s.other && s.single));
}
