/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes lines of the log to stderr.  Any thread.  Owns nothing. */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "journal.h"
#include "sink.h"

#define STAMP_LEN sizeof("2026-01-31T23:59:59.999+00:00")

/* The journal takes the level from a prefix.  Of lines before the server runs, and of those that
 * journal.h does not take. */
static void journal_sink(enum log_level level, const char *line)
{
	static const char *const prefix[] = { SD_ERR, SD_WARNING, SD_INFO, SD_DEBUG };

	log_to_stderr("%s%s\n", prefix[level], line);
}

static void typed_sink(enum log_level level, const char *line)
{
	log_to_stderr("rtrs-server: %s: %s\n", log_level_names[level], line);
}

/* Local time as in RFC 3339. */
static void stamp_line(char stamp[STAMP_LEN])
{
	char second[32], zone[8];
	struct timespec now = log_line_time();
	struct tm tm;

	localtime_r(&now.tv_sec, &tm);
	strftime(second, sizeof(second), "%FT%T", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(stamp, STAMP_LEN, "%.19s.%03u%.3s:%.2s", second,
		 (unsigned)(now.tv_nsec / 1000000) % 1000, zone, zone + 3);
}

static void stamped_sink(enum log_level level, const char *line)
{
	char stamp[STAMP_LEN];

	stamp_line(stamp);
	log_to_stderr("%s rtrs-server: %s: %s\n", stamp, log_level_names[level], line);
}

log_sink_fn *sink_for(bool runs)
{
	if (journal_is_stderr())
		return journal_sink;
	return runs ? stamped_sink : typed_sink;
}
