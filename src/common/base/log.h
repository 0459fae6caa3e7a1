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
 * (rtrs-server(8), "MESSAGES THAT MATTER"); tests/house.py compares. */
enum log_id {
	LOG_ID_NONE,			/* no alarm needs the line */
	LOG_ID_STARTED,
	LOG_ID_STOPPING,
	LOG_ID_LISTENING,
	LOG_ID_LISTEN_LOST,
	LOG_ID_RELOADED,
	LOG_ID_RELOAD_REFUSED,
	LOG_ID_EXPORT_ADDED,
	LOG_ID_EXPORT_REMOVED,
	LOG_ID_EXPORT_RESIZED,
	LOG_ID_EXPORT_REPLACED,
	LOG_ID_EXPORT_FAILED,
	LOG_ID_LIMITS_SET,
	LOG_ID_LOCK_BROKEN,
	LOG_ID_SESSION_OPENED,
	LOG_ID_SESSION_CLOSED,
	LOG_ID_SESSION_LOST,
	LOG_ID_PATH_UP,
	LOG_ID_PATH_DOWN,
	LOG_ID_PATH_FAILED,
	LOG_ID_PATH_GIVEN_UP,
	LOG_ID_DIGEST_WRONG,
	LOG_ID_DEVICE_OPENED,
	LOG_ID_DEVICE_CLOSED,
	LOG_ID_DEVICE_KICKED,
	LOG_ID_DEVICE_LOST,
	LOG_ID_OPEN_REFUSED,
	LOG_ID_CLIENT_REFUSED,
	LOG_ID_PEER_GARBAGE,
	LOG_ID_CLIENT_DROPPED,
	LOG_ID_IO_FAILED,
	LOG_ID_IO_STUCK,
	LOG_ID_SYNC_FAILED,
	LOG_ID_WRITES_LOST,
	LOG_ID_CALL_DENIED,
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
