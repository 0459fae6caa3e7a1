/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  The programs choose the words of states (man/rtrsctl.pod, OBJECTS). */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "ctl-json.h"
#include "state.h"
#include "util.h"

/* The age of the oldest request.  A disk may take a second for an answer. */
#define AGE_SHOWN_NS 1000000000ull
#define AGE_DEGRADED_NS 5000000000ull
#define AGE_DOWN_NS 30000000000ull

const char *state_duration(uint64_t ns, char *buf, size_t len)
{
	uint64_t s = ns / 1000000000;

	if (s < 60)
		snprintf(buf, len, "%llu s", (unsigned long long)s);
	else if (s < 3600)
		snprintf(buf, len, "%llu min", (unsigned long long)s / 60);
	else if (s < UINT64_C(48) * 3600)
		snprintf(buf, len, "%llu h", (unsigned long long)s / 3600);
	else
		snprintf(buf, len, "%llu d", (unsigned long long)s / 86400);
	return buf;
}

bool state_is_path(const json_t *path)
{
	const char *state = answer_string(path, "state");

	return strcmp(state, "lingering") && strcmp(state, "gone");
}

bool state_path_works(const json_t *path)
{
	const char *state = answer_string(path, "state");

	return !strcmp(state, "connected") || !strcmp(state, "standby");
}

struct state_paths state_paths(const json_t *sess)
{
	struct state_paths n = { 0 };
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		n.up += state_path_works(path);
		n.all += state_is_path(path);
	}
	return n;
}

/* The health of an export that is not open. */
static enum health health_of_device(const char *state)
{
	return !strcmp(state, "opening") || !strcmp(state, "closing") ? HEALTH_DEGRADED :
		HEALTH_DOWN;
}

enum health state_tell(const json_t *sess, const json_t *dev, char cell[TEXT_CELL])
{
	const char *state = answer_string(sess, "state");
	const char *open = dev ? answer_string(dev, "state") : "open";
	struct state_paths paths = state_paths(sess);
	char since[32];

	if (!strcmp(state, "down") || !strcmp(state, "expired")) {
		snprintf(cell, TEXT_CELL, "down since %s",
			 state_duration(answer_number(sess, "down_ns"), since, sizeof(since)));
		return HEALTH_DOWN;
	}
	if (strcmp(state, "up")) {
		text_safe(state, cell, TEXT_CELL);
		return HEALTH_DEGRADED;
	}
	if (!paths.up) {
		snprintf(cell, TEXT_CELL, "silent");
		return HEALTH_DOWN;
	}
	if (strcmp(open, "open")) {
		text_safe(open, cell, TEXT_CELL);
		return health_of_device(open);
	}
	if (paths.up < paths.all) {
		snprintf(cell, TEXT_CELL, "degraded %u/%u", paths.up, paths.all);
		return HEALTH_DEGRADED;
	}
	snprintf(cell, TEXT_CELL, "up");
	return HEALTH_UP;
}

const char *state_dev_mode(const json_t *dev)
{
	return json_is_true(json_object_get(dev, "read_only")) ? "ro" :
		answer_string(dev, "access_mode");
}

bool state_dev_allowed(const json_t *dev)
{
	return !json_is_false(json_object_get(dev, "allowed"));
}

bool state_dev_removed(const json_t *dev)
{
	return json_is_true(json_object_get(dev, "removed"));
}

bool state_is_user(const json_t *sess)
{
	return strcmp(answer_string(sess, "name"), "-") &&
	       (state_paths(sess).all || json_array_size(json_object_get(sess, "devices")));
}

enum health state_of_session(const json_t *sess, char cell[TEXT_CELL])
{
	enum health worst = state_tell(sess, NULL, cell);
	json_t *dev;
	size_t i;

	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		char more[TEXT_CELL];
		enum health health = state_tell(sess, dev, more);

		if (health <= worst)
			continue;
		worst = health;
		memcpy(cell, more, TEXT_CELL);
	}
	return worst;
}

/* From which age on a request of the program @answer counts as lost: 30 s, or half of the time for
 * which a client lets requests wait.  Without an io-timeout, and with 0, which is for requests
 * without a path, requests on a path wait for ever. */
static uint64_t age_down_ns(const json_t *answer)
{
	uint64_t half_ns = answer_number(answer, "io_timeout_ns") / 2;

	return half_ns ? MIN(half_ns, AGE_DOWN_NS) : AGE_DOWN_NS;
}

/* The health of @of, an export or a session of @answer, by the age of its oldest request.  From 1 s
 * on @cell has the age, and @why as words of a sentence; from 5 s on @of is not HEALTH_UP. */
static enum health state_of_age(const json_t *answer, const json_t *of, char cell[TEXT_CELL],
				char why[STATE_WHY])
{
	uint64_t storage_ns = answer_number(of, "waiting_ns");
	uint64_t ns = MAX(answer_number(of, "oldest_ns"), storage_ns);
	char time[32];

	if (ns < AGE_SHOWN_NS)
		return HEALTH_UP;
	state_duration(ns, time, sizeof(time));
	snprintf(cell, TEXT_CELL, "waits %s", time);
	if (storage_ns >= AGE_SHOWN_NS)
		snprintf(why, STATE_WHY, "waits %s for its storage", time);
	else
		snprintf(why, STATE_WHY, "has a request that waits %s", time);
	return ns < AGE_DEGRADED_NS ? HEALTH_UP :
		ns < age_down_ns(answer) ? HEALTH_DEGRADED : HEALTH_DOWN;
}

uint64_t state_oldest_of_exports(const json_t *answer)
{
	uint64_t oldest_ns = 0;
	json_t *ex;
	size_t i;

	json_array_foreach(json_object_get(answer, "exports"), i, ex) {
		oldest_ns = MAX(oldest_ns, answer_number(ex, "oldest_ns"));
	}
	return oldest_ns;
}

enum health state_of_requests(const json_t *answer, uint64_t exports_ns, const json_t *sess,
			      char cell[TEXT_CELL], char why[STATE_WHY])
{
	if (exports_ns && exports_ns >= answer_number(sess, "oldest_ns"))
		return HEALTH_UP;
	return state_of_age(answer, sess, cell, why);
}

/* The path of @ex does not name what is open.  An export without users is opened again. */
static enum health tell_named(const json_t *ex, const char *storage, const char *names,
			      char why[STATE_WHY])
{
	bool used = answer_number(ex, "users");

	snprintf(why, STATE_WHY, "%s: its path now names %s%s", storage, names,
		 used ? ", and clients have the old one open" : "");
	return used ? HEALTH_DOWN : HEALTH_DEGRADED;
}

/* The path of @ex named other storage or nothing, and is opened again; nobody has @ex open. */
static enum health tell_opening(const json_t *ex, const char *storage, char why[STATE_WHY])
{
	uint64_t ns = answer_number(ex, "failed_ns");
	char time[32];

	state_duration(ns, time, sizeof(time));
	snprintf(why, STATE_WHY, "%s since %s: its path did not name what was open", storage,
		 time);
	return ns < AGE_DEGRADED_NS ? HEALTH_DEGRADED : HEALTH_DOWN;
}

/* Another client of the engine has the storage. */
static enum health tell_fenced(const char *storage, char why[STATE_WHY])
{
	snprintf(why, STATE_WHY, "%s: another client of the cluster may have its storage, and each "
		 "request fails: remove the export and add it again, or restart the server",
		 storage);
	return HEALTH_DOWN;
}

/* @ex is not exported any more. */
static enum health tell_removed(const json_t *ex, char why[STATE_WHY])
{
	uint64_t n = answer_number(ex, "clients");

	if (n)
		snprintf(why, STATE_WHY, "is removed, and %llu client%s still ha%s it open",
			 (unsigned long long)n, n == 1 ? "" : "s", n == 1 ? "s" : "ve");
	else
		snprintf(why, STATE_WHY, "is removed, and goes as soon as its storage is done");
	return HEALTH_DEGRADED;
}

/* The health of @ex by the word @storage. */
static enum health health_of_storage(const json_t *ex, const char *storage, char why[STATE_WHY])
{
	char error[STATE_WHY - 64];

	if (!json_object_get(ex, "storage") || !strcmp(storage, "ok") ||
	    !strcmp(storage, "removed"))
		return HEALTH_UP;
	if (!strcmp(storage, "replaced"))
		return tell_named(ex, storage, "another file", why);
	if (!strcmp(storage, "unlinked"))
		return tell_named(ex, storage, "no file", why);
	if (!strcmp(storage, "opening"))
		return tell_opening(ex, storage, why);
	if (!strcmp(storage, "fenced"))
		return tell_fenced(storage, why);
	text_safe(answer_string(ex, "error"), error, sizeof(error));
	snprintf(why, STATE_WHY, "%.32s: %s", storage, error);
	return HEALTH_DOWN;
}

/* The health of @ex by @failed, the writes that have failed since the last one that succeeded. */
static enum health health_of_writes(const json_t *failed, char cell[TEXT_CELL],
				    char why[STATE_WHY])
{
	char error[128], since[32];

	if (!failed)
		return HEALTH_UP;
	snprintf(cell, TEXT_CELL, "writes fail");
	text_safe(answer_string(failed, "error"), error, sizeof(error));
	state_duration(answer_number(failed, "since_ns"), since, sizeof(since));
	snprintf(why, STATE_WHY, "fails each write: %s (%llu since %s)", error,
		 (unsigned long long)answer_number(failed, "count"), since);
	return HEALTH_DOWN;
}

enum health state_of_export(const json_t *answer, const json_t *ex, char cell[TEXT_CELL],
			    char why[STATE_WHY])
{
	const char *storage = answer_string(ex, "storage");
	enum health health;
	char room[STATE_WHY];

	why = why ? why : room;
	if (json_is_true(json_object_get(ex, "sync_failed"))) {
		snprintf(cell, TEXT_CELL, "sync failed");
		snprintf(why, STATE_WHY, "sync failed, writes may be lost");
		return HEALTH_DOWN;
	}
	health = health_of_storage(ex, storage, why);
	if (health != HEALTH_UP) {
		text_safe(storage, cell, TEXT_CELL);
		return health;
	}
	health = health_of_writes(json_object_get(ex, "writes_failed"), cell, why);
	if (health == HEALTH_UP)
		health = state_of_age(answer, ex, cell, why);
	if (health == HEALTH_DOWN || strcmp(storage, "removed"))
		return health;
	snprintf(cell, TEXT_CELL, "removed");
	return tell_removed(ex, why);
}

/* What @cell means for users; "" where the word says it. */
static const char *meaning_of(const char *cell)
{
	static const struct {
		const char *state, *means;
	} states[] = {
		{ "new", "it has not connected yet" },
		{ "silent", "the server has not answered two heartbeats" },
		{ "awaited", "an NBD client waits for the export" },
		{ "lost", "the server does not open the export again, and requests wait" },
		{ "failed", "the server does not open the export again, and requests fail" },
		{ "kicked",
		  "the server has taken the export away: requests fail until NBD clients open it "
		  "again" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
		if (!strcmp(cell, states[i].state))
			return states[i].means;
	}
	return "";
}

/* Why the device of @sess in the state @cell is so, as the program says; "": it does not. */
static const char *cause_of(const json_t *sess, const char *cell)
{
	json_t *dev;
	size_t i;

	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		const char *cause = json_string_value(json_object_get(dev, "cause"));

		if (cause && !strcmp(answer_string(dev, "state"), cell))
			return cause;
	}
	return "";
}

const char *state_meaning(const json_t *sess, const char *cell, char why[STATE_WHY])
{
	const char *means = meaning_of(cell);
	char cause[STATE_WHY - 128];

	text_safe(cause_of(sess, cell), cause, sizeof(cause));
	if (*means)
		snprintf(why, STATE_WHY, " (%.100s%s%s)", means, *cause ? ": " : "", cause);
	else
		*why = '\0';
	return why;
}

json_t *state_index_names(const json_t *answer)
{
	json_t *names = json_object(), *sess;
	size_t i;

	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		const char *name = answer_string(sess, "name");
		const char *identity = answer_string(sess, "identity");
		const char *first = json_string_value(json_object_get(names, name));

		if (!json_object_get(names, name))
			json_object_set_new(names, name, ctl_json_text(identity));
		else if (first && strcmp(first, identity))
			json_object_set_new(names, name, json_null());
	}
	return names;
}

/* @name for people.  @of belongs to the session @sess, and has the identity of its client. */
static void name_of_session(const json_t *names, const char *sess, const json_t *of,
			    const char *name, char *buf, size_t len)
{
	const char *identity = json_string_value(json_object_get(of, "identity"));
	bool two = json_is_null(json_object_get(names, sess));
	char full[1024];

	snprintf(full, sizeof(full), "%s%s%s", two && identity ? identity : "", two ? "/" : "",
		 name);
	text_safe(full, buf, len);
}

void state_name(const json_t *names, const json_t *sess, const char *name, char *buf, size_t len)
{
	name_of_session(names, answer_string(sess, "name"), sess, name, buf, len);
}

void state_of_flap(const json_t *names, const json_t *flap, char *buf, size_t len,
		   char why[STATE_WHY])
{
	uint64_t ns = answer_number(flap, "since_ns") - answer_number(flap, "up_ns");
	char cause[STATE_WHY - 208], time[32], lost[32];

	name_of_session(names, answer_string(flap, "session"), flap, answer_string(flap, "path"),
			buf, len);
	text_safe(answer_string(flap, "cause"), cause, sizeof(cause));
	snprintf(why, STATE_WHY, "came up %llu times in %s, last lost %s ago: %s; what does "
		 "rtrsctl check say at the client, and do large packets pass (MTU)?",
		 (unsigned long long)answer_number(flap, "ups"),
		 state_duration(ns, time, sizeof(time)),
		 state_duration(answer_number(flap, "lost_ns"), lost, sizeof(lost)), cause);
}

enum health state_of_all(const json_t *answer)
{
	uint64_t exports_ns = state_oldest_of_exports(answer);
	enum health worst = HEALTH_UP;
	char cell[TEXT_CELL], why[STATE_WHY];
	json_t *ex, *sess;
	size_t i;

	json_array_foreach(json_object_get(answer, "exports"), i, ex) {
		worst = MAX(worst, state_of_export(answer, ex, cell, why));
	}
	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		if (!state_is_user(sess))
			continue;
		worst = MAX(worst, state_of_session(sess, cell));
		worst = MAX(worst, state_of_requests(answer, exports_ns, sess, cell, why));
	}
	return worst;
}
