/* SPDX-License-Identifier: BSD-3-Clause */
/* One server at a time for what is exported.
 *
 * io_uring does not wait for direct requests when its process is killed: they reach the storage later, and the
 * next server would have answered and stored newer data by then.  So each file has a lock (flock(2)) on the
 * open file description that is a fixed file of the rings.  A ring keeps its fixed files until its last
 * request has ended, so the lock of a server that is dead comes free when nothing of it is in the storage any more.
 *
 * Exclusive for a file that is written, shared for one that is only exported read-only. */
#ifndef EXPORT_LOCK_H
#define EXPORT_LOCK_H

#include <stddef.h>

struct exports;

/* Lock the file of each export of @e; once, after the last exports_add() and before any IO.  Waits for whoever
 * has a lock, for as long as that takes, and says so with the name of the holder.  The locks end with the
 * descriptions.  Main thread; nothing else runs yet.  Returns 0, or -errno with one line in @err: a file system
 * without flock(), or a path that names another file now than when it was opened. */
int export_lock_all(struct exports *e, char *err, size_t errlen);

#endif
