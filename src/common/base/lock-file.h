/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that only this user's processes can hold: flock(2) on a file of mode 0600.  A directory, or
 * a file that others may open, does not do: other users could hold flock(2) there.  Any thread.
 * Short: five calls. */
#ifndef BASE_LOCK_FILE_H
#define BASE_LOCK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Take a lock @how, LOCK_EX or LOCK_SH, on file @name in @dirfd (AT_FDCWD: as openat(2)), which is
 * made if missing.  Never waits.  Returns a descriptor with the lock, to be given to
 * lock_file_drop(), or
 *  -EWOULDBLOCK	another process has the lock
 *  -EPERM		@name is no regular file of this user alone
 *  -errno		of opening or locking */
int lock_file_take(int dirfd, const char *name, int how);
/* Remove @name if no other process has the lock, and close @fd. */
void lock_file_drop(int fd, int dirfd, const char *name);

/* Write into @pids up to @max processes that took flock(2) on the file @st, by /proc/locks.  A
 * process may have ended since, and have left the lock to a child or to the kernel.  Returns the
 * number of processes, 0 also if the holders cannot be known: another file system's device number.
 * In a PID namespace that is not the first /proc/locks leaves out processes that the namespace does
 * not show or that have ended. */
size_t lock_holders(const struct stat *st, pid_t *pids, size_t max);
/* False if no process @pid exists.  /proc cannot answer: with hidepid, /proc hides the processes of
 * others. */
bool lock_holder_lives(pid_t pid);
/* Describe @pid in @buf: "process 12 (name)"; "process 12" if /proc hides its name; "process 12,
 * which has ended"; "another process" if @pid is 0.  Returns false if @pid has ended. */
bool lock_holder_name(pid_t pid, char *buf, size_t len);

#endif
