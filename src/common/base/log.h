/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines with the object's name in front: "path 10.0.0.1@10.0.0.2: heartbeat missed".
 *
 * The function that knows a cause logs the cause once; callers pass the errno on silently.  Nothing
 * above LOG_DEBUG on the IO path.  Lines that a peer can cause go through a struct log_limit.  Any
 * thread.  Preserves errno. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	LOG_LEVELS
};
/* The names of the levels: "error", "warning", "info", "debug". */
extern const char *const log_level_names[LOG_LEVELS];

/* A sink receives a complete line, without a newline or other bytes that mask_control() takes out.
 * Called on the logging thread, or on that of log_begin().  Does not log. */
typedef void log_sink_fn(enum log_level level, const char *line);
/* For a sink: when the line was logged, in CLOCK_REALTIME. */
struct timespec log_line_time(void);
/* For a sink: write a line to stderr in one piece, and wait until stderr takes it. */
void log_to_stderr(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The messages that matter to an alarm.  An id keeps its meaning for ever, whatever the text of the
 * line becomes, and a number is never used again.  The manual says what to do about each
 * (rtrs-server(8), "MESSAGES THAT MATTER"); tests/house.py compares.
 *
 * The name, the number, made by systemd-id128(1), and the meaning of each. */
#define LOG_ID_ROWS(ROW) \
	ROW(STARTED, "4d8a4fbaaa6d4567885dd480dcc17d63", "the server serves its exports") \
	ROW(STOPPING, "c5e6975259e448f4a01cdd5062660e0b", "the server stops") \
	ROW(LISTENING, "8e169ba806b347408b63e26b3b3da18b", "the server listens on an address") \
	ROW(LISTEN_LOST, "0d65bee15e8d42ddbdab1bc138b2e383", \
	    "the server no longer listens on an address") \
	ROW(RELOADED, "046d19469a6d4f82bb91a498aef3f1e3", "a reload was carried out") \
	ROW(RELOAD_REFUSED, "345e98452aee439d97f0d1ca165afedb", \
	    "a reload has failed, and changed at most keys and certificates") \
	ROW(EXPORT_ADDED, "35b5d1b64e514fe28a8e5cff45c155b4", "an export is available") \
	ROW(EXPORT_REMOVED, "ae74517f8050431495442ec1dd93d1f9", "an export was removed") \
	ROW(EXPORT_RESIZED, "066314bbce1047f79c7f41dc78d58089", \
	    "the size of an export has changed") \
	ROW(EXPORT_REPLACED, "7b0bd1d0028f4b3f9caf86ede461e45f", \
	    "an export came back as another file, and is not used") \
	ROW(EXPORT_FAILED, "940a8c6421f14804a3c6e9cdc536a961", \
	    "an export has no storage, or not what its path names") \
	ROW(LIMITS_SET, "6bd85d83d02d4016a11e836e6bcc0186", \
	    "an export has other limits, rules or another priority") \
	ROW(LOCK_BROKEN, "755f4cdbeea149f5b61cc09a2a29e87b", \
	    "an administrator made this server take the lock of a shared export") \
	ROW(SESSION_OPENED, "ce472f900bb842d189c2d4067896265d", \
	    "the first path of a session is up") \
	ROW(SESSION_CLOSED, "5d7fe366181e43c2a8960291e345307c", \
	    "the last path of a session is gone") \
	ROW(SESSION_LOST, "7e8d9e89798349468cf765a1b52dc28d", \
	    "a session is without a path for longer than its requests wait") \
	ROW(PATH_UP, "3fda4ee70bca4780b9bc0f4650a79a8e", "a path is up") \
	ROW(PATH_DOWN, "dea95eba5f354b3b81c3940ca9fcd6e4", "a path that was up is lost") \
	ROW(PATH_FAILED, "5fe0ecebbecf43be941286b09cf437b8", "a path cannot be set up") \
	ROW(PATH_GIVEN_UP, "1a473526744d49a7b84739ce1fb9ac4e", "a path is not tried again") \
	ROW(DIGEST_WRONG, "c2246d7ea7be407884c7f67fa32d51c0", "a request changed on its way") \
	ROW(DEVICE_OPENED, "fc5b531a986244dda85f0b814a681c5c", "a session has an export open") \
	ROW(DEVICE_CLOSED, "887ec5705bb64d188d6fefba59ab2962", "a session has closed an export") \
	ROW(DEVICE_KICKED, "4f5c8907ba3c4706bbada3b4d8dcd947", \
	    "the server closes an export of a session") \
	ROW(DEVICE_LOST, "ee394f0945bb437a8d47607d3e7015e1", \
	    "an export cannot be used through the session that had it open") \
	ROW(OPEN_REFUSED, "59ba89cca4e0480c967a7284c6b814b4", "an export is refused to a client") \
	ROW(CLIENT_REFUSED, "85bea993c7234320ab49a7f65bfe7fae", "a connection is refused") \
	ROW(PEER_GARBAGE, "ab48dae8978143a4ad5d39be778fc8f8", "a peer broke the protocol") \
	ROW(CLIENT_DROPPED, "601c5c7fb05a4324bc5704d71680f3b7", \
	    "the connection of an NBD client is ended") \
	ROW(IO_FAILED, "618220425e444ec78364c908863c0c08", "the storage failed an operation") \
	ROW(IO_STUCK, "8a01da9a8e294e5da30c884ceaf9210a", "the storage does not answer") \
	ROW(SYNC_FAILED, "2fb5b0d3dee340c381f3487501d1e945", "the storage failed a sync") \
	ROW(WRITES_LOST, "0530374ed2604e6c9e8143466c1d087c", \
	    "writes that were acknowledged may be lost") \
	ROW(CALL_DENIED, "8cb5f8a3c9154938b5baf5b2f2793166", "the filter denies a system call")

#define LOG_ID_NAME(name_, hex_, means_) LOG_ID_##name_,
enum log_id {
	LOG_ID_NONE,			/* no alarm needs the line */
	LOG_ID_ROWS(LOG_ID_NAME)
	LOG_IDS
};

struct log_id_row {
	const char *name;	/* as in enum log_id, without LOG_ID_ */
	const char *hex;	/* 128 bits: MESSAGE_ID= of the journal */
	const char *means;
};
/* Of LOG_ID_NONE all members are NULL. */
extern const struct log_id_row log_id_rows[LOG_IDS];

/* A record of a line has these fields beside the text: an alarm needs no regular expression.  Names
 * are those of rtrsctl and the metrics.  NULL: the line is about none.  A name may have bytes that
 * mask_control() takes out. */
struct log_fields {
	enum log_id id;
	const char *session;
	const char *export;
	const char *peer;		/* the path, or, before there is one, the address */
	const char *identity;		/* that the peer has proven */
	const char *mode;		/* in which an export is open, or was to be opened */
	const char *reason;		/* of a refusal, a word of the metrics */
};
/* Fields for the argument of a call: LOG_FIELDS(PATH_UP, .peer = path->name). */
#define LOG_FIELDS(id_, ...) (&(const struct log_fields){ .id = LOG_ID_##id_, ##__VA_ARGS__ })

/* A record takes a line as a sink does, and its fields; false: the sink gets the line. */
typedef bool log_record_fn(enum log_level level, const char *line, const struct log_fields *fields);

/* Set the sink and the least important level that is passed on.  Before any thread starts.  Without
 * a call lines go to stderr at LOG_LEVEL_INFO. */
void log_init(log_sink_fn *sink, enum log_level level);

/* Offer each line to @record before the sink; NULL: none.  Before any thread starts. */
void log_init_record(log_record_fn *record);

/* From now on a thread of the log calls sink and record.  A reader of the log who does not read
 * holds up nobody else for longer than a moment: lines wait in memory, and lines for which there is
 * no room are counted, and the count is logged later.  Once, after the last fork.  0 or -errno. */
int log_begin(void);
/* The thread of the log is left behind in sink or record. */
typedef void log_left_fn(pthread_t thread);
/* Write the lines that wait, and end the thread.  A reader who does not read for LOG_END_MS makes
 * this give up: the code of sink and record must stay where it is until the process ends.  Then
 * @left is called, if not NULL. */
void log_end(log_left_fn *left);

/* True if lines of @level are logged. */
bool log_wants(enum log_level level);
/* The least important level that is passed on.  Any thread. */
enum log_level log_level(void);
/* Pass on lines of @level and of more important levels from now on.  Any thread. */
void log_set_level(enum log_level level);

/* Log a line of @level, with @obj, the object's name, in front; NULL: no name. */
void log_write(enum log_level level, const char *obj, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Log each line of @text, with @before in front. */
void log_lines(enum log_level level, const char *before, const char *text);

/* The same as log_write(), with the fields of a message that matters. */
void log_event(enum log_level level, const struct log_fields *fields, const char *obj,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define log_err(obj, ...) log_write(LOG_LEVEL_ERROR, obj, __VA_ARGS__)
#define log_warn(obj, ...) log_write(LOG_LEVEL_WARN, obj, __VA_ARGS__)
#define log_info(obj, ...) log_write(LOG_LEVEL_INFO, obj, __VA_ARGS__)
#define log_dbg(obj, ...)                                                                          \
	do {                                                                                       \
		if (log_wants(LOG_LEVEL_DEBUG))                                                    \
			log_write(LOG_LEVEL_DEBUG, obj, __VA_ARGS__);                              \
	} while (0)

/* A log_limit lets @burst lines pass in @interval_ms.  Lines held back are counted, and a line
 * before the next one tells the count.  Initialise statically with LOG_LIMIT_INIT. */
struct log_limit {
	pthread_mutex_t lock;
	uint64_t window_start_ms;
	unsigned in_window;
	unsigned held_back;
	unsigned burst;
	unsigned interval_ms;
};

#define LOG_LIMIT_INIT(burst_, interval_ms_)                                                       \
	{ .lock = PTHREAD_MUTEX_INITIALIZER, .burst = (burst_), .interval_ms = (interval_ms_) }

/* True if a line may be written now. */
bool log_limit_pass(struct log_limit *limit, const char *obj);

#define log_limited(limit, level, obj, ...)                                                        \
	do {                                                                                       \
		if (log_limit_pass(limit, obj))                                                    \
			log_write(level, obj, __VA_ARGS__);                                        \
	} while (0)

#define log_event_limited(limit, level, fields, obj, ...)                                          \
	do {                                                                                       \
		if (log_limit_pass(limit, obj))                                                    \
			log_event(level, fields, obj, __VA_ARGS__);                                \
	} while (0)

/* ---- private: log-queue.c, for log.c ----
 *
 * Lines on their way to a thread that writes them: a reader who does not read stops that thread
 * alone. */

/* Write the line now, on this thread: log.c. */
typedef void log_write_fn(enum log_level level, const char *text, const struct log_fields *fields);

/* Start the thread, which writes by @write.  0 or -errno. */
int log_queue_begin(log_write_fn *write);
/* Give a copy of the line to the thread, and wait until it is written, for LOG_WAIT_MS at most, and
 * only if no earlier line has taken longer: a program that dies has written its last line.  false:
 * there is no thread.  Any thread; locks may be held. */
bool log_queue_put(enum log_level level, const char *text, const struct log_fields *fields);

#endif
