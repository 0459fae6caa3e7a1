/* SPDX-License-Identifier: BSD-3-Clause */
/* The holders of flock(2) on a file, and whether a server has to wait for a holder.  Main thread,
 * or a worker (export-life.h); reads /proc. */
#ifndef STORE_FILE_HOLDER_H
#define STORE_FILE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Every reader of a file may lock the file.  A holder that may not write is no reason to wait.
 * Returns true if a holder of a lock on @fd's file may write to the file as far as its user (root,
 * ours, the owner) and the mode tell, or if the holder cannot be known.  Returns false if all
 * holders belong to users who may not write.  Returns false, too, if no process has the lock: the
 * kernel keeps the lock for a process that has ended, or a process hides it.  @who names a holder:
 * "process 12 (name) of user 1001".  In a container, a PID namespace that is not the first, a lock
 * that no visible process asked for and has counts. */
bool store_file_holder_counts(int fd, char *who, size_t len);

#endif
