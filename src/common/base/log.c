/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the process-wide sink and level.  Set once before threads start, read by all after. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "names.h"
#include "util.h"

#define LOG_LINE_LEN 1024		/* a line is cut here, and so is whole in a pipe */

const char *const log_level_names[LOG_LEVELS] = { "error", "warning", "info", "debug" };

void log_to_stderr(const char *fmt, ...)
{
	char text[LOG_LINE_LEN + 128];
	struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	const char *from = text;
	va_list ap;
	ssize_t n;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = MIN(len, (int)sizeof(text) - 1);
	/* Not stdio, whose lock would keep others waiting.  Whoever shares stderr may have made it
	 * O_NONBLOCK. */
	while (len > 0) {
		n = write(STDERR_FILENO, from, (size_t)len);
		if (n < 0 && errno == EAGAIN)
			n = poll(&pfd, 1, -1) < 0 ? -1 : 0;
		if (n < 0 && errno != EINTR)
			return;
		from += MAX(n, 0);
		len -= (int)MAX(n, 0);
	}
}

static void stderr_sink(enum log_level level, const char *line)
{
	log_to_stderr("%s: %s\n", log_level_names[level], line);
}

static log_sink_fn *log_sink = stderr_sink;
static log_record_fn *log_record;
static _Atomic(enum log_level) log_max = LOG_LEVEL_INFO;

void log_init(log_sink_fn *sink, enum log_level level)
{
	log_sink = sink ? sink : stderr_sink;
	log_set_level(level);
}

void log_init_record(log_record_fn *record)
{
	log_record = record;
}

enum log_level log_level(void)
{
	return atomic_load_explicit(&log_max, memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_max, level, memory_order_relaxed);
}

bool log_wants(enum log_level level)
{
	return level <= log_level();
}

static void pass_on(enum log_level level, const char *line, const struct log_fields *fields)
{
	if (!log_record || !log_record(level, line, fields))
		log_sink(level, line);
}

int log_begin(void)
{
	return log_queue_begin(pass_on);
}

/* A line of @level, with @fields or NULL. */
__attribute__((format(printf, 4, 0)))
static void write_line(enum log_level level, const struct log_fields *fields, const char *obj,
		       const char *fmt, va_list ap)
{
	static const struct log_fields none;
	int saved_errno = errno;
	char line[LOG_LINE_LEN];
	int n = 0;

	if (!log_wants(level))
		return;
	if (obj && *obj)
		n = snprintf(line, sizeof(line), "%s: ", obj);
	if (n < 0 || (size_t)n >= sizeof(line))
		n = 0;
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	mask_control(line);	/* a peer chooses session and export names */
	if (!log_queue_put(level, line, fields ? fields : &none))
		pass_on(level, line, fields ? fields : &none);
	errno = saved_errno;
}

void log_write(enum log_level level, const char *obj, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(level, NULL, obj, fmt, ap);
	va_end(ap);
}

void log_lines(enum log_level level, const char *before, const char *text)
{
	while (*text) {
		int len = (int)strcspn(text, "\n");

		log_write(level, NULL, "%s%.*s", before, len, text);
		text += len + (text[len] == '\n');
	}
}

void log_event(enum log_level level, const struct log_fields *fields, const char *obj,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(level, fields, obj, fmt, ap);
	va_end(ap);
}

bool log_limit_pass(struct log_limit *limit, const char *obj)
{
	unsigned told = 0;
	uint64_t now;
	bool pass;

	pthread_mutex_lock(&limit->lock);
	/* ORDER: read under the lock, or a thread held up here would see a start after its now */
	now = clock_now_ms();
	if (now - limit->window_start_ms >= limit->interval_ms) {
		limit->window_start_ms = now;
		limit->in_window = 0;
		told = limit->held_back;
		limit->held_back = 0;
	}
	pass = limit->in_window < limit->burst;
	if (pass)
		limit->in_window++;
	else
		limit->held_back++;
	pthread_mutex_unlock(&limit->lock);

	if (told)
		log_warn(obj, "%u similar lines were suppressed", told);
	return pass;
}

#define ROW(name_, hex_, means_) [LOG_ID_##name_] = { #name_, hex_, means_ },

const struct log_id_row log_id_rows[LOG_IDS] = { LOG_ID_ROWS(ROW) };
