/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of authentication on the wire (doc/decisions.md D23, man/rtrs-protocol.pod).  Each
 * is a SEND on a connection on which the server has answered CONN_REQ with the wish for it. */
#ifndef AUTH_MSG_H
#define AUTH_MSG_H

#include <stdint.h>

#include "wire-int.h"

/* Over RDMA, where nothing protects a connection, the first version is spoken, which ends of before
 * have; over all else the second, in which each connection proves what protects it. */
#define AUTH_VERSION_RDMA 1u
#define AUTH_VERSION 2u
#define AUTH_NAME_MAX 128u		/* bytes of a name, which has no end on the wire */
#define AUTH_NONCE_LEN 32u
#define AUTH_PROOF_LEN 32u

enum auth_msg_type {
	AUTH_MSG_HELLO = 0x8101,	/* client: who it is, nonce, public key */
	AUTH_MSG_CHALLENGE = 0x8102,	/* server: likewise */
	AUTH_MSG_PROOF = 0x8103,	/* client */
	AUTH_MSG_DONE = 0x8104,		/* server: its proof, or a refusal */
};

struct auth_msg_hello {			/* HELLO and CHALLENGE */
	le16 type;
	le16 version;
	le16 name_len;			/* 1 to AUTH_NAME_MAX */
	uint8_t reserved[2];		/* zero */
	uint8_t nonce[AUTH_NONCE_LEN];
	uint8_t public[32];		/* of X25519, for this handshake alone */
	uint8_t name[AUTH_NAME_MAX];	/* client: of the key; server: its own; zero behind */
};

struct auth_msg_proof {			/* PROOF and DONE */
	le16 type;
	le16 version;
	le16 status;			/* DONE: 0, or an errno: refused; PROOF: zero */
	uint8_t reserved[2];		/* zero */
	uint8_t proof[AUTH_PROOF_LEN];	/* zero in a refusal */
};

_Static_assert(sizeof(struct auth_msg_hello) == 200, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct auth_msg_proof) == 40, "man/rtrs-protocol.pod");

#define AUTH_MSG_MAX sizeof(struct auth_msg_hello)

#endif
