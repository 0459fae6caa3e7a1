/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Labels are of one length, so that no label is the begin of another one with its
 * data. */
#include <errno.h>
#include <string.h>

#include "auth-chap.h"
#include "psk.h"
#include "util.h"

_Static_assert(AUTH_NAME_MAX == PSK_NAME_MAX, "the name of a key is sent");

#define LABEL_LEN 24u
#define LABEL_VERSION 10u		/* where the version stands in it */
struct label {
	char text[LABEL_LEN];
};

static const struct label label_transcript = { "rtrs-auth ? transcript" };
static const struct label label_extract = { "rtrs-auth ? key" };
static const struct label label_client = { "rtrs-auth ? client" };
static const struct label label_server = { "rtrs-auth ? server" };
static const struct label label_conns = { "rtrs-auth ? connections" };
static const struct label label_connect = { "rtrs-auth ? connect" };
static const struct label label_accept = { "rtrs-auth ? accept" };
/* A key is the same one in all versions: a session may have paths of both. */
static const struct label label_key_id = { "rtrs-auth 1 key id" };

#define OR_BETWEEN ", or TLS was terminated or the transport changed between the ends"

#define PART(field) { &(field), sizeof(field) }

/* ---- versions ---- */

uint8_t auth_chap_version(const struct auth_channel *channel)
{
	static const uint8_t rdma[sizeof(channel->transport)] = "rdma";

	return memcmp(channel->transport, rdma, sizeof(rdma)) ? AUTH_VERSION : AUTH_VERSION_RDMA;
}

/* True if proofs have the channel: then a good key, too, fails behind a relay that ends TLS. */
static bool is_bound(const struct auth_channel *channel)
{
	return auth_chap_version(channel) != AUTH_VERSION_RDMA;
}

/* @label for connections on @channel. */
static struct label labelled(struct label label, const struct auth_channel *channel)
{
	label.text[LABEL_VERSION] = (char)('0' + auth_chap_version(channel));
	return label;
}

/* What a tag or a proof on @channel has beside the messages. */
static struct auth_part channel_part(const struct auth_channel *channel)
{
	return (struct auth_part){ channel, is_bound(channel) ? sizeof(*channel) : 0 };
}

/* ---- keys and proofs ---- */

/* Make the key of the proofs of the pre-shared @key and of the secret @shared.  The length of
 * the key is part of it, because HMAC takes a key and the same with zeroes behind for one. */
static void make_prk(struct auth_chap *chap, const uint8_t *key, unsigned len,
		     const uint8_t shared[AUTH_POINT_LEN])
{
	const struct label label = labelled(label_extract, &chap->where.channel);
	uint8_t ikm[LABEL_LEN + 1 + AUTH_POINT_LEN];

	memcpy(ikm, label.text, LABEL_LEN);
	ikm[LABEL_LEN] = (uint8_t)len;
	memcpy(ikm + LABEL_LEN + 1, shared, AUTH_POINT_LEN);
	auth_crypto_extract(key, len, ikm, sizeof(ikm), chap->prk);
	explicit_bzero(ikm, sizeof(ikm));
}

static void make_transcript(struct auth_chap *chap)
{
	const struct label label = labelled(label_transcript, &chap->where.channel);
	const struct auth_part parts[] = {
		PART(label), PART(chap->where.conn_req), PART(chap->where.conn_rsp),
		PART(chap->where.channel.transport), PART(chap->where.channel.binding),
		PART(chap->hello), PART(chap->challenge),
	};

	auth_crypto_hash(parts, ARRAY_SIZE(parts), chap->transcript);
}

static void client_proof(const struct auth_chap *chap, uint8_t proof[AUTH_PROOF_LEN])
{
	const struct label label = labelled(label_client, &chap->where.channel);
	const struct auth_part parts[] = { PART(label), PART(chap->transcript) };

	auth_crypto_hmac(chap->prk, sizeof(chap->prk), parts, ARRAY_SIZE(parts), proof);
}

static void server_proof(const struct auth_chap *chap, uint8_t proof[AUTH_PROOF_LEN])
{
	const struct label label = labelled(label_server, &chap->where.channel);
	const struct auth_part parts[] = { PART(label), PART(chap->transcript),
					   PART(chap->claim) };

	auth_crypto_hmac(chap->prk, sizeof(chap->prk), parts, ARRAY_SIZE(parts), proof);
}

void auth_chap_key_id(const uint8_t *key, size_t len, uint8_t id[16])
{
	const struct auth_part parts[] = { PART(label_key_id) };
	uint8_t all[AUTH_HASH_LEN];

	auth_crypto_hmac(key, len, parts, ARRAY_SIZE(parts), all);
	memcpy(id, all, 16);
}

static void proven(struct auth_chap *chap, const struct psk *key)
{
	const struct label label = labelled(label_conns, &chap->where.channel);
	const struct auth_part parts[] = { PART(label), PART(chap->transcript),
					   PART(chap->claim) };

	auth_crypto_hmac(chap->prk, sizeof(chap->prk), parts, ARRAY_SIZE(parts), chap->conn_key);
	auth_chap_key_id(key->key, key->len, chap->key_id);
	chap->serial = key->serial;
	chap->since_s = key->since_s;
	chap->state = AUTH_PROVEN;
}

/* ---- messages ---- */

static int fail(struct auth_chap *chap, int err, const char *why)
{
	chap->state = AUTH_FAILED;
	chap->why = why;
	return err;
}

static void put_hello(const struct auth_chap *chap, enum auth_msg_type type, const char *name,
		      struct auth_msg_hello *m)
{
	size_t len = strnlen(name, AUTH_NAME_MAX);

	*m = (struct auth_msg_hello){
		.type = le16_put(type),
		.version = le16_put(auth_chap_version(&chap->where.channel)),
		.name_len = le16_put((uint16_t)len),
	};
	memcpy(m->nonce, chap->chance.nonce, sizeof(m->nonce));
	auth_crypto_public(chap->chance.secret, m->public);
	memcpy(m->name, name, len);
}

static void put_proof(const struct auth_chap *chap, struct auth_reply *reply,
		      enum auth_msg_type type, unsigned status, const uint8_t *proof)
{
	struct auth_msg_proof m = {
		.type = le16_put(type),
		.version = le16_put(auth_chap_version(&chap->where.channel)),
		.status = le16_put((uint16_t)status),
	};

	if (proof)
		memcpy(m.proof, proof, sizeof(m.proof));
	reply->len = sizeof(m);
	memcpy(reply->bytes, &m, sizeof(m));
}

/* Read the name in @m into chap->peer.  False: no name, or bytes behind. */
static bool take_name(struct auth_chap *chap, const struct auth_msg_hello *m)
{
	size_t len = le16_get(m->name_len);

	if (!len || len > AUTH_NAME_MAX)
		return false;
	for (size_t i = 0; i < AUTH_NAME_MAX; i++) {
		if (i < len ? m->name[i] <= ' ' || m->name[i] == 0x7f : m->name[i])
			return false;
	}
	memcpy(chap->peer, m->name, len);
	chap->peer[len] = '\0';
	return true;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

/* ---- what a message does: 0 or the errno of FAILED ---- */

/* Server. */
static int take_hello(struct auth_chap *chap, const void *msg, struct auth_reply *reply)
{
	memcpy(&chap->hello, msg, sizeof(chap->hello));
	if (!is_zero(chap->hello.reserved, sizeof(chap->hello.reserved)) ||
	    !take_name(chap, &chap->hello))
		return fail(chap, -EPROTO, "HELLO without a name of a key");
	chap->state = AUTH_CHALLENGED;
	reply->len = sizeof(chap->challenge);
	memcpy(reply->bytes, &chap->challenge, sizeof(chap->challenge));
	return 0;
}

/* Client. */
static int take_challenge(struct auth_chap *chap, const void *msg, struct auth_reply *reply)
{
	uint8_t shared[AUTH_POINT_LEN];

	memcpy(&chap->challenge, msg, sizeof(chap->challenge));
	if (!is_zero(chap->challenge.reserved, sizeof(chap->challenge.reserved)) ||
	    !take_name(chap, &chap->challenge))
		return fail(chap, -EPROTO, "CHALLENGE without a name of the server");
	if (!auth_crypto_shared(chap->chance.secret, chap->challenge.public, shared))
		return fail(chap, -EPROTO, "CHALLENGE with a public key of small order");
	make_transcript(chap);
	make_prk(chap, chap->key->key, chap->key->len, shared);
	explicit_bzero(shared, sizeof(shared));
	client_proof(chap, chap->claim);
	put_proof(chap, reply, AUTH_MSG_PROOF, 0, chap->claim);
	chap->state = AUTH_CLAIMED;
	return 0;
}

/* Compare the proof with that of the key of the HELLO's name.  An unknown name has a key of chance,
 * so that an unauthenticated client does not learn which names there are. */
static const struct psk *check_claim(struct auth_chap *chap, const uint8_t shared[AUTH_POINT_LEN])
{
	const struct psk *key = psk_find(chap->keys, chap->peer, strlen(chap->peer));
	uint8_t expected[AUTH_PROOF_LEN];
	bool same;

	chap->known = key;
	make_transcript(chap);
	if (key)
		make_prk(chap, key->key, key->len, shared);
	else
		make_prk(chap, chap->chance.nobody, sizeof(chap->chance.nobody), shared);
	client_proof(chap, expected);
	same = auth_crypto_same(expected, chap->claim, sizeof(expected));
	explicit_bzero(expected, sizeof(expected));
	return same ? key : NULL;
}

/* Server. */
static int take_proof(struct auth_chap *chap, const void *msg, struct auth_reply *reply)
{
	uint8_t shared[AUTH_POINT_LEN], proof[AUTH_PROOF_LEN];
	const struct auth_msg_proof *m = msg;
	const struct psk *key;

	if (le16_get(m->status) || !is_zero(m->reserved, sizeof(m->reserved)))
		return fail(chap, -EPROTO, "PROOF with bytes that are not zero");
	if (!auth_crypto_shared(chap->chance.secret, chap->hello.public, shared))
		return fail(chap, -EPROTO, "HELLO with a public key of small order");
	memcpy(chap->claim, m->proof, sizeof(chap->claim));
	key = check_claim(chap, shared);
	explicit_bzero(shared, sizeof(shared));
	if (!key) {
		put_proof(chap, reply, AUTH_MSG_DONE, EACCES, NULL);
		return fail(chap, -EACCES, !chap->known ? "no key has this name" :
			    is_bound(&chap->where.channel) ? "wrong key" OR_BETWEEN : "wrong key");
	}
	server_proof(chap, proof);
	put_proof(chap, reply, AUTH_MSG_DONE, 0, proof);
	proven(chap, key);
	return 0;
}

/* Client. */
static int take_done(struct auth_chap *chap, const void *msg, struct auth_reply *reply)
{
	const struct auth_msg_proof *m = msg;
	uint8_t expected[AUTH_PROOF_LEN];
	bool same;

	(void)reply;
	if (!is_zero(m->reserved, sizeof(m->reserved)))
		return fail(chap, -EPROTO, "DONE with bytes that are not zero");
	if (le16_get(m->status))
		return fail(chap, -EKEYREJECTED, is_bound(&chap->where.channel) ?
			    "the server has refused the key" OR_BETWEEN :
			    "the server has refused the key");
	server_proof(chap, expected);
	same = auth_crypto_same(expected, m->proof, sizeof(expected));
	explicit_bzero(expected, sizeof(expected));
	if (!same)
		return fail(chap, -EACCES, "the server has not proven that it has the key");
	proven(chap, chap->key);
	return 0;
}

/* ---- the table ---- */

/* All messages that may come; any other message fails the handshake. */
static const struct {
	enum auth_state state;
	enum auth_msg_type type;
	size_t len;
	int (*take)(struct auth_chap *chap, const void *msg, struct auth_reply *reply);
} rows[] = {
	{ AUTH_LISTENS, AUTH_MSG_HELLO, sizeof(struct auth_msg_hello), take_hello },
	{ AUTH_GREETED, AUTH_MSG_CHALLENGE, sizeof(struct auth_msg_hello), take_challenge },
	{ AUTH_CHALLENGED, AUTH_MSG_PROOF, sizeof(struct auth_msg_proof), take_proof },
	{ AUTH_CLAIMED, AUTH_MSG_DONE, sizeof(struct auth_msg_proof), take_done },
};

int auth_chap_take(struct auth_chap *chap, const void *msg, size_t len, struct auth_reply *reply)
{
	const struct auth_msg_proof *hdr = msg;

	reply->len = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].state != chap->state)
			continue;
		if (rows[i].len != len || le16_get(hdr->type) != rows[i].type)
			return fail(chap, -EPROTO, "another message than expected");
		if (le16_get(hdr->version) != auth_chap_version(&chap->where.channel))
			return fail(chap, -EPROTO, "another version of authentication");
		return rows[i].take(chap, msg, reply);
	}
	return fail(chap, -EPROTO, "a message after the end");
}

/* ---- begin and end ---- */

static void begin(struct auth_chap *chap, enum auth_state state, const struct auth_where *where,
		  const struct auth_chance *chance)
{
	memset(chap, 0, sizeof(*chap));
	chap->state = state;
	chap->where = *where;
	chap->chance = *chance;
}

void auth_chap_client(struct auth_chap *chap, const struct auth_where *where, const struct psk *key,
		      const struct auth_chance *chance, struct auth_reply *reply)
{
	begin(chap, AUTH_GREETED, where, chance);
	chap->key = key;
	put_hello(chap, AUTH_MSG_HELLO, key->name, &chap->hello);
	reply->len = sizeof(chap->hello);
	memcpy(reply->bytes, &chap->hello, sizeof(chap->hello));
}

void auth_chap_server(struct auth_chap *chap, const struct auth_where *where, const char *name,
		      const struct psks *keys, const struct auth_chance *chance)
{
	begin(chap, AUTH_LISTENS, where, chance);
	chap->keys = keys;
	put_hello(chap, AUTH_MSG_CHALLENGE, name, &chap->challenge);
}

void auth_chap_end(struct auth_chap *chap)
{
	explicit_bzero(chap, sizeof(*chap));
}

/* ---- connections ---- */

void auth_chap_tag(const uint8_t conn_key[AUTH_HASH_LEN], const struct auth_channel *channel,
		   const uint8_t *conn_req, size_t len, uint8_t tag[AUTH_TAG_LEN])
{
	const struct label label = labelled(label_connect, channel);
	const struct auth_part parts[] = { PART(label), channel_part(channel), { conn_req, len } };
	uint8_t all[AUTH_HASH_LEN];

	auth_crypto_hmac(conn_key, AUTH_HASH_LEN, parts, ARRAY_SIZE(parts), all);
	memcpy(tag, all, AUTH_TAG_LEN);
}

void auth_chap_accept_proof(const uint8_t conn_key[AUTH_HASH_LEN],
			    const struct auth_channel *channel, const uint8_t *conn_req,
			    size_t req_len, const uint8_t *conn_rsp, size_t rsp_len,
			    uint8_t proof[AUTH_PROOF_LEN])
{
	const struct label label = labelled(label_accept, channel);
	const struct auth_part parts[] = { PART(label), channel_part(channel),
					   { conn_req, req_len }, { conn_rsp, rsp_len } };

	auth_crypto_hmac(conn_key, AUTH_HASH_LEN, parts, ARRAY_SIZE(parts), proof);
}
