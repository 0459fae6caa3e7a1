/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the tcp provider, as rtrs-protocol(7) defines them: a header of fixed size, then
 * payload.  Pure; any thread.  The decoder is strict: what a sender of this version never writes
 * is an error. */
#ifndef TCP_FRAME_H
#define TCP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define TCP_FRAME_HDR_LEN 24u

/* "RTRStcp" and a zero byte, in the order of the wire. */
#define TCP_FRAME_MAGIC 0x0070637453525452ull
#define TCP_FRAME_VERSION 1u

#define TCP_FRAME_MSG_MAX 0x40000000u	/* payload of one data frame */

/* What the IP port space leaves to the user in the CM messages (doc/protocol.md 1.3). */
#define TCP_FRAME_CONNECT_MAX 56u
#define TCP_FRAME_ACCEPT_MAX 196u
#define TCP_FRAME_REJECT_MAX 148u

enum tcp_frame_op {
	TCP_FRAME_SEND = 1,
	TCP_FRAME_SEND_WITH_IMM = 2,
	TCP_FRAME_SEND_WITH_INV = 3,
	TCP_FRAME_RDMA_WRITE = 4,
	TCP_FRAME_RDMA_WRITE_WITH_IMM = 5,

	TCP_FRAME_CONNECT = 16,
	TCP_FRAME_ACCEPT = 17,
	TCP_FRAME_REJECT = 18,
	TCP_FRAME_DISCONNECT = 19,
};

/* On REJECT: refused for its version before anybody was asked; rkey is the version spoken here. */
#define TCP_FRAME_F_VERSION 0x01u

struct tcp_frame {
	uint8_t op;		/* enum tcp_frame_op */
	uint8_t flags;
	uint32_t length;	/* payload bytes that follow the header */
	uint32_t imm;		/* network order, as in verbs; DISCONNECT: enum ibv_wc_status */
	uint32_t rkey;		/* RDMA_WRITE*: key of the target; SEND_WITH_INV: the key to
				 * invalidate; CONNECT, ACCEPT, REJECT: version */
	uint64_t addr;		/* RDMA_WRITE*: target; CONNECT, ACCEPT, REJECT: TCP_FRAME_MAGIC */
};

/* @buf: TCP_FRAME_HDR_LEN bytes.  Fields an opcode does not have must be 0 in @f. */
void tcp_frame_encode(uint8_t *buf, const struct tcp_frame *f);

/* @buf: TCP_FRAME_HDR_LEN bytes.  Returns NULL and fills @f, or says what is wrong.  The version of
 * a handshake frame is left to the caller, who may want to answer. */
const char *tcp_frame_decode(const uint8_t *buf, struct tcp_frame *f);

#endif
