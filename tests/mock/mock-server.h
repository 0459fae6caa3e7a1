/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole RTRS/RNBD server behind the mock HCA, for the thread tests of the client: one export in
 * memory, served by a thread of its own that answers in random order and hurries or dawdles. */
#ifndef MOCK_SERVER_H
#define MOCK_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct mock_server_conf {
	unsigned queue_depth;
	uint32_t max_io_size;
	uint64_t disk_size;
	uint16_t block;			/* bytes of a logical block; 0: 512 */
	bool no_fua;
	int new_rkey;			/* chunk keys change with each answer */
	/* windows; the server takes every other one of type 2 away */
	bool type_2, type_1;
};

/* A device as new, the server's thread, and the provider where fab_provider_find() finds it. */
void mock_server_start(const struct mock_server_conf *conf);
/* All connections are gone, and all that was made on the device; mock_cut() is to break them. */
void mock_server_stop(void);
void mock_server_addr(struct fab_addr *addr);
/* Answers given to READ and WRITE so far. */
unsigned long mock_server_answers(void);
/* From now on it executes no request, or does again. */
void mock_server_hold(bool hold);
/* Requests that have arrived and are not executed. */
unsigned mock_server_waiting(void);
/* It answers request @id on @conn with success, although it may not have it. */
void mock_server_answer(struct fab_conn *conn, unsigned id);
/* From the next connection on it says it was rebooted. */
void mock_server_reboot(void);

#endif
