/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a program: sessions of RTRS at a server, connections of NBD at a gateway.  Both
 * have one table and one form of JSON, and differ by their struct client_kind. */
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

/* ---- a client in the table ---- */

enum client_column {
	COL_CLIENT, COL_PEER, COL_IDENTITY, COL_TRANSPORT, COL_CIPHER, COL_KEY, COL_STATE,
	COL_SINCE, COL_EXPORTS, COL_IOPS, COL_MBS, NCOLUMNS
};
#define COL_NUMBERS COL_IOPS		/* the first column of numbers */

/* Clients of a kind of program, in its answer. */
struct client_kind {
	const char *list;		/* the member with the clients */
	const char *head;		/* of COL_CLIENT */
	/* Index the answer @before for the other functions; a new reference. */
	json_t *(*index)(const json_t *before);
	/* False: @client is none of a user. */
	bool (*is_shown)(const json_t *client);
	/* @client as an object; @ns: the time since the answer of @index. */
	json_t *(*json)(const json_t *index, const json_t *client, uint64_t ns);
	/* Fill @row, [NCOLUMNS]. */
	void (*row)(const json_t *index, const json_t *client, uint64_t ns,
		    char (*row)[TEXT_CELL]);
};

/* ---- connections of NBD ---- */

/* The counters of a connection begin with it, and its name is never used again. */
static json_t *nbd_index(const json_t *before)
{
	return answer_index(before, "clients", "name");
}

static bool nbd_is_shown(const json_t *client)
{
	return json_is_object(client);
}

static struct rate_sums nbd_rate(const json_t *index, const json_t *client)
{
	return answer_rate_nbd(json_object_get(index, answer_string(client, "name")), client);
}

/* The text of the member @name in an array; no text: an empty one. */
static json_t *nbd_list(const json_t *client, const char *name)
{
	const char *text = json_string_value(json_object_get(client, name));
	json_t *array = json_array();

	if (text && *text)
		json_array_append_new(array, ctl_json_text(text));
	return array;
}

static json_t *nbd_exports(const json_t *client)
{
	json_t *array = json_array();

	if (json_object_get(client, "export"))
		json_array_append_new(array, json_pack("{s:o,s:o}", "export",
				      ctl_json_text(answer_string(client, "export")), "mode",
				      ctl_json_text(answer_string(client, "mode"))));
	return array;
}

static json_t *nbd_json(const json_t *index, const json_t *client, uint64_t ns)
{
	struct rate_sums sums = nbd_rate(index, client);
	double per_second = ns ? 1e9 / (double)ns : 0;
	const char *identity = json_string_value(json_object_get(client, "identity"));
	json_t *age = json_object_get(client, "key_age_ns");

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:I,s:f,s:f}",
			 "client", ctl_json_text(answer_string(client, "name")),
			 "identity", ctl_json_text(identity ? identity : ""),
			 "ciphers", nbd_list(client, "cipher"),
			 "key_age_ns", age ? json_incref(age) : json_null(),
			 "state", ctl_json_text(answer_string(client, "state")),
			 "up_ns", (json_int_t)answer_number(client, "up_ns"),
			 "peers", nbd_list(client, "peer"),
			 "transports", nbd_list(client, "transport"),
			 "exports", nbd_exports(client),
			 "inflight", (json_int_t)answer_number(client, "inflight"),
			 "iops", (double)sums.count * per_second,
			 "bytes_per_second", (double)sums.bytes * per_second);
}

/* "client 7": the address behind it has a column of its own. */
static void put_name(const json_t *client, char cell[TEXT_CELL])
{
	char *of;

	text_safe(answer_string(client, "name"), cell, TEXT_CELL);
	of = strstr(cell, " of ");
	if (of)
		*of = '\0';
}

static void put_export(const json_t *client, char cell[TEXT_CELL])
{
	char text[400];

	if (!json_object_get(client, "export")) {
		snprintf(cell, TEXT_CELL, "-");
		return;
	}
	snprintf(text, sizeof(text), "%s (%s)", answer_string(client, "export"),
		 answer_string(client, "mode"));
	text_safe(text, cell, TEXT_CELL);
}

static void nbd_row(const json_t *index, const json_t *client, uint64_t ns,
		    char (*row)[TEXT_CELL])
{
	struct rate_sums sums = nbd_rate(index, client);

	put_name(client, row[COL_CLIENT]);
	text_safe(answer_string(client, "peer"), row[COL_PEER], TEXT_CELL);
	text_safe(answer_string(client, "identity"), row[COL_IDENTITY], TEXT_CELL);
	text_safe(answer_string(client, "transport"), row[COL_TRANSPORT], TEXT_CELL);
	text_safe(answer_string(client, "cipher"), row[COL_CIPHER], TEXT_CELL);
	if (json_object_get(client, "key_age_ns"))
		state_duration(answer_number(client, "key_age_ns"), row[COL_KEY], TEXT_CELL);
	else
		snprintf(row[COL_KEY], TEXT_CELL, "-");
	text_safe(answer_string(client, "state"), row[COL_STATE], TEXT_CELL);
	state_duration(answer_number(client, "up_ns"), row[COL_SINCE], TEXT_CELL);
	put_export(client, row[COL_EXPORTS]);
	answer_rate_print(&sums, ns, row[COL_IOPS], row[COL_MBS]);
}

static const struct client_kind clients_nbd = {
	.list = "clients", .head = "CLIENT", .index = nbd_index, .is_shown = nbd_is_shown,
	.json = nbd_json, .row = nbd_row,
};

static const char *const heads[NCOLUMNS] = {
	[COL_PEER] = "PEER", [COL_IDENTITY] = "IDENTITY", [COL_TRANSPORT] = "TRANSPORT",
	[COL_CIPHER] = "CIPHER", [COL_KEY] = "KEY", [COL_STATE] = "STATE", [COL_SINCE] = "SINCE",
	[COL_EXPORTS] = "EXPORTS", [COL_IOPS] = "IOPS", [COL_MBS] = "MB/s",
};

/* ---- sessions of RTRS: values ---- */

static const char *device_mode(const json_t *dev)
{
	return json_is_true(json_object_get(dev, "read_only")) ? "ro" :
		answer_string(dev, "access_mode");
}

/* The identity of @sess; "": none. */
static const char *identity_of(const json_t *sess)
{
	const char *identity = json_string_value(json_object_get(sess, "identity"));

	return identity ? identity : "";
}

/* The values of the member @name of the paths of @sess, each once. */
static json_t *values_of_paths(const json_t *sess, const char *name)
{
	json_t *seen = json_object(), *values = json_array(), *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		const char *value = json_string_value(json_object_get(path, name));

		if (!state_is_path(path) || !value || !*value || json_object_get(seen, value))
			continue;
		json_object_set_new(seen, value, json_true());
		json_array_append_new(values, ctl_json_text(value));
	}
	json_decref(seen);
	return values;
}

/* The age of the oldest key of @sess, in *@ns.  False: no path has a key. */
static bool key_age(const json_t *sess, uint64_t *ns)
{
	bool any = false;
	json_t *path;
	size_t i;

	*ns = 0;
	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		if (!state_is_path(path) || !json_object_get(path, "key_age_ns"))
			continue;
		*ns = MAX(*ns, answer_number(path, "key_age_ns"));
		any = true;
	}
	return any;
}

/* The exports open in @sess: [{"export": "disk0", "mode": "rw", "allowed": true,
 * "removed": false}]. */
static json_t *exports_of(const json_t *sess)
{
	json_t *exports = json_array(), *dev;
	size_t i;

	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		json_array_append_new(exports, json_pack("{s:o,s:o,s:b,s:b}", "export",
				      ctl_json_text(answer_string(dev, "export")), "mode",
				      ctl_json_text(device_mode(dev)), "allowed",
				      state_dev_allowed(dev), "removed",
				      state_dev_removed(dev)));
	}
	return exports;
}

static json_t *sess_json(const json_t *index, const json_t *sess, uint64_t ns)
{
	struct rate_sums sums = answer_rate_session(index, sess);
	double per_second = ns ? 1e9 / (double)ns : 0;
	uint64_t age_ns;
	bool keyed = key_age(sess, &age_ns);

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:f,s:f}",
			 "session", ctl_json_text(answer_string(sess, "name")),
			 "identity", ctl_json_text(identity_of(sess)),
			 "ciphers", values_of_paths(sess, "cipher"),
			 "key_age_ns", keyed ? json_integer((json_int_t)age_ns) : json_null(),
			 "state", ctl_json_text(answer_string(sess, "state")),
			 "up_ns", (json_int_t)answer_number(sess, "up_ns"),
			 "down_ns", (json_int_t)answer_number(sess, "down_ns"),
			 "peers", values_of_paths(sess, "peer"),
			 "transports", values_of_paths(sess, "transport"),
			 "exports", exports_of(sess),
			 "iops", (double)sums.count * per_second,
			 "bytes_per_second", (double)sums.bytes * per_second);
}

/* ---- sessions of RTRS: the table ---- */

/* Add @text, masked, to the list in @cell; or count @text in *@left if the cell is full. */
static void put_item(char cell[TEXT_CELL], const char *text, unsigned *left)
{
	const size_t room = TEXT_CELL - sizeof(" +4294967295");
	size_t len = strlen(cell);
	char safe[TEXT_CELL];

	if (!len)
		text_safe(text, cell, room);
	else if (*left || len + 2 + strlen(text) >= room)
		++*left;
	else
		snprintf(cell + len, TEXT_CELL - len, ", %s", text_safe(text, safe, sizeof(safe)));
}

static void put_list_end(char cell[TEXT_CELL], unsigned left)
{
	size_t len = strlen(cell);

	if (left)
		snprintf(cell + len, TEXT_CELL - len, "%s+%u", len ? " " : "", left);
	else if (!len)
		snprintf(cell, TEXT_CELL, "-");
}

static void put_paths(const json_t *sess, const char *name, char cell[TEXT_CELL])
{
	json_t *values = values_of_paths(sess, name), *value;
	unsigned left = 0;
	size_t i;

	json_array_foreach(values, i, value) {
		put_item(cell, json_string_value(value), &left);
	}
	put_list_end(cell, left);
	json_decref(values);
}

static void put_exports(const json_t *sess, char cell[TEXT_CELL])
{
	unsigned left = 0;
	char text[400];
	json_t *dev;
	size_t i;

	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		snprintf(text, sizeof(text), "%s (%s%s%s)", answer_string(dev, "export"),
			 device_mode(dev), state_dev_removed(dev) ? ", removed" : "",
			 state_dev_allowed(dev) ? "" : ", not allowed");
		put_item(cell, text, &left);
	}
	put_list_end(cell, left);
}

static void sess_row(const json_t *index, const json_t *sess, uint64_t ns,
		       char (*row)[TEXT_CELL])
{
	struct rate_sums sums = answer_rate_session(index, sess);
	uint64_t up_ns = answer_number(sess, "up_ns"), age_ns;
	const char *identity = identity_of(sess);

	text_safe(answer_string(sess, "name"), row[COL_CLIENT], TEXT_CELL);
	put_paths(sess, "peer", row[COL_PEER]);
	text_safe(*identity ? identity : "-", row[COL_IDENTITY], TEXT_CELL);
	put_paths(sess, "transport", row[COL_TRANSPORT]);
	put_paths(sess, "cipher", row[COL_CIPHER]);
	if (key_age(sess, &age_ns))
		state_duration(age_ns, row[COL_KEY], TEXT_CELL);
	else
		snprintf(row[COL_KEY], TEXT_CELL, "-");
	state_of_session(sess, row[COL_STATE]);
	if (up_ns)
		state_duration(up_ns, row[COL_SINCE], TEXT_CELL);
	else
		snprintf(row[COL_SINCE], TEXT_CELL, "-");
	put_exports(sess, row[COL_EXPORTS]);
	answer_rate_print(&sums, ns, row[COL_IOPS], row[COL_MBS]);
}

static const struct client_kind clients_rtrs = {
	.list = "sessions", .head = "SESSION", .index = answer_rate_index_paths,
	.is_shown = state_is_user, .json = sess_json, .row = sess_row,
};

/* ---- the whole ---- */

static void print_json(const struct client_kind *kind, const json_t *index, const json_t *after,
		       uint64_t ns)
{
	json_t *clients = json_array(), *object, *client;
	size_t i;

	json_array_foreach(json_object_get(after, kind->list), i, client) {
		if (kind->is_shown(client))
			json_array_append_new(clients, kind->json(index, client, ns));
	}
	object = json_pack("{s:b,s:o,s:o,s:I,s:o}", "ok", 1,
			   "program", ctl_json_text(answer_string(after, "program")),
			   "name", ctl_json_text(answer_string(after, "name")),
			   "pid", (json_int_t)answer_number(after, "pid"), "clients", clients);
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

static void print_table(const struct client_kind *kind, const json_t *index, const json_t *after,
			uint64_t ns)
{
	const json_t *list = json_object_get(after, kind->list);
	char (*cells)[TEXT_CELL] = calloc((1 + json_array_size(list)) * NCOLUMNS, TEXT_CELL);
	unsigned nrows = 1;
	json_t *client;
	size_t i;

	if (!cells)
		return;
	snprintf(cells[COL_CLIENT], TEXT_CELL, "%s", kind->head);
	for (unsigned col = COL_CLIENT + 1; col < NCOLUMNS; col++)
		snprintf(cells[col], TEXT_CELL, "%s", heads[col]);
	json_array_foreach(list, i, client) {
		if (kind->is_shown(client))
			kind->row(index, client, ns, &cells[(size_t)nrows++ * NCOLUMNS]);
	}
	text_table((const char (*)[TEXT_CELL])cells, nrows, NCOLUMNS, COL_NUMBERS, 0);
	free(cells);
}

void clients_print(const json_t *before, const json_t *after, bool json)
{
	const struct client_kind *kind = answer_is_server(after) ? &clients_rtrs : &clients_nbd;
	uint64_t ns = answer_number(after, "now_ns") - answer_number(before, "now_ns");
	json_t *index = kind->index(before);

	if (json)
		print_json(kind, index, after, ns);
	else
		print_table(kind, index, after, ns);
	json_decref(index);
}
