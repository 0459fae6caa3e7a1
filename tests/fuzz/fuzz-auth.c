/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of authentication.  Input: what protects each end, and a script of what somebody
 * between a client and a server does: a byte, whose bit 0 is 1 for what reaches the client, and the
 * number of a message that was heard; then, by bits 1 to 3 of the byte, what becomes of the message
 * (LLVMFuzzerTestOneInput() has the list).  Whatever the script says: an end is PROVEN only if the
 * other end has the same transcript and key, is protected by the same, and has said what the
 * protocol demands; a FAILED end stays FAILED; and the tag of one end is good at the other one only
 * if both are protected by the same. */
#include "auth-chap.h"
#include "psk.h"
#include "fuzz.h"

#define MSGS 16u

struct party {
	struct auth_chap chap;
	bool failed;
};

static struct party client, server;
static struct auth_reply heard[MSGS];	/* all messages so far, the newest last */
static unsigned nheard;
static struct psk key = {.name = "alice", .len = 32, .key = {1, 2, 3}};
static struct psks keys = {.all = &key, .n = 1};

static void hear(const struct auth_reply *msg)
{
	if (msg->len && nheard < MSGS)
		heard[nheard++] = *msg;
}

/* What protects an end, by four bits: the transport, and the session of TLS over tcp. */
static struct auth_channel channel_of(unsigned bits)
{
	static const char *const transports[] = { "rdma", "unix", "tcp", "tcp" };
	struct auth_channel channel = { .binding = { bits & 2 ? (uint8_t)(bits >> 2) : 0 } };

	memcpy(channel.transport, transports[bits & 3], strlen(transports[bits & 3]));
	return channel;
}

static struct auth_channel channels[2];	/* of client and server */

static bool same_channel(void)
{
	return !memcmp(&channels[0], &channels[1], sizeof(channels[0]));
}

/* A connection of the path behind the proof, on the same channels. */
static void check_tags(void)
{
	uint8_t tag[2][AUTH_TAG_LEN], proof[2][AUTH_PROOF_LEN];
	static const uint8_t req[43], rsp[24];

	for (unsigned i = 0; i < 2; i++) {
		auth_chap_tag(client.chap.conn_key, &channels[i], req, sizeof(req), tag[i]);
		auth_chap_accept_proof(client.chap.conn_key, &channels[i], req, sizeof(req), rsp,
				       sizeof(rsp), proof[i]);
	}
	must(!memcmp(tag[0], tag[1], AUTH_TAG_LEN) == same_channel());
	must(!memcmp(proof[0], proof[1], AUTH_PROOF_LEN) == same_channel());
}

static void begin(unsigned chance_of)
{
	struct auth_where where = { .channel = channels[0] };
	struct auth_chance chance;
	struct auth_reply hello;

	memset(&chance, (int)(chance_of + 1), sizeof(chance));
	auth_chap_client(&client.chap, &where, &key, &chance, &hello);
	where.channel = channels[1];
	memset(&chance, (int)(chance_of + 101), sizeof(chance));
	auth_chap_server(&server.chap, &where, "store", &keys, &chance);
	client.failed = server.failed = false;
	hear(&hello);
}

static void check(struct party *p, const struct party *other)
{
	must(!p->failed || p->chap.state == AUTH_FAILED);
	p->failed = p->chap.state == AUTH_FAILED;
	must(!p->failed || p->chap.why);
	if (p->chap.state != AUTH_PROVEN)
		return;
	must(same_channel());
	must(!memcmp(p->chap.transcript, other->chap.transcript, AUTH_HASH_LEN));
	must(!memcmp(p->chap.claim, other->chap.claim, AUTH_PROOF_LEN));
	if (p == &client)
		must(other->chap.state == AUTH_PROVEN &&
		     !memcmp(p->chap.conn_key, other->chap.conn_key, AUTH_HASH_LEN));
	else
		must(other->chap.state != AUTH_GREETED);
}

/* A message reaches @p: exactly @len bytes, so that a sanitizer sees a read beyond. */
static void reach(struct party *p, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct auth_reply reply;

	must(copy);
	if (len)
		memcpy(copy, bytes, len);
	/* An end that was over is not asked again: the other end may have begun again by then. */
	if (p->chap.state < AUTH_PROVEN) {
		auth_chap_take(&p->chap, copy, len, &reply);
		must(reply.len <= sizeof(reply.bytes));
		check(p, p == &client ? &server : &client);
		hear(&reply);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	nheard = 0;
	for (unsigned i = 0; i < 2; i++)
		channels[i] = channel_of((unsigned)fuzz_take(&in, 1) & 15);
	begin(0);
	check_tags();
	for (unsigned step = 0; in.left && step < 24; step++) {
		unsigned op = (unsigned)fuzz_take(&in, 1);
		struct party *to = op & 1 ? &client : &server;
		struct auth_reply msg = heard[fuzz_take(&in, 1) % nheard];
		size_t n;

		switch (op >> 1 & 7) {
		case 0:
		case 1:			/* nothing */
			break;
		case 2:			/* a byte of it changes: 8 bits of place, of change */
			n = fuzz_take(&in, 1) % sizeof(msg.bytes);
			msg.bytes[n] ^= (uint8_t)fuzz_take(&in, 1);
			break;
		case 3:			/* 8 bits: its length */
			msg.len = fuzz_take(&in, 1) % (sizeof(msg.bytes) + 1);
			break;
		case 4:			/* 8 bits n: n bytes of the input in its place */
			n = MIN((size_t)fuzz_take(&in, 1), in.left);
			reach(to, in.p, n);
			in.p += n;
			in.left -= n;
			continue;
		case 5:			/* the end of one behind the begin of another */
			n = fuzz_take(&in, 1) % sizeof(msg.bytes);
			memcpy(msg.bytes + n, heard[fuzz_take(&in, 1) % nheard].bytes + n,
			       sizeof(msg.bytes) - n);
			break;
		case 6:			/* both ends begin again */
			if (nheard < MSGS)
				begin(step + 1);
			continue;
		default:
			continue;
		}
		reach(to, msg.bytes, msg.len);
	}
	return 0;
}
