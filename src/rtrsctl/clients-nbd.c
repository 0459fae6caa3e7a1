/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of NBD.  Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "clients-row.h"
#include "ctl-json.h"
#include "rate.h"
#include "state.h"

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
	return rate_nbd(json_object_get(index, answer_string(client, "name")), client);
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
	rate_print(&sums, ns, row[COL_IOPS], row[COL_MBS]);
}

const struct client_kind clients_nbd = {
	.list = "clients", .head = "CLIENT", .index = nbd_index, .is_shown = nbd_is_shown,
	.json = nbd_json, .row = nbd_row,
};
