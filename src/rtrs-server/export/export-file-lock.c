/* SPDX-License-Identifier: BSD-3-Clause */
/* One server at a time for a file that is exported.  Owns nothing but the time in which the server
 * waits; main thread, at start.  A start that waits can be ended with SIGTERM, because signals are
 * not blocked yet.
 *
 * The lock (flock(2)) is on the file description that is a fixed file of the rings: it comes free
 * when no request of a dead server is in the storage any more (doc/decisions.md D6). */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "clock.h"
#include "export-file.h"
#include "log.h"

#define RETRY_MS 20
#define RETRY_SLOW_MS 200
#define TELL_MS 1000			/* a server that was killed leaves sooner as a rule */
#define TELL_AGAIN_MS 60000

/* ---- who has it ---- */

/* The process in a line of /proc/locks like "1: FLOCK ADVISORY WRITE 123 08:01:99 0 EOF", if that
 * is a lock on @st's file; else 0.  One who waits has "->" in front of the kind. */
static int lock_line_holder(const char *line, const struct stat *st)
{
	unsigned maj, min;
	uint64_t ino;
	int pid;

	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%" SCNu64, &pid, &maj, &min, &ino) != 4)
		return 0;
	return maj == major(st->st_dev) && min == minor(st->st_dev) && ino == st->st_ino ? pid : 0;
}

/* 0: cannot be told, as on file systems whose stat(2) has another device number than the kernel. */
static int find_holder(int fd)
{
	FILE *f = fopen("/proc/locks", "re");
	struct stat st;
	char line[256];
	int pid = 0;

	if (!f)
		return 0;
	if (!fstat(fd, &st)) {
		while (!pid && fgets(line, sizeof(line), f))
			pid = lock_line_holder(line, &st);
	}
	fclose(f);
	return pid;
}

static const char *holder_name(int fd, char *name, size_t size)
{
	int pid = find_holder(fd);
	char path[32], comm[32] = "";
	FILE *f;

	if (pid <= 0) {
		snprintf(name, size, "another process");
		return name;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = '\0';
		fclose(f);
	}
	if (*comm)
		snprintf(name, size, "process %d (%s)", pid, comm);
	else
		snprintf(name, size, "process %d, which has ended and whose last requests are still in the "
			 "storage", pid);
	return name;
}

/* ---- waiting ---- */

static void tell_waiting(const struct export *ex, uint64_t waited_ms)
{
	char name[128];

	holder_name(export_file(ex)->fd, name, sizeof(name));
	log_warn(ex->name, "'%s' is locked by %s: waiting for it since %llu s (--no-lock would not "
		 "wait, and is not safe)", ex->path, name, (unsigned long long)waited_ms / 1000);
}

static void sleep_ms(unsigned ms)
{
	const struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&t, NULL);
}

/* 0 or -errno. */
static int lock_wait(const struct export *ex, int how)
{
	uint64_t since_ms = clock_now_ms(), tell_ms = since_ms + TELL_MS, now;
	bool told = false;

	while (flock(export_file(ex)->fd, how | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		now = clock_now_ms();
		if (now >= tell_ms) {
			tell_waiting(ex, now - since_ms);
			tell_ms = now + TELL_AGAIN_MS;
			told = true;
		}
		sleep_ms(told ? RETRY_SLOW_MS : RETRY_MS);
	}
	if (told)
		log_info(ex->name, "'%s' is locked by this server now", ex->path);
	return 0;
}

int export_file_lock_check_same(const struct export *ex, char *err, size_t errlen)
{
	struct stat st;
	bool same;

	if (stat(ex->path, &st)) {
		snprintf(err, errlen, "export '%s': '%s' has gone since it was opened: %s", ex->name,
			 ex->path, strerror(errno));
		return -errno;
	}
	if (ex->is_block)
		same = S_ISBLK(st.st_mode) && st.st_rdev == ex->dev;
	else
		same = st.st_dev == ex->dev && st.st_ino == ex->ino &&
		       (uint64_t)st.st_size == export_size(ex);
	if (same)
		return 0;
	snprintf(err, errlen, "export '%s': '%s' is another file or has another size than when it was "
		 "opened: start again", ex->name, ex->path);
	return -ESTALE;
}

int export_file_lock(struct export *ex, char *err, size_t errlen)
{
	int rc = lock_wait(ex, ex->readonly ? LOCK_SH : LOCK_EX);

	if (!rc)
		return 0;
	snprintf(err, errlen, "export '%s': '%s' cannot be locked: %s: its file system may have no locks "
		 "(--no-lock exports it without, see LOCKS in rtrs-server(8))", ex->name, ex->path,
		 strerror(-rc));
	return rc;
}
