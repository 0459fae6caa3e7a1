/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake in which a client and a server prove to each other that both have the same key
 * (doc/decisions.md D23): the states of both ends, and the messages between them.  Bytes in,
 * bytes out: pure, any thread.  Chance comes from the caller.
 *
 *	client		HELLO		its name, nonce and public key
 *	server		CHALLENGE	likewise
 *	client		PROOF		HMAC over all of that
 *	server		DONE		HMAC over all of that and PROOF
 *
 * The key of the HMACs is made of the pre-shared key and of the secret of X25519.  The
 * transcript has both messages as they were sent, and struct auth_where: what both ends know of
 * the connection, with the version that each has told.  Any message that comes in
 * another state, or has another length, ends the handshake. */
#ifndef AUTH_CHAP_H
#define AUTH_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth-crypto.h"
#include "wire-int.h"

struct psk;
struct psks;

/* ---- the messages on the wire (man/rtrs-protocol.pod) ----
 *
 * Each is a SEND on a connection on which the server has answered CONN_REQ with the wish for it. */

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

enum auth_state {
	AUTH_IDLE,			/* not begun */
	AUTH_GREETED,			/* client: HELLO is sent, CHALLENGE awaited */
	AUTH_CLAIMED,			/* client: PROOF is sent, DONE awaited */
	AUTH_LISTENS,			/* server: HELLO awaited */
	AUTH_CHALLENGED,		/* server: CHALLENGE is sent, PROOF awaited */
	AUTH_PROVEN,			/* the other end has the key */
	AUTH_FAILED,			/* -errno and auth_chap.why tell the cause */
	AUTH_NSTATES
};

/* What protects a connection, as each end sees it. */
struct auth_channel {
	uint8_t transport[8];		/* "tcp", "unix", "rdma"; zero behind */
	uint8_t binding[32];		/* of TLS (fab_conn_binding()); else zero */
};

/* The facts that both ends know of their connection.  A field that one end sees otherwise fails the
 * handshake. */
struct auth_where {
	uint8_t conn_req[54];		/* CONN_REQ without its first two bytes: version, numbers,
					 * uuids of path and session, the ask */
	uint8_t conn_rsp[56];		/* CONN_RSP */
	struct auth_channel channel;
};

/* Chance for one handshake of one end. */
struct auth_chance {
	uint8_t nonce[AUTH_NONCE_LEN];
	uint8_t secret[AUTH_POINT_LEN];
	uint8_t nobody[AUTH_HASH_LEN];	/* server: the key of an unknown name */
};

struct auth_chap {
	enum auth_state state;
	const char *why;		/* FAILED: the cause, static */
	bool known;			/* server: a key has the name of the HELLO */
	char peer[AUTH_NAME_MAX + 1];	/* the name that the other end has told: its own only in
					 * PROVEN */
	uint8_t conn_key[AUTH_HASH_LEN];/* PROVEN: of both ends: auth_chap_tag() */
	uint8_t key_id[16];		/* PROVEN: tells the key from other keys */
	uint64_t serial;		/* PROVEN: of struct psk, as @since_s */
	int64_t since_s;

	/* auth-chap.c's */
	struct auth_where where;
	struct auth_chance chance;
	const struct psk *key;		/* client */
	const struct psks *keys;	/* server */
	struct auth_msg_hello hello, challenge;
	uint8_t prk[AUTH_HASH_LEN];
	uint8_t transcript[AUTH_HASH_LEN];
	uint8_t claim[AUTH_PROOF_LEN];	/* the proof of the client */
};

/* A message to send; len 0: none. */
struct auth_reply {
	size_t len;
	uint8_t bytes[AUTH_MSG_MAX];
};

/* The one version that an end speaks on a connection protected by @channel, AUTH_VERSION*: no peer
 * and nobody between chooses another one. */
uint8_t auth_chap_version(const struct auth_channel *channel);
/* Begin as the client that has @key, which outlives @chap.  @reply is the HELLO. */
void auth_chap_client(struct auth_chap *chap, const struct auth_where *where,
		      const struct psk *key, const struct auth_chance *chance,
		      struct auth_reply *reply);
/* Begin as the server called @name, cut at AUTH_NAME_MAX bytes, that knows @keys, which outlive
 * @chap. */
void auth_chap_server(struct auth_chap *chap, const struct auth_where *where, const char *name,
		      const struct psks *keys, const struct auth_chance *chance);
/* Take the message @msg of the other end, and answer in @reply, which may be set together with an
 * error: the server's refusal.  0, or the negative errno of AUTH_FAILED: -EPROTO, a message against
 * the rules; -EACCES, a proof that is wrong; -EKEYREJECTED, the server has refused. */
int auth_chap_take(struct auth_chap *chap, const void *msg, size_t len, struct auth_reply *reply);
/* Wipe the secrets of @chap. */
void auth_chap_end(struct auth_chap *chap);

/* ---- the connections of a path whose client is proven ---- */

#define AUTH_TAG_LEN 10u

/* The tag of a CONN_REQ that leaves on @channel: over both, the bytes of struct auth_where.conn_req
 * in front of the tag. */
void auth_chap_tag(const uint8_t conn_key[AUTH_HASH_LEN], const struct auth_channel *channel,
		   const uint8_t *conn_req, size_t len, uint8_t tag[AUTH_TAG_LEN]);
/* The proof in the CONN_RSP that accepts on @channel: over the channel, the CONN_REQ and the bytes
 * of the CONN_RSP in front of the proof. */
void auth_chap_accept_proof(const uint8_t conn_key[AUTH_HASH_LEN],
			    const struct auth_channel *channel, const uint8_t *conn_req,
			    size_t req_len, const uint8_t *conn_rsp, size_t rsp_len,
			    uint8_t proof[AUTH_PROOF_LEN]);
/* A number that tells the @len bytes @key from other keys, and nothing else of them. */
void auth_chap_key_id(const uint8_t *key, size_t len, uint8_t id[16]);

#endif
