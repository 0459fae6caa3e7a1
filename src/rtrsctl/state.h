/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of exports, of sessions, and of exports open in sessions, from an answer to "show" or
 * "stats".  Pure. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>

#include <jansson.h>

#include "text.h"

/* How well a session is, or, of several sessions, the worst. */
enum health {
	HEALTH_UP,			/* each path is up, each export of the session is open */
	HEALTH_DEGRADED,		/* requests flow, but a path or an export is missing; or the
					 * session is new, or about to end */
	HEALTH_DOWN,			/* requests of an export wait or fail */
};

#define STATE_WHY 512

struct state_paths {
	unsigned up, all;
};

/* False for the rest of a server's lost path, while the storage still works. */
bool state_is_path(const json_t *path);
/* Does @path work: do requests flow, or does the path stand by? */
bool state_path_works(const json_t *path);
/* Count the paths of @sess. */
struct state_paths state_paths(const json_t *sess);
/* Write the state of @sess, and of the device @dev, unless NULL, to @cell: "up" for HEALTH_UP. */
enum health state_tell(const json_t *sess, const json_t *dev, char cell[TEXT_CELL]);
/* The mode in which @dev is open: "ro", "rw" or "migration". */
const char *state_dev_mode(const json_t *dev);
/* True if the rules of the export would let the client open @dev so now.  Clients, and a server of
 * before, do not tell. */
bool state_dev_allowed(const json_t *dev);
/* True if the export of @dev is removed.  As above. */
bool state_dev_removed(const json_t *dev);
/* The health of @sess with all devices.  @cell: the state of the worst part. */
enum health state_of_session(const json_t *sess, char cell[TEXT_CELL]);
/* Write to @why what @cell, of state_of_session() for @sess, means for users, and its cause if the
 * program says it, in parentheses; "" where the word says all.  Returns @why. */
const char *state_meaning(const json_t *sess, const char *cell, char why[STATE_WHY]);
/* Is @sess of interest? A session in set-up, and so without a name, is not; nor is a session
 * without any part but work of the storage. */
bool state_is_user(const json_t *sess);
/* Index the names of the sessions of @answer for state_name().  A new reference. */
json_t *state_index_names(const json_t *answer);
/* Write @name, of the session @sess of the answer of @names or of a path of @sess, to @buf for
 * people; with IDENTITY/ in front if a session of another identity is called the same. */
void state_name(const json_t *names, const json_t *sess, const char *name, char *buf, size_t len);
/* The health of the export @ex of @answer, without sessions.  Unless it is HEALTH_UP, @cell has the
 * reason: "sync failed"; "failed", "refused", "stale", "replaced", "unlinked", "fenced" or
 * "removed" (man/rtrsctl.pod, OBJECTS); "writes fail"; "waits 12 s", for a request of 1 s or more.
 * @why: NULL, or room for the reason as words of a sentence. */
enum health state_of_export(const json_t *answer, const json_t *ex, char cell[TEXT_CELL],
			    char why[STATE_WHY]);
/* The age of the oldest request of all exports of @answer. */
uint64_t state_oldest_of_exports(const json_t *answer);
/* The health of the session @sess by a request that no export of @answer has: a message that opens
 * an export, or the session itself.  @exports_ns: state_oldest_of_exports(). */
enum health state_of_requests(const json_t *answer, uint64_t exports_ns, const json_t *sess,
			      char cell[TEXT_CELL], char why[STATE_WHY]);
/* Write to @buf the name of the path of @flap, an element of "flaps" of the answer of @names, and
 * to @why how the path flaps, as words of a sentence. */
void state_of_flap(const json_t *names, const json_t *flap, char *buf, size_t len,
		   char why[STATE_WHY]);
/* The health of all exports and sessions of @answer. */
enum health state_of_all(const json_t *answer);

/* Write @ns as "12 s", "5 min", "3 h" or "4 d".  Returns @buf. */
const char *state_duration(uint64_t ns, char *buf, size_t len);

#endif
