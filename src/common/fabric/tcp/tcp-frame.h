/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the tcp provider, as rtrs-protocol(7) defines them: a header of fixed size, then
 * payload.  Pure; any thread.  The decoder is strict: bytes that no sender of this version writes
 * are an error, for which the caller fails its connection. */
#ifndef TCP_FRAME_H
#define TCP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire-int.h"

#define TCP_FRAME_HDR_LEN 24u

/* "RTRStcp" and a zero byte, in the order of the wire. */
#define TCP_FRAME_MAGIC 0x0070637453525452ull
#define TCP_FRAME_VERSION 1u

#define TCP_FRAME_MSG_MAX 0x40000000u	/* payload of a data frame */

/* Bytes of CM messages that the IP port space leaves to the user (doc/protocol.md 1.3). */
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

/* On REJECT: refused for the version of the CONNECT; rkey is the version spoken here. */
#define TCP_FRAME_F_VERSION 0x01u
/* On REJECT, which is then plain: the answer to a hello of TLS, where TLS is off, and a CONNECT in
 * plain may follow; or to a CONNECT in plain, where TLS is required. */
#define TCP_FRAME_F_TLS 0x02u

struct tcp_frame {
	uint8_t op;		/* enum tcp_frame_op */
	uint8_t flags;
	uint32_t length;	/* payload bytes that follow the header */
	uint32_t imm;		/* network order, as in verbs; DISCONNECT: enum ibv_wc_status */
	uint32_t rkey;		/* RDMA_WRITE*: key of the target; SEND_WITH_INV: key to
				 * invalidate; CONNECT, ACCEPT, REJECT: version */
	uint64_t addr;		/* RDMA_WRITE*: target; CONNECT, ACCEPT, REJECT: TCP_FRAME_MAGIC */
};

struct tcp_frame_wire {
	uint8_t op;
	uint8_t flags;
	le16 reserved;
	le32 length;
	uint8_t imm[4];
	le32 rkey;
	le64 addr;
} __attribute__((packed));

_Static_assert(sizeof(struct tcp_frame_wire) == TCP_FRAME_HDR_LEN, "frame header");

/* Encode @f into @buf, TCP_FRAME_HDR_LEN bytes.  Fields that the opcode does not have must be 0. */
static inline void tcp_frame_encode(uint8_t *buf, const struct tcp_frame *f)
{
	struct tcp_frame_wire *w = (struct tcp_frame_wire *)buf;

	w->op = f->op;
	w->flags = f->flags;
	w->reserved = le16_put(0);
	w->length = le32_put(f->length);
	memcpy(w->imm, &f->imm, sizeof(w->imm));
	w->rkey = le32_put(f->rkey);
	w->addr = le64_put(f->addr);
}

/* Check @f, all but flags and reserved bits.  Returns NULL or the fault. */
static inline const char *tcp_frame_check(const struct tcp_frame *f)
{
	static const struct {
		uint32_t length_max;
		bool known, handshake, imm, rkey, addr;	/* the fields of the opcode */
	} ops[] = {
		[TCP_FRAME_SEND] = { TCP_FRAME_MSG_MAX, true, .imm = false },
		[TCP_FRAME_SEND_WITH_IMM] = { TCP_FRAME_MSG_MAX, true, .imm = true },
		[TCP_FRAME_SEND_WITH_INV] = { TCP_FRAME_MSG_MAX, true, .rkey = true },
		[TCP_FRAME_RDMA_WRITE] = { TCP_FRAME_MSG_MAX, true, .rkey = true, .addr = true },
		[TCP_FRAME_RDMA_WRITE_WITH_IMM] = { TCP_FRAME_MSG_MAX, true, false, true, true,
						    true },
		[TCP_FRAME_CONNECT] = { TCP_FRAME_CONNECT_MAX, true, true, false, true, true },
		[TCP_FRAME_ACCEPT] = { TCP_FRAME_ACCEPT_MAX, true, true, false, true, true },
		[TCP_FRAME_REJECT] = { TCP_FRAME_REJECT_MAX, true, true, false, true, true },
		[TCP_FRAME_DISCONNECT] = { 0, true, .imm = true },
	};

	if (f->op >= sizeof(ops) / sizeof(ops[0]) || !ops[f->op].known)
		return "unknown opcode";
	if (ops[f->op].handshake && f->addr != TCP_FRAME_MAGIC)
		return "bad magic";
	if ((f->imm && !ops[f->op].imm) || (f->rkey && !ops[f->op].rkey) ||
	    (f->addr && !ops[f->op].addr) || (f->length && !ops[f->op].length_max))
		return "unused field not zero";
	if (f->length <= ops[f->op].length_max)
		return NULL;
	return ops[f->op].handshake ? "private data too long" : "message too long";
}

/* Decode @buf, TCP_FRAME_HDR_LEN bytes, into @f.  Returns NULL or the fault.  The caller checks the
 * version of a handshake frame, because the caller may want to answer. */
static inline const char *tcp_frame_decode(const uint8_t *buf, struct tcp_frame *f)
{
	const struct tcp_frame_wire *w = (const struct tcp_frame_wire *)buf;
	const char *why;

	f->op = w->op;
	f->flags = w->flags;
	f->length = le32_get(w->length);
	memcpy(&f->imm, w->imm, sizeof(f->imm));
	f->rkey = le32_get(w->rkey);
	f->addr = le64_get(w->addr);

	why = tcp_frame_check(f);
	if (why)
		return why;
	if (f->flags & ~(f->op == TCP_FRAME_REJECT ? TCP_FRAME_F_VERSION | TCP_FRAME_F_TLS : 0u))
		return "unknown flag";
	return le16_get(w->reserved) ? "reserved bits not zero" : NULL;
}

#endif
