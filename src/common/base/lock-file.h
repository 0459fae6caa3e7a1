/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that only this user's processes can hold: flock(2) on a file of mode 0600.  flock(2) on a
 * directory or on a file that others may open is theirs to hold, too.  Any thread. */
#ifndef BASE_LOCK_FILE_H
#define BASE_LOCK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Lock file @name in @dirfd (AT_FDCWD: as openat(2)), which is made if it is missing, with @how,
 * LOCK_EX or LOCK_SH.  Never waits.  Returns a descriptor whose description holds the lock, to be
 * given to lock_file_drop(); -EWOULDBLOCK: another process has it; -EPERM: @name is no regular file
 * of this user alone; or -errno. */
int lock_file_take(int dirfd, const char *name, int how);
/* Remove @name if nobody else has the lock, and close @fd. */
void lock_file_drop(int fd, int dirfd, const char *name);

/* The processes that took flock(2) on the file @st, of /proc/locks, up to @max of them into @pids;
 * a process may have ended since and have left the lock to a child or to the kernel.  Returns how
 * many; 0 also if it cannot be known: another file system's device number, another pid
 * namespace. */
size_t lock_holders(const struct stat *st, pid_t *pids, size_t max);
/* False if there is no process @pid.  /proc does not tell: with hidepid it hides those of
 * others. */
bool lock_holder_lives(pid_t pid);
/* Who @pid is, into @buf: "process 12 (name)", "process 12" if /proc hides its name, "process 12,
 * which has ended", "another process" if it is 0.  Returns false if it has ended. */
bool lock_holder_name(pid_t pid, char *buf, size_t len);

#endif
