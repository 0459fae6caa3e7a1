/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a program: sessions of RTRS at a server, connections of NBD at a gateway.  Both
 * have one form of JSON, which a row of the table shows, and differ by their struct client_kind. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "ctl-json.h"
#include "state.h"
#include "text.h"
#include "util.h"
#include "views.h"

/* Clients of a kind of program, in its answer. */
struct client_kind {
	const char *list;		/* the member with the clients */
	const char *name, *head;	/* of a client: in JSON, and over the table */
	const char *number;		/* a number that clients of this kind alone have */
	const char *cut;		/* the table has a name up to this; NULL: all of it */
	/* False: @client is none of a user. */
	bool (*is_shown)(const json_t *client);
	struct rate_sums (*rate)(const struct answer_pair *pair, const json_t *client);
	/* What has peer, transport, cipher and age of a key: an array, a new reference. */
	json_t *(*paths)(const json_t *client);
	/* What @client has open: [{"export": "disk0", "mode": "rw"}], perhaps with "allowed" and
	 * "removed"; a new reference. */
	json_t *(*exports)(const json_t *client);
	void (*put_state)(const json_t *client, char cell[TEXT_CELL]);
};

/* ---- connections of NBD ---- */

static bool nbd_is_shown(const json_t *client)
{
	return json_is_object(client);
}

static json_t *nbd_paths(const json_t *client)
{
	return json_pack("[O]", client);
}

static json_t *nbd_exports(const json_t *client)
{
	if (!json_object_get(client, "export"))
		return json_array();
	return json_pack("[{s:o,s:o}]",
			 "export", ctl_json_text(answer_string(client, "export")),
			 "mode", ctl_json_text(answer_string(client, "mode")));
}

static void nbd_put_state(const json_t *client, char cell[TEXT_CELL])
{
	text_safe(answer_string(client, "state"), cell, TEXT_CELL);
}

/* "client 7 of ADDRESS": the address has a column of its own. */
static const struct client_kind clients_nbd = {
	.list = "clients", .name = "client", .head = "CLIENT", .number = "inflight", .cut = " of ",
	.is_shown = nbd_is_shown, .rate = answer_rate_nbd, .paths = nbd_paths,
	.exports = nbd_exports, .put_state = nbd_put_state,
};

/* ---- sessions of RTRS ---- */

static json_t *sess_paths(const json_t *sess)
{
	json_t *paths = json_array(), *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		if (state_is_path(path))
			json_array_append(paths, path);
	}
	return paths;
}

static json_t *sess_exports(const json_t *sess)
{
	json_t *exports = json_array(), *dev;
	size_t i;

	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		json_array_append_new(exports, json_pack("{s:o,s:o,s:b,s:b}",
				      "export", ctl_json_text(answer_string(dev, "export")),
				      "mode", ctl_json_text(state_dev_mode(dev)),
				      "allowed", state_dev_allowed(dev),
				      "removed", state_dev_removed(dev)));
	}
	return exports;
}

static void sess_put_state(const json_t *sess, char cell[TEXT_CELL])
{
	state_of_session(sess, cell);
}

static const struct client_kind clients_rtrs = {
	.list = "sessions", .name = "session", .head = "SESSION", .number = "down_ns",
	.is_shown = state_is_user, .rate = answer_rate_session, .paths = sess_paths,
	.exports = sess_exports, .put_state = sess_put_state,
};

/* ---- a client as JSON ---- */

/* The values of the member @name of @paths, each once. */
static json_t *values_of(const json_t *paths, const char *name)
{
	json_t *seen = json_object(), *values = json_array(), *path;
	size_t i;

	json_array_foreach(paths, i, path) {
		const char *value = json_string_value(json_object_get(path, name));

		if (!value || !*value || json_object_get(seen, value))
			continue;
		json_object_set_new(seen, value, json_true());
		json_array_append_new(values, ctl_json_text(value));
	}
	json_decref(seen);
	return values;
}

/* The age of the oldest key of @paths; null: no path has a key. */
static json_t *key_age(const json_t *paths)
{
	json_int_t oldest = 0;
	bool any = false;
	json_t *path;
	size_t i;

	json_array_foreach(paths, i, path) {
		const json_t *age = json_object_get(path, "key_age_ns");

		oldest = MAX(oldest, json_integer_value(age));
		any |= age != NULL;
	}
	return any ? json_integer(oldest) : json_null();
}

static json_t *client_json(const struct client_kind *kind, const struct answer_pair *pair,
			   const json_t *client)
{
	const char *identity = json_string_value(json_object_get(client, "identity"));
	struct rate_sums sums = kind->rate(pair, client);
	double per_second = pair->ns ? 1e9 / (double)pair->ns : 0;
	json_t *paths = kind->paths(client);
	json_t *object = json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:f,s:f}",
			 kind->name, ctl_json_text(answer_string(client, "name")),
			 "identity", ctl_json_text(identity ? identity : ""),
			 "ciphers", values_of(paths, "cipher"),
			 "key_age_ns", key_age(paths),
			 "state", ctl_json_text(answer_string(client, "state")),
			 "up_ns", (json_int_t)answer_number(client, "up_ns"),
			 kind->number, (json_int_t)answer_number(client, kind->number),
			 "peers", values_of(paths, "peer"),
			 "transports", values_of(paths, "transport"),
			 "exports", kind->exports(client),
			 "iops", (double)sums.count * per_second,
			 "bytes_per_second", (double)sums.bytes * per_second);

	json_decref(paths);
	return object;
}

/* ---- a client in the table ---- */

enum client_column {
	COL_CLIENT, COL_PEER, COL_IDENTITY, COL_TRANSPORT, COL_CIPHER, COL_KEY, COL_STATE,
	COL_SINCE, COL_EXPORTS, COL_IOPS, COL_MBS, NCOLUMNS
};
#define COL_NUMBERS COL_IOPS		/* the first column of numbers */

static const char *const heads[NCOLUMNS] = {
	[COL_PEER] = "PEER", [COL_IDENTITY] = "IDENTITY", [COL_TRANSPORT] = "TRANSPORT",
	[COL_CIPHER] = "CIPHER", [COL_KEY] = "KEY", [COL_STATE] = "STATE", [COL_SINCE] = "SINCE",
	[COL_EXPORTS] = "EXPORTS", [COL_IOPS] = "IOPS", [COL_MBS] = "MB/s",
};

/* Write @item, a text or what is open, to @buf. */
static const char *item_text(const json_t *item, char *buf, size_t len)
{
	if (json_is_object(item))
		snprintf(buf, len, "%s (%s%s%s)", answer_string(item, "export"),
			 answer_string(item, "mode"), state_dev_removed(item) ? ", removed" : "",
			 state_dev_allowed(item) ? "" : ", not allowed");
	else
		snprintf(buf, len, "%s", json_string_value(item));
	return buf;
}

/* Write the items of @object's array @name, masked: those that have room, and how many have not. */
static void put_list(const json_t *object, const char *name, char cell[TEXT_CELL])
{
	const json_t *list = json_object_get(object, name);
	const size_t room = TEXT_CELL -
			    (json_array_size(list) > 1 ? sizeof(" +4294967295") : 0);
	char text[400], safe[TEXT_CELL];
	unsigned left = 0;
	size_t i, len = 0;
	json_t *item;

	snprintf(cell, TEXT_CELL, "-");
	json_array_foreach(list, i, item) {
		item_text(item, text, sizeof(text));
		if (!len)
			text_safe(text, cell, room);
		else if (left || len + 2 + strlen(text) >= room)
			left++;
		else
			snprintf(cell + len, TEXT_CELL - len, ", %s",
				 text_safe(text, safe, sizeof(safe)));
		len = strlen(cell);
	}
	if (left)
		snprintf(cell + len, TEXT_CELL - len, " +%u", left);
}

/* Write the time @name of @object; "-": there is none. */
static void put_time(const json_t *object, const char *name, char cell[TEXT_CELL])
{
	if (answer_number(object, name))
		state_duration(answer_number(object, name), cell, TEXT_CELL);
	else
		snprintf(cell, TEXT_CELL, "-");
}

/* Fill @row, [NCOLUMNS], with @client, which is @object in JSON. */
static void put_client(const struct client_kind *kind, const json_t *client, const json_t *object,
		       char (*row)[TEXT_CELL])
{
	double bytes = json_real_value(json_object_get(object, "bytes_per_second"));
	char *cut;

	text_safe(answer_string(object, kind->name), row[COL_CLIENT], TEXT_CELL);
	cut = kind->cut ? strstr(row[COL_CLIENT], kind->cut) : NULL;
	if (cut)
		*cut = '\0';
	put_list(object, "peers", row[COL_PEER]);
	text_safe(answer_string(object, "identity"), row[COL_IDENTITY], TEXT_CELL);
	put_list(object, "transports", row[COL_TRANSPORT]);
	put_list(object, "ciphers", row[COL_CIPHER]);
	put_time(object, "key_age_ns", row[COL_KEY]);
	kind->put_state(client, row[COL_STATE]);
	put_time(object, "up_ns", row[COL_SINCE]);
	put_list(object, "exports", row[COL_EXPORTS]);
	snprintf(row[COL_IOPS], TEXT_CELL, "%.0f",
		 json_real_value(json_object_get(object, "iops")));
	snprintf(row[COL_MBS], TEXT_CELL, "%.1f", bytes / 1e6);
}

static void print_table(const struct client_kind *kind, const json_t *clients,
			const json_t *objects)
{
	char (*cells)[TEXT_CELL] = calloc((1 + json_array_size(objects)) * NCOLUMNS, TEXT_CELL);
	json_t *object;
	size_t i;

	if (!cells)
		return;
	for (unsigned col = 0; col < NCOLUMNS; col++)
		snprintf(cells[col], TEXT_CELL, "%s", heads[col] ? heads[col] : kind->head);
	json_array_foreach(objects, i, object)
		put_client(kind, json_array_get(clients, i), object, &cells[(i + 1) * NCOLUMNS]);
	text_table((const char (*)[TEXT_CELL])cells, (unsigned)json_array_size(objects) + 1,
		   NCOLUMNS, COL_NUMBERS, 0);
	free(cells);
}

/* ---- the whole ---- */

static void print_json(const json_t *after, json_t *objects)
{
	text_json(json_pack("{s:b,s:o,s:o,s:I,s:O}", "ok", 1,
			    "program", ctl_json_text(answer_string(after, "program")),
			    "name", ctl_json_text(answer_string(after, "name")),
			    "pid", (json_int_t)answer_number(after, "pid"), "clients", objects));
}

void clients_print(const json_t *before, const json_t *after, bool json)
{
	const struct client_kind *kind = answer_is_server(after) ? &clients_rtrs : &clients_nbd;
	json_t *clients = json_array(), *objects = json_array(), *client, *object;
	struct answer_pair pair;
	size_t i;

	answer_pair_init(&pair, before, after);
	json_array_foreach(json_object_get(after, kind->list), i, client) {
		object = kind->is_shown(client) ? client_json(kind, &pair, client) : NULL;
		if (object && !json_array_append_new(objects, object))
			json_array_append(clients, client);
	}
	if (json)
		print_json(after, objects);
	else
		print_table(kind, clients, objects);
	answer_pair_fini(&pair);
	json_decref(clients);
	json_decref(objects);
}
