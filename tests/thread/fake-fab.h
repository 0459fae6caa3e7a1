/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric provider with a whole RTRS/RNBD server behind it, for the thread tests of the client:
 * one export in memory, served by a thread of its own that answers in random order and hurries or
 * dawdles.  It checks keys as a NIC does.  No sockets, so all that TSan sees is the client. */
#ifndef FAKE_FAB_H
#define FAKE_FAB_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct fake_conf {
	unsigned queue_depth;
	uint32_t max_io_size;
	uint64_t disk_size;
	int new_rkey;			/* chunk keys change with each answer */
	bool type_2, type_1;		/* windows; the server takes every other one of type 2 away */
};

/* Start the server's thread and register the provider. */
void fake_start(const struct fake_conf *conf);
/* All connections are gone. */
void fake_stop(void);
void fake_addr(struct fab_addr *addr);
/* Fail all connections that are up now; requests that were not executed are forgotten. */
void fake_cut(void);
/* Answers given to READ and WRITE so far, and the largest number of requests in one post. */
unsigned long fake_answers(void);
unsigned fake_largest_post(void);
/* The server answers request @id on @conn with success, although it may not have it. */
void fake_answer(struct fab_conn *conn, unsigned id);
/* From the next connection on the server says it was rebooted. */
void fake_reboot(void);
/* Keys that can be reached now: 0 when no request is in flight. */
unsigned fake_live_keys(void);

#endif
