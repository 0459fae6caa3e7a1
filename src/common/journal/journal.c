/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends lines to journald.  Any thread.  Owns the name of the program, which is set once. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>
/* The place in the code would be this file, always. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "journal.h"
#include "names.h"

/* sd_journal_sendv() drops entries without a word when this is missing. */
#define JOURNAL_SOCKET "/run/systemd/journal/socket"
/* All fields of an entry: a line has up to 1023 bytes, a name up to 255, a path two addresses
 * beside the name of its session.  What does not fit is cut. */
#define ENTRY_LEN 3328

static const char *journal_program;

/* Compare JOURNAL_STREAM with stderr: every process of a service inherits the variable, whatever
 * stderr is. */
bool journal_is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

struct entry {
	struct iovec iov[10];
	int n;
	size_t len;			/* of @text that is in use */
	char text[ENTRY_LEN];
};

/* Put NAME=@value into @e, unless there is no @value. */
static void entry_add(struct entry *e, const char *name, const char *value)
{
	char *text = e->text + e->len;
	size_t room = sizeof(e->text) - e->len;

	if (!value || !*value || !room)
		return;
	snprintf(text, room, "%s=%s", name, value);
	mask_control(text);
	room = strlen(text);
	e->iov[e->n++] = (struct iovec){ text, room };
	e->len += room;
}

static bool journal_record(enum log_level level, const char *line, const struct log_fields *fields)
{
	static const char *const priority[LOG_LEVELS] = {
		[LOG_LEVEL_ERROR] = "3", [LOG_LEVEL_WARN] = "4", [LOG_LEVEL_INFO] = "6",
		[LOG_LEVEL_DEBUG] = "7",
	};
	struct entry e;

	e.n = 0;
	e.len = 0;
	entry_add(&e, "PRIORITY", priority[level]);
	entry_add(&e, "SYSLOG_IDENTIFIER", journal_program);
	entry_add(&e, "MESSAGE", line);
	entry_add(&e, "MESSAGE_ID", log_id_rows[fields->id].hex);
	entry_add(&e, "SESSION", fields->session);
	entry_add(&e, "EXPORT", fields->export);
	entry_add(&e, "PEER", fields->peer);
	entry_add(&e, "IDENTITY", fields->identity);
	entry_add(&e, "MODE", fields->mode);
	entry_add(&e, "REASON", fields->reason);
	return !sd_journal_sendv(e.iov, e.n);
}

log_record_fn *journal_open(const char *program)
{
	if (!journal_is_stderr() || access(JOURNAL_SOCKET, W_OK) < 0)
		return NULL;
	journal_program = program;
	return journal_record;
}
