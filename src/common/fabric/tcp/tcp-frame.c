/* SPDX-License-Identifier: BSD-3-Clause */
/* Frame headers to bytes and back.  Owns nothing, no state, any thread; a bad header is answered
 * with the reason and costs the caller's connection. */
#include <string.h>

#include "le.h"
#include "tcp-frame.h"

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

void tcp_frame_encode(uint8_t *buf, const struct tcp_frame *f)
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

static const char *check_handshake(const struct tcp_frame *f, uint32_t max)
{
	if (f->addr != TCP_FRAME_MAGIC)
		return "bad magic";
	if (f->length > max)
		return "private data too long";
	if (f->imm)
		return "unused field not zero";
	return NULL;
}

static const char *check_op(const struct tcp_frame *f)
{
	switch (f->op) {
	case TCP_FRAME_RDMA_WRITE_WITH_IMM:
		break;
	case TCP_FRAME_RDMA_WRITE:
		if (f->imm)
			return "unused field not zero";
		break;
	case TCP_FRAME_SEND:
		if (f->imm || f->rkey || f->addr)
			return "unused field not zero";
		break;
	case TCP_FRAME_SEND_WITH_IMM:
		if (f->rkey || f->addr)
			return "unused field not zero";
		break;
	case TCP_FRAME_SEND_WITH_INV:
		if (f->imm || f->addr)
			return "unused field not zero";
		break;
	case TCP_FRAME_CONNECT:
		return check_handshake(f, TCP_FRAME_CONNECT_MAX);
	case TCP_FRAME_ACCEPT:
		return check_handshake(f, TCP_FRAME_ACCEPT_MAX);
	case TCP_FRAME_REJECT:
		return check_handshake(f, TCP_FRAME_REJECT_MAX);
	case TCP_FRAME_DISCONNECT:
		return f->length || f->rkey || f->addr ? "unused field not zero" : NULL;
	default:
		return "unknown opcode";
	}
	return f->length > TCP_FRAME_MSG_MAX ? "message too long" : NULL;
}

const char *tcp_frame_decode(const uint8_t *buf, struct tcp_frame *f)
{
	const struct tcp_frame_wire *w = (const struct tcp_frame_wire *)buf;
	const char *why;

	f->op = w->op;
	f->flags = w->flags;
	f->length = le32_get(w->length);
	memcpy(&f->imm, w->imm, sizeof(f->imm));
	f->rkey = le32_get(w->rkey);
	f->addr = le64_get(w->addr);

	why = check_op(f);
	if (why)
		return why;
	if (f->flags & ~(f->op == TCP_FRAME_REJECT ? TCP_FRAME_F_VERSION : 0u))
		return "unknown flag";
	return le16_get(w->reserved) ? "reserved bits not zero" : NULL;
}
