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

/* Owns the numbers of messages, each made by systemd-id128(1) for this table. */

#define ID(name_, hex_, means_) [LOG_ID_##name_] = { #name_, hex_, means_ }

const struct log_id_row log_id_rows[LOG_IDS] = {
	ID(STARTED, "4d8a4fbaaa6d4567885dd480dcc17d63",
	   "the server serves its exports"),
	ID(STOPPING, "c5e6975259e448f4a01cdd5062660e0b",
	   "the server stops"),
	ID(LISTENING, "8e169ba806b347408b63e26b3b3da18b",
	   "the server listens on an address"),
	ID(LISTEN_LOST, "0d65bee15e8d42ddbdab1bc138b2e383",
	   "the server no longer listens on an address"),
	ID(RELOADED, "046d19469a6d4f82bb91a498aef3f1e3",
	   "a reload was carried out"),
	ID(RELOAD_REFUSED, "345e98452aee439d97f0d1ca165afedb",
	   "a reload has failed, and changed at most keys and certificates"),
	ID(EXPORT_ADDED, "35b5d1b64e514fe28a8e5cff45c155b4",
	   "an export is available"),
	ID(EXPORT_REMOVED, "ae74517f8050431495442ec1dd93d1f9",
	   "an export was removed"),
	ID(EXPORT_RESIZED, "066314bbce1047f79c7f41dc78d58089",
	   "the size of an export has changed"),
	ID(EXPORT_REPLACED, "7b0bd1d0028f4b3f9caf86ede461e45f",
	   "an export came back as another file, and is not used"),
	ID(EXPORT_FAILED, "940a8c6421f14804a3c6e9cdc536a961",
	   "an export has no storage, or not what its path names"),
	ID(LIMITS_SET, "6bd85d83d02d4016a11e836e6bcc0186",
	   "an export has other limits, rules or another priority"),
	ID(LOCK_BROKEN, "755f4cdbeea149f5b61cc09a2a29e87b",
	   "an administrator made this server take the lock of a shared export"),
	ID(SESSION_OPENED, "ce472f900bb842d189c2d4067896265d",
	   "the first path of a session is up"),
	ID(SESSION_CLOSED, "5d7fe366181e43c2a8960291e345307c",
	   "the last path of a session is gone"),
	ID(SESSION_LOST, "7e8d9e89798349468cf765a1b52dc28d",
	   "a session is without a path for longer than its requests wait"),
	ID(PATH_UP, "3fda4ee70bca4780b9bc0f4650a79a8e",
	   "a path is up"),
	ID(PATH_DOWN, "dea95eba5f354b3b81c3940ca9fcd6e4",
	   "a path that was up is lost"),
	ID(PATH_FAILED, "5fe0ecebbecf43be941286b09cf437b8",
	   "a path cannot be set up"),
	ID(PATH_GIVEN_UP, "1a473526744d49a7b84739ce1fb9ac4e",
	   "a path is not tried again"),
	ID(DIGEST_WRONG, "c2246d7ea7be407884c7f67fa32d51c0",
	   "a request changed on its way"),
	ID(DEVICE_OPENED, "fc5b531a986244dda85f0b814a681c5c",
	   "a session has an export open"),
	ID(DEVICE_CLOSED, "887ec5705bb64d188d6fefba59ab2962",
	   "a session has closed an export"),
	ID(DEVICE_KICKED, "4f5c8907ba3c4706bbada3b4d8dcd947",
	   "the server closes an export of a session"),
	ID(DEVICE_LOST, "ee394f0945bb437a8d47607d3e7015e1",
	   "an export cannot be used through the session that had it open"),
	ID(OPEN_REFUSED, "59ba89cca4e0480c967a7284c6b814b4",
	   "an export is refused to a client"),
	ID(CLIENT_REFUSED, "85bea993c7234320ab49a7f65bfe7fae",
	   "a connection is refused"),
	ID(PEER_GARBAGE, "ab48dae8978143a4ad5d39be778fc8f8",
	   "a peer broke the protocol"),
	ID(CLIENT_DROPPED, "601c5c7fb05a4324bc5704d71680f3b7",
	   "the connection of an NBD client is ended"),
	ID(IO_FAILED, "618220425e444ec78364c908863c0c08",
	   "the storage failed an operation"),
	ID(IO_STUCK, "8a01da9a8e294e5da30c884ceaf9210a",
	   "the storage does not answer"),
	ID(SYNC_FAILED, "2fb5b0d3dee340c381f3487501d1e945",
	   "the storage failed a sync"),
	ID(WRITES_LOST, "0530374ed2604e6c9e8143466c1d087c",
	   "writes that were acknowledged may be lost"),
	ID(CALL_DENIED, "8cb5f8a3c9154938b5baf5b2f2793166",
	   "the filter denies a system call"),
};
