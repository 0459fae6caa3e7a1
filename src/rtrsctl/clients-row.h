/* SPDX-License-Identifier: BSD-3-Clause */
/* A client in the table of "rtrsctl clients": the columns, and the cells that sessions of RTRS and
 * connections of NBD fill alike.  Pure. */
#ifndef CLIENTS_ROW_H
#define CLIENTS_ROW_H

#include <stdint.h>

#include <jansson.h>

#include "text.h"

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

/* Connections of rtrs-nbd. */
extern const struct client_kind clients_nbd;

#endif
