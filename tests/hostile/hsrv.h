/* SPDX-License-Identifier: BSD-3-Clause */
/* A server over any provider that keeps the protocol until it is told where to write what it may
 * not.  It exports one disk that reads as HSRV_DATA everywhere and forgets writes, and takes
 * connections of any number of lives of one client after the other.
 *
 * It has a thread of its own.  All functions: any other thread, one at a time. */
#ifndef HSRV_H
#define HSRV_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

#define HSRV_IO (128u << 10)		/* longest request */
#define HSRV_DISK (1u << 20)
#define HSRV_DATA 0xdd
#define HSRV_ATTACK 0xaa		/* what it writes where it may not */

struct hsrv;

/* An RDMA_WRITE under what the descriptor of a READ said, or said but for this. */
struct hsrv_attack {
	bool before_last;		/* of the READ before the last one */
	uint64_t addr;			/* not where the descriptor says; 0: there */
	int64_t addr_add;
	uint32_t len_add;
	uint32_t key_xor;
};

enum hsrv_answer {
	HSRV_GOOD,
	HSRV_KEEPS_KEY,			/* the data, but the key is not invalidated as asked */
	HSRV_ERROR,			/* EIO, and no data */
	HSRV_NO_DATA,			/* success, and no data */
	HSRV_ATTACK_BEFORE,		/* the attack, and behind it the answer */
	HSRV_ATTACK_BEHIND,		/* the answer, and right behind it the attack */
};

/* Listen on @addr. */
struct hsrv *hsrv_start(const struct fab_addr *addr);
void hsrv_addr(struct hsrv *s, struct fab_addr *addr);
/* All its clients have gone, or are about to. */
void hsrv_stop(struct hsrv *s);

/* How the next READ is to be answered; those after it are answered well. */
void hsrv_answer_next(struct hsrv *s, enum hsrv_answer how, const struct hsrv_attack *attack);
/* Now, on the connection of the last READ. */
void hsrv_attack_now(struct hsrv *s, const struct hsrv_attack *attack);
/* The highest address that a descriptor had since this was asked last. */
uint64_t hsrv_highest_addr(struct hsrv *s);
/* How often a client has set up a path. */
unsigned hsrv_lives(struct hsrv *s);

#endif
