/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has flock(2) on a file, and whether a server has to wait for that process.  Main thread, at
 * start; reads /proc. */
#ifndef STORE_FILE_HOLDER_H
#define STORE_FILE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Whoever may read a file may lock it, and is no reason to wait if that is all that this user may
 * do.  Returns true if a holder of a lock on @fd's file may write to the file as far as its user
 * (root, ours, the owner) and the mode tell, or cannot be known.  Returns false if all holders
 * belong to users who may not, or if no process has the lock: then the kernel has it for a process
 * that has ended, or a process hides it.  @who is one of them: "process 12 (name) of user 1001". */
bool store_file_holder_counts(int fd, char *who, size_t len);

#endif
