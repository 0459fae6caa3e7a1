/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log on their way to a thread that writes them: a reader who does not read stops that
 * thread alone.  For log.c; programs call log_begin() and log_end() (log.h).  Short: private. */
#ifndef BASE_LOG_QUEUE_H
#define BASE_LOG_QUEUE_H

#include <stdbool.h>

#include "log.h"

/* Write the line now, on this thread: log.c. */
typedef void log_write_fn(enum log_level level, const char *text, const struct log_fields *fields);

/* Start the thread, which writes by @write.  0 or -errno. */
int log_queue_begin(log_write_fn *write);
/* Write what waits, and join the thread.  Give up if the thread has written for LOG_END_MS without
 * a pause: it stays, and @left, if not NULL, gets it. */
void log_queue_end(log_left_fn *left);
/* Give a copy of the line to the thread, and wait until it is written, for LOG_WAIT_MS at most, and
 * only if no earlier line has taken longer: a program that dies has written its last line.  false:
 * there is no thread.  Any thread; locks may be held. */
bool log_queue_put(enum log_level level, const char *text, const struct log_fields *fields);

#endif
