/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that matter to an alarm.  An id keeps its meaning for ever, whatever the text of the
 * line becomes, and a number is never used again.  The manual says what to do about each
 * (rtrs-server(8), "MESSAGES THAT MATTER"); tests/house.py compares. */
#ifndef BASE_LOG_ID_H
#define BASE_LOG_ID_H

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

#endif
