/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: a lock is its descriptor.  The holder of the lock removes the file.  So a process
 * that has locked a file checks whether the file still has the name. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lock-file.h"
#include "names.h"

#define TRIES 16			/* files removed between open and lock */

static bool file_has_name(const struct stat *st, int dirfd, const char *name)
{
	struct stat now;

	return !fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

/* Another user can lock a file, if that user made the file or may open the file. */
static bool is_ours_alone(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 077);
}

/* Returns a descriptor with the lock, -ESTALE if the file was removed meanwhile, or -errno. */
static int lock_take_once(int dirfd, const char *name, int how)
{
	int fd, rc = 0;
	struct stat st;

	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (!is_ours_alone(&st))
		rc = -EPERM;
	if (!rc && flock(fd, how | LOCK_NB))
		rc = -errno;
	if (!rc && !file_has_name(&st, dirfd, name))
		rc = -ESTALE;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int lock_file_take(int dirfd, const char *name, int how)
{
	int rc = -ESTALE;

	for (unsigned i = 0; i < TRIES && rc == -ESTALE; i++)
		rc = lock_take_once(dirfd, name, how);
	return rc == -ESTALE ? -EWOULDBLOCK : rc;
}

void lock_file_drop(int fd, int dirfd, const char *name)
{
	struct stat st;

	/* ORDER: remove the file while alone, and before the close gives up the lock.  Of several
	 * readers the last removes the file. */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && file_has_name(&st, dirfd, name))
		unlinkat(dirfd, name, 0);
	close(fd);
}

/* ---- who has a lock ---- */

/* The process in a line of /proc/locks like "1: FLOCK ADVISORY WRITE 123 08:01:99 0 EOF", if the
 * lock is on the file @st; else 0.  The line of a waiting process has "->" in front of the kind. */
static pid_t line_holder(const char *line, const struct stat *st)
{
	unsigned maj, min;
	uint64_t ino;
	int pid;

	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%" SCNu64, &pid, &maj, &min, &ino) != 4)
		return 0;
	return maj == major(st->st_dev) && min == minor(st->st_dev) && ino == st->st_ino ? pid : 0;
}

size_t lock_holders(const struct stat *st, pid_t *pids, size_t max)
{
	FILE *f = fopen("/proc/locks", "re");
	char line[256];
	size_t n = 0;

	if (!f)
		return 0;
	while (n < max && fgets(line, sizeof(line), f)) {
		pids[n] = line_holder(line, st);
		n += pids[n] > 0;
	}
	fclose(f);
	return n;
}

bool lock_holder_lives(pid_t pid)
{
	return !kill(pid, 0) || errno != ESRCH;
}

bool lock_holder_name(pid_t pid, char *buf, size_t len)
{
	char path[32], comm[32] = "";
	bool lives;
	FILE *f;

	if (pid <= 0) {
		snprintf(buf, len, "another process");
		return true;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
		fclose(f);
	}
	mask_control(comm);
	lives = *comm || lock_holder_lives(pid);
	if (*comm)
		snprintf(buf, len, "process %d (%s)", pid, comm);
	else
		snprintf(buf, len, "process %d%s", pid, lives ? "" : ", which has ended");
	return lives;
}
