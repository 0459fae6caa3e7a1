/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of authentication: against an independent implementation, and against whoever
 * changes, cuts, repeats or turns around its messages. */
#include <errno.h>
#include <stdint.h>

#include "unit.h"

#include "auth-chap.h"
#include "auth-vectors.h"
#include "psk.h"

/* ---- two ends ---- */

static void row(void *out, unsigned first, unsigned step, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)(first + step * i);
}

static struct psk keys_of_all[3];
static struct psks known = {.all = keys_of_all, .n = 3};
static struct auth_where where;
static struct auth_chance client_chance, server_chance;

static void set_up(void)
{
	static const char *const names[] = { "bob", "alice/2", "alice" };

	memset(keys_of_all, 0, sizeof(keys_of_all));
	for (unsigned i = 0; i < 3; i++) {
		strcpy(keys_of_all[i].name, names[i]);
		keys_of_all[i].len = 32;
		row(keys_of_all[i].key, i == 1 ? 1 : 100 + i, 7, 32);
	}
	memset(&where, 0, sizeof(where));
	row(where.conn_req, 0x10, 1, sizeof(where.conn_req));
	row(where.conn_rsp, 0x60, 3, sizeof(where.conn_rsp));
	memcpy(where.channel.transport, "tcp", 3);
	row(where.channel.binding, 0xa0, 5, sizeof(where.channel.binding));
	row(client_chance.nonce, 0x21, 9, 32);
	row(client_chance.secret, 0x31, 11, 32);
	row(server_chance.nonce, 0x41, 13, 32);
	row(server_chance.secret, 0x51, 17, 32);
	row(server_chance.nobody, 0x61, 3, 32);
}

TestSuite(auth_chap, .init = set_up);

#define ALICE_2 (&keys_of_all[1])

/* A handshake, and its four messages. */
struct talk {
	struct auth_chap client, server;
	struct auth_reply msg[4];
};

static void begin(struct talk *t, const struct psk *key)
{
	memset(t, 0, sizeof(*t));
	auth_chap_client(&t->client, &where, key, &client_chance, &t->msg[0]);
	auth_chap_server(&t->server, &where, "store1", &known, &server_chance);
}

static struct auth_chap *taker(struct talk *t, unsigned step)
{
	return step % 2 ? &t->client : &t->server;
}

/* Let message @step arrive as the @len bytes @bytes. */
static int arrive(struct talk *t, unsigned step, const void *bytes, size_t len)
{
	struct auth_reply reply;
	void *tight = tight_copy(bytes, len);
	int rc = auth_chap_take(taker(t, step), tight, len, &reply);

	if (step + 1 < ARRAY_SIZE(t->msg))
		t->msg[step + 1] = reply;
	free(tight);
	return rc;
}

/* Go on from message @from until before message @to, or until an error. */
static int go_on(struct talk *t, unsigned from, unsigned to)
{
	int rc = 0;

	for (unsigned i = from; i < to && t->msg[i].len; i++) {
		int r = arrive(t, i, t->msg[i].bytes, t->msg[i].len);

		rc = rc ? rc : r;
	}
	return rc;
}

static bool both_proven(const struct talk *t)
{
	return t->client.state == AUTH_PROVEN && t->server.state == AUTH_PROVEN;
}

/* ---- it works, as it is written ---- */

struct golden {
	struct { const uint8_t *bytes; size_t len; } msg[4];
	const uint8_t *conn_key, *tag, *accept;
};

#define GOLDEN(v) {                                                                                \
		.msg = { { golden_hello_##v, sizeof(golden_hello_##v) },                           \
			 { golden_challenge_##v, sizeof(golden_challenge_##v) },                   \
			 { golden_proof_##v, sizeof(golden_proof_##v) },                           \
			 { golden_done_##v, sizeof(golden_done_##v) } },                           \
		.conn_key = golden_conn_key_##v, .tag = golden_tag_##v,                            \
		.accept = golden_accept_##v,                                                       \
	}

static void as_golden(const struct golden *g)
{
	uint8_t req[43], rsp[24], tag[AUTH_TAG_LEN], proof[AUTH_PROOF_LEN];
	static struct talk t;

	begin(&t, ALICE_2);
	cr_assert_eq(go_on(&t, 0, 4), 0);
	cr_assert(both_proven(&t));
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(t.msg[i].len, g->msg[i].len);
		expect_bytes(t.msg[i].bytes, g->msg[i].bytes, g->msg[i].len, "message");
	}
	expect_bytes(t.client.conn_key, g->conn_key, 32, "key of connections, client");
	expect_bytes(t.server.conn_key, g->conn_key, 32, "key of connections, server");
	expect_bytes(t.server.key_id, golden_key_id, 16, "key id");
	row(req, 0x07, 1, sizeof(req));
	row(rsp, 0x09, 2, sizeof(rsp));
	auth_chap_tag(t.client.conn_key, &where.channel, req, sizeof(req), tag);
	expect_bytes(tag, g->tag, sizeof(tag), "tag");
	auth_chap_accept_proof(t.client.conn_key, &where.channel, req, sizeof(req), rsp,
			       sizeof(rsp), proof);
	expect_bytes(proof, g->accept, sizeof(proof), "proof of an accept");
	cr_assert_str_eq(t.server.peer, "alice/2");
	cr_assert_str_eq(t.client.peer, "store1");
}

Test(auth_chap, as_an_independent_implementation)
{
	static const struct golden over_rdma = GOLDEN(1), over_tcp = GOLDEN(2);
	uint8_t id[16];

	as_golden(&over_tcp);
	memcpy(where.channel.transport, "rdma", 4);
	as_golden(&over_rdma);
	auth_chap_key_id(ALICE_2->key, ALICE_2->len, id);
	expect_bytes(id, golden_key_id, 16, "key id");
}

/* An end speaks the version of its transport, whatever the other end or somebody between says. */
Test(auth_chap, the_other_version)
{
	static const char *const transports[] = { "tcp", "unix", "rdma" };
	/* Names that begin or end as that of RDMA, or nearly. */
	static const char *const others[] = { "", "rdm", "rdmas", "Rdma", "srdma" };
	struct auth_reply reply;
	static struct talk t;

	for_each_case(transport, transports) {
		unsigned version = strcmp(*transport, "rdma") ? 2 : 1;

		memset(where.channel.transport, 0, sizeof(where.channel.transport));
		memcpy(where.channel.transport, *transport, strlen(*transport));
		cr_assert_eq(auth_chap_version(&where.channel), version);
		for (unsigned step = 0; step < 4; step++) {
			begin(&t, ALICE_2);
			cr_assert_eq(go_on(&t, 0, step), 0);
			t.msg[step].bytes[2] = (uint8_t)(3 - version);
			cr_assert_eq(auth_chap_take(taker(&t, step), t.msg[step].bytes,
						    t.msg[step].len, &reply), -EPROTO);
			cr_assert_not(reply.len);
		}
	}
	for_each_case(name, others) {
		memset(where.channel.transport, 0, sizeof(where.channel.transport));
		memcpy(where.channel.transport, *name, strlen(*name));
		cr_assert_eq(auth_chap_version(&where.channel), 2);
	}
}

/* RFC 7748, 6.1, and RFC 5869, A.1. */
Test(auth_chap, vectors_of_the_rfcs)
{
	static const uint8_t a[32] = {
		0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2,
		0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5,
		0x1d, 0xb9, 0x2c, 0x2a };
	static const uint8_t b_public[32] = {
		0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4, 0xd3, 0x5b, 0x61, 0xc2, 0xec, 0xe4,
		0x35, 0x37, 0x3f, 0x83, 0x43, 0xc8, 0x5b, 0x78, 0x67, 0x4d, 0xad, 0xfc, 0x7e, 0x14,
		0x6f, 0x88, 0x2b, 0x4f };
	static const uint8_t k[32] = {
		0x4a, 0x5d, 0x9d, 0x5b, 0xa4, 0xce, 0x2d, 0xe1, 0x72, 0x8e, 0x3b, 0xf4, 0x80, 0x35,
		0x0f, 0x25, 0xe0, 0x7e, 0x21, 0xc9, 0x47, 0xd1, 0x9e, 0x33, 0x76, 0xf0, 0x9b, 0x3c,
		0x1e, 0x16, 0x17, 0x42 };
	static const uint8_t prk[32] = {
		0x07, 0x77, 0x09, 0x36, 0x2c, 0x2e, 0x32, 0xdf, 0x0d, 0xdc, 0x3f, 0x0d, 0xc4, 0x7b,
		0xba, 0x63, 0x90, 0xb6, 0xc7, 0x3b, 0xb5, 0x0f, 0x9c, 0x31, 0x22, 0xec, 0x84, 0x4a,
		0xd7, 0xc2, 0xb3, 0xe5 };
	uint8_t out[32], ikm[22], salt[13];

	cr_assert(auth_crypto_shared(a, b_public, out));
	expect_bytes(out, k, 32, "X25519");
	memset(ikm, 0x0b, sizeof(ikm));
	row(salt, 0, 1, sizeof(salt));
	auth_crypto_extract(salt, sizeof(salt), ikm, sizeof(ikm), out);
	expect_bytes(out, prk, 32, "HKDF-Extract");
}

/* Points of small order: the secret would be known to everybody. */
Test(auth_chap, public_keys_of_small_order)
{
	uint8_t point[32] = { 0 }, out[32];
	static struct talk t;

	for (unsigned i = 0; i < 2; i++) {
		point[0] = (uint8_t)i;
		cr_assert_not(auth_crypto_shared(client_chance.secret, point, out));
	}
	begin(&t, ALICE_2);
	memset(t.msg[0].bytes + offsetof(struct auth_msg_hello, public), 0, 32);
	cr_assert_eq(go_on(&t, 0, 4), -EPROTO);
	cr_assert_neq(t.server.state, AUTH_PROVEN);
	begin(&t, ALICE_2);
	go_on(&t, 0, 1);
	memset(t.msg[1].bytes + offsetof(struct auth_msg_hello, public), 0, 32);
	cr_assert_eq(go_on(&t, 1, 4), -EPROTO);
	cr_assert_not(t.msg[2].len);
}

/* ---- keys ---- */

static int with_key(struct talk *t, const char *name, unsigned len, unsigned flip)
{
	static struct psk key;

	key = *ALICE_2;
	strcpy(key.name, name);
	key.len = len;
	key.key[flip / 8 % PSK_KEY_MAX] ^= (uint8_t)(1u << flip % 8);
	begin(t, &key);
	return go_on(t, 0, 4);
}

Test(auth_chap, wrong_keys)
{
	static struct talk t;

	for (unsigned bit = 0; bit < 256; bit++) {
		cr_assert_eq(with_key(&t, "alice/2", 32, bit), -EACCES);
		cr_assert_not_null(strstr(t.server.why, "wrong key, or TLS was terminated"));
		cr_assert_eq(t.client.state, AUTH_FAILED);
		cr_assert_not_null(strstr(t.client.why, "refused the key, or TLS was terminated"));
	}
	/* A key and the same key with a zero byte behind. */
	cr_assert_eq(with_key(&t, "alice/2", 33, 511), -EACCES);
	/* The key of another one, and of another label. */
	cr_assert_eq(with_key(&t, "bob", 32, 511), -EACCES);
	cr_assert_eq(with_key(&t, "alice", 32, 511), -EACCES);
}

/* A stranger sees the same messages for an unknown name as for a wrong key. */
Test(auth_chap, a_name_without_a_key)
{
	static struct talk wrong, unknown;

	with_key(&wrong, "alice/2", 32, 0);
	cr_assert_eq(with_key(&unknown, "mallory", 32, 511), -EACCES);
	cr_assert_str_eq(unknown.server.why, "no key has this name");
	cr_assert_eq(unknown.msg[3].len, wrong.msg[3].len);
	expect_bytes(unknown.msg[3].bytes, wrong.msg[3].bytes, wrong.msg[3].len, "refusal");
	/* Nor is the key of the unknown one that of nobody for somebody who guesses zeroes. */
	memset(server_chance.nobody, 0xff, 32);
	memset(keys_of_all[0].key, 0, 32);
	strcpy(keys_of_all[0].name, "guess");
	begin(&unknown, &keys_of_all[0]);
	known.n = 0;
	cr_assert_eq(go_on(&unknown, 0, 4), -EACCES);
	known.n = 3;
}

/* Even with the very key of chance an unknown name is refused. */
Test(auth_chap, the_key_of_nobody_is_nobodys)
{
	struct psk key = {.name = "mallory", .len = 32};
	static struct talk t;

	memcpy(key.key, server_chance.nobody, 32);
	begin(&t, &key);
	cr_assert_eq(go_on(&t, 0, 4), -EACCES);
	cr_assert_eq(t.server.state, AUTH_FAILED);
}

/* A server without the key: its client goes no further. */
Test(auth_chap, a_server_without_the_key)
{
	struct psk other = *ALICE_2;
	struct psks all = {.all = &other, .n = 1};
	static struct auth_chap client, server;
	static struct auth_reply r[4];

	other.key[0] ^= 1;
	auth_chap_client(&client, &where, ALICE_2, &client_chance, &r[0]);
	auth_chap_server(&server, &where, "store1", &all, &server_chance);
	cr_assert_eq(auth_chap_take(&server, r[0].bytes, r[0].len, &r[1]), 0);
	cr_assert_eq(auth_chap_take(&client, r[1].bytes, r[1].len, &r[2]), 0);
	/* It says "done" nevertheless. */
	for (unsigned i = 0; i < 3; i++) {
		struct auth_chap c = client;
		struct auth_msg_proof m = { .type = le16_put(AUTH_MSG_DONE),
					    .version = le16_put(AUTH_VERSION) };

		if (i == 1)	/* the client's own proof */
			memcpy(m.proof, r[2].bytes + offsetof(struct auth_msg_proof, proof), 32);
		if (i == 2)
			memset(m.proof, 0xa5, 32);
		cr_assert_eq(auth_chap_take(&c, &m, sizeof(m), &r[3]), -EACCES);
		cr_assert_eq(c.state, AUTH_FAILED);
		cr_assert_not(r[3].len);
	}
}

/* ---- messages that were changed on their way ---- */

Test(auth_chap, every_bit_of_every_message)
{
	static struct talk t;

	for (unsigned step = 0; step < 4; step++) {
		size_t len = step < 2 ? sizeof(struct auth_msg_hello) :
					sizeof(struct auth_msg_proof);

		for (size_t bit = 0; bit < 8 * len; bit++) {
			begin(&t, ALICE_2);
			cr_assert_eq(go_on(&t, 0, step), 0);
			t.msg[step].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			cr_assert_lt(go_on(&t, step, 4), 0, "message %u, bit %zu", step, bit);
			cr_assert_not(both_proven(&t), "message %u, bit %zu", step, bit);
			/* An end that is not deceived by the message is by none. */
			cr_assert(step > 2 || t.server.state != AUTH_PROVEN);
			cr_assert_neq(t.client.state, AUTH_PROVEN);
		}
	}
}

/* X25519 ignores the highest bit of a public key; the transcript does not (above). */
Test(auth_chap, every_length_of_every_message)
{
	uint8_t bytes[AUTH_MSG_MAX + 8] = { 0 };
	static struct talk t;

	for (unsigned step = 0; step < 4; step++) {
		for (size_t len = 0; len < sizeof(bytes); len++) {
			begin(&t, ALICE_2);
			cr_assert_eq(go_on(&t, 0, step), 0);
			if (len == t.msg[step].len)
				continue;
			memcpy(bytes, t.msg[step].bytes, t.msg[step].len);
			cr_assert_eq(arrive(&t, step, bytes, len), -EPROTO);
			cr_assert_eq(taker(&t, step)->state, AUTH_FAILED);
			/* And the whole message comes too late. */
			cr_assert_eq(go_on(&t, step, step + 1), -EPROTO);
		}
	}
}

/* What both ends see of their connection. */
Test(auth_chap, every_bit_of_the_place)
{
	static struct talk t;

	for (size_t bit = 0; bit < 8 * sizeof(where); bit++) {
		begin(&t, ALICE_2);
		((uint8_t *)&t.server.where)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(go_on(&t, 0, 4), -EACCES, "bit %zu", bit);
		cr_assert_not(both_proven(&t));
	}
}

Test(auth_chap, names_that_are_none)
{
	static const uint8_t bad[] = { 0, 1, ' ', 0x1f, 0x7f, '\n' };
	static struct talk t;

	for (unsigned at = 0; at < AUTH_NAME_MAX; at++) {
		for_each_case(c, bad) {
			begin(&t, ALICE_2);
			t.msg[0].bytes[offsetof(struct auth_msg_hello, name) + at] = *c;
			cr_assert_eq(go_on(&t, 0, 1), at < strlen("alice/2") || *c ? -EPROTO : 0,
				     "%02x at %u", *c, at);
		}
	}
	for (unsigned len = 0; len < 0x10000; len += len < 300 ? 1 : 997) {
		begin(&t, ALICE_2);
		memcpy(t.msg[0].bytes + offsetof(struct auth_msg_hello, name_len),
		       &(le16){ htole16((uint16_t)len) }, 2);
		cr_assert_eq(go_on(&t, 0, 1), len == strlen("alice/2") ? 0 : -EPROTO, "%u", len);
	}
}

/* ---- messages of other handshakes ---- */

/* Any message, in any state: of this handshake, of an earlier one, turned around. */
Test(auth_chap, replayed_reflected_and_out_of_turn)
{
	static struct talk old, t;
	struct auth_reply reply;

	begin(&old, ALICE_2);
	cr_assert_eq(go_on(&old, 0, 4), 0);
	client_chance.nonce[0]++;
	server_chance.nonce[0]++;
	client_chance.secret[9]++;
	server_chance.secret[9]++;
	for (unsigned step = 0; step <= 4; step++) {
		for (unsigned of_old = 0; of_old < 2; of_old++) {
			for (unsigned i = 0; i < 4; i++) {
				begin(&t, ALICE_2);
				cr_assert_eq(go_on(&t, 0, step), 0);
				for (unsigned to = 0; to < 2; to++) {
					struct auth_chap c = to ? t.client : t.server;
					enum auth_state was = c.state;
					const struct auth_reply *m = of_old ? &old.msg[i] :
									      &t.msg[i];

					if (!m->len || (!of_old && i == step && to == step % 2))
						continue;
					auth_chap_take(&c, m->bytes, m->len, &reply);
					cr_assert(was == AUTH_PROVEN || c.state != AUTH_PROVEN,
						  "step %u, message %u, to %u", step, i, to);
				}
			}
		}
	}
}

/* The old answers for a server that has other chance. */
Test(auth_chap, a_replayed_client)
{
	static struct talk old, t;
	struct auth_reply reply;

	begin(&old, ALICE_2);
	cr_assert_eq(go_on(&old, 0, 4), 0);
	server_chance.nonce[31] ^= 1;
	begin(&t, ALICE_2);
	cr_assert_eq(auth_chap_take(&t.server, old.msg[0].bytes, old.msg[0].len, &reply), 0);
	cr_assert_eq(auth_chap_take(&t.server, old.msg[2].bytes, old.msg[2].len, &reply), -EACCES);
	/* And the old server for a new client. */
	client_chance.nonce[31] ^= 1;
	begin(&t, ALICE_2);
	cr_assert_eq(auth_chap_take(&t.client, old.msg[1].bytes, old.msg[1].len, &reply), 0);
	cr_assert_eq(auth_chap_take(&t.client, old.msg[3].bytes, old.msg[3].len, &reply), -EACCES);
}

/* Two servers with the same key: the proof for one is none for the other, which has another nonce,
 * or another name. */
Test(auth_chap, another_servers_proof)
{
	static struct auth_chap other;
	struct auth_reply reply;
	static struct talk t;

	begin(&t, ALICE_2);
	cr_assert_eq(go_on(&t, 0, 2), 0);
	auth_chap_server(&other, &where, "store2", &known, &server_chance);
	cr_assert_eq(auth_chap_take(&other, t.msg[0].bytes, t.msg[0].len, &reply), 0);
	cr_assert_eq(auth_chap_take(&other, t.msg[2].bytes, t.msg[2].len, &reply), -EACCES);
	cr_assert_eq(reply.len, sizeof(struct auth_msg_proof));
}

/* ---- connections ---- */

/* Tag and proof of a connection, with bit @bit of all that they cover turned. */
static void tag_and_proof(unsigned bit, uint8_t tag[AUTH_TAG_LEN], uint8_t proof[AUTH_PROOF_LEN])
{
	struct {
		struct auth_channel channel;
		uint8_t req[43], rsp[24];
	} all;
	uint8_t key[32];

	all.channel = where.channel;
	row(all.req, 7, 1, sizeof(all.req));
	row(all.rsp, 9, 2, sizeof(all.rsp));
	row(key, 3, 5, sizeof(key));
	if (bit < 8 * sizeof(all))
		((uint8_t *)&all)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	auth_chap_tag(key, &all.channel, all.req, sizeof(all.req), tag);
	auth_chap_accept_proof(key, &all.channel, all.req, sizeof(all.req), all.rsp,
			       sizeof(all.rsp), proof);
}

#define TAGGED (8 * (sizeof(struct auth_channel) + 43))
#define ACCEPTED (TAGGED + 8 * 24)

/* Each bit counts: of the transport, the binding, both messages. */
Test(auth_chap, tags)
{
	uint8_t tag[AUTH_TAG_LEN], other[AUTH_TAG_LEN];
	uint8_t proof[AUTH_PROOF_LEN], changed[AUTH_PROOF_LEN];

	tag_and_proof(UINT32_MAX, tag, proof);
	cr_assert(memcmp(tag, proof, sizeof(tag)));
	for (unsigned bit = 0; bit < ACCEPTED; bit++) {
		tag_and_proof(bit, other, changed);
		cr_assert_eq(auth_crypto_same(tag, other, sizeof(tag)), bit >= TAGGED);
		cr_assert_not(auth_crypto_same(proof, changed, sizeof(proof)));
	}
}

/* A path without TLS has no binding, and still other tags than over RDMA or a unix socket. */
Test(auth_chap, tags_of_transports)
{
	static const char *const transports[] = { "tcp", "unix", "rdma" };
	uint8_t tag[3][AUTH_TAG_LEN], proof[3][AUTH_PROOF_LEN];

	memset(&where.channel, 0, sizeof(where.channel));
	for (unsigned i = 0; i < 3; i++) {
		memcpy(where.channel.transport, transports[i], strlen(transports[i]));
		tag_and_proof(UINT32_MAX, tag[i], proof[i]);
		for (unsigned k = 0; k < i; k++) {
			cr_assert_not(auth_crypto_same(tag[i], tag[k], AUTH_TAG_LEN));
			cr_assert_not(auth_crypto_same(proof[i], proof[k], AUTH_PROOF_LEN));
		}
	}
}

Test(auth_chap, comparison)
{
	uint8_t a[32], b[32];

	row(a, 1, 1, 32);
	memcpy(b, a, 32);
	cr_assert(auth_crypto_same(a, b, 32));
	for (unsigned bit = 0; bit < 256; bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_not(auth_crypto_same(a, b, 32));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* No secret is left. */
Test(auth_chap, the_end)
{
	static const uint8_t none[sizeof(struct auth_chap)];
	static struct talk t;

	begin(&t, ALICE_2);
	go_on(&t, 0, 4);
	auth_chap_end(&t.client);
	expect_bytes(&t.client, none, sizeof(none), "after the end");
}
