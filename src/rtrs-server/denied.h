/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts system calls that the filter denied, and tells the log about them.  The thread that was
 * denied a call only counts, because it may hold any lock; the main thread tells. */
#ifndef DENIED_H
#define DENIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* @let_through: the calls are counted and made all the same.  @call_name writes the name of a call
 * (filter.h).  Main thread.  0 or -errno. */
int denied_open(bool let_through, void (*call_name)(int nr, char *name, size_t len));
/* Readable when there is something to tell.  Main thread. */
int denied_fd(void);
/* Note that thread @tid asked for system call @nr.  Any thread; safe in a signal handler. */
void denied_note(int nr, pid_t tid);
/* How often calls were denied, or let through, since the start.  Any thread. */
uint64_t denied_count(void);
/* Write a line for each call that was denied since the last line about that call.  The rate of
 * lines is bounded; @last: this is the end, and all are told.  Main thread. */
void denied_tell(bool last);
/* Main thread, the filter stays. */
void denied_close(void);

#endif
