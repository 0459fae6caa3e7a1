/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer made of a plain socket, for what no well-behaved peer does.  Frames are put together here
 * byte by byte, independently of tcp-frame.h, from rtrs-protocol(7). */
#ifndef RAW_H
#define RAW_H

#include "harness.h"

#define RAW_HDR 24

enum raw_op {
	RAW_SEND = 1, RAW_SEND_IMM, RAW_SEND_INV, RAW_WRITE, RAW_WRITE_IMM,
	RAW_CONNECT = 16, RAW_ACCEPT, RAW_REJECT, RAW_DISCONNECT,
};

/* All values as on the wire; @imm in host order. */
struct raw_frame {
	uint8_t op, flags;
	uint16_t reserved;
	uint32_t length, imm, rkey;
	uint64_t addr;
};

void raw_encode(uint8_t *buf, const struct raw_frame *f);
struct raw_frame raw_handshake(enum raw_op op, uint32_t length);

/* A socket connected to @w's listener that has said nothing yet. */
int raw_socket(struct world *w);
/* The same from 127.0.0.@host: another host, as far as @w knows. */
int raw_socket_from(struct world *w, uint8_t host);
/* One that has been accepted, with its other end (whose pd it made). */
int raw_connect(struct world *w, struct end **e, const struct fab_qp_attr *attr);
/* The same in @pd, of another end that outlives it. */
int raw_connect_pd(struct world *w, struct end **e, const struct fab_qp_attr *attr,
		   struct fab_pd *pd);
/* A socket that listens at @addr, for an active end of @w. */
int raw_listen(const struct world *w, struct fab_addr *addr);
/* An active end of @w that connects to @listener at @addr; *@fd is the other end. */
struct end *raw_dial(struct world *w, int listener, const struct fab_addr *addr, int *fd);
/* The whole buffer, stepping the world while the socket is full or empty. */
void raw_send(struct world *w, int fd, const void *buf, size_t len);
void raw_recv(struct world *w, int fd, void *buf, size_t len);
/* Read to the end of the stream, at most @len; returns the bytes.  A reset is an end too. */
size_t raw_recv_all(struct world *w, int fd, void *buf, size_t len);

#endif
