/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log as entries of systemd's journal.  Alone knows sd-journal.  Short: two calls. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>

#include "log.h"

/* True if stderr leads to the journal: then a line on stderr may begin with its priority
 * (sd-daemon(3)). */
bool journal_is_stderr(void);

/* For log_init_record(): a function that makes an entry with PRIORITY, MESSAGE, MESSAGE_ID,
 * SESSION, EXPORT, PEER, IDENTITY, MODE and REASON as far as the line has them, and
 * SYSLOG_IDENTIFIER, which is @program, static.  NULL if stderr is not the journal, or the
 * journal's socket is not to be seen in this process's root directory.  Once, before any thread
 * starts; the function then is for any thread.  The function waits for the journal while the
 * journal's queue is full, as a sink does (log_begin()). */
log_record_fn *journal_open(const char *program);

#endif
