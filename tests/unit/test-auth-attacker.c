/* SPDX-License-Identifier: BSD-3-Clause */
/* An attacker who holds every message of the handshake.  The parties: alice and bob, who begin
 * one handshake each with a server of their choice; two servers with the same keys, on as many
 * connections as the attacker opens; and mallory, the attacker's own client, whose key both
 * servers know.  The attacker may drop, replay, reflect, reorder and splice messages between any
 * of them.
 *
 * Exhaustive: all orders of deliveries, of whole messages and of messages under another type, to
 * a depth of AUTH_DEPTH deliveries that are taken (3).  A delivery that an end refuses ends that
 * end and tells nothing, so nothing follows it.  Then splices of two messages, AUTH_SPLICE_DEPTH
 * deep (1), behind each begin of the honest run.  Then at random, AUTH_WALKS walks (1500) of 24
 * steps.
 *
 * The oracle, at each end that is proven: the other end that it names exists, has the same key,
 * place and messages (agreement); no second end agrees with the same one (injective); both have
 * one key for connections, which is no other pair's, and which was never sent (secrecy). */
#define _GNU_SOURCE
#include <stdint.h>

#include "unit.h"

#include "auth-chap.h"
#include "clock.h"
#include "psk.h"

#define CLIENTS 3u			/* alice, bob, mallory */
#define SERVERS 5u			/* connections to servers */
#define ENDS (CLIENTS + SERVERS)
#define HEARD_MAX 24u

struct world {
	struct auth_chap end[ENDS];
	struct auth_reply heard[HEARD_MAX];
	unsigned n;
};

static struct psk key_of[CLIENTS];
static const struct psks keys = {.all = key_of, .n = CLIENTS};
static unsigned long nsteps, nproven;

/* The connection of a client has the client's place.  Those to servers, as the attacker opens them:
 * to store1 in the places of alice (twice) and mallory, to store2 in those of alice and bob. */
static const struct { const char *server; unsigned place; } opened[SERVERS] = {
	{ "store1", 0 }, { "store1", 0 }, { "store1", 2 }, { "store2", 0 }, { "store2", 1 },
};

static void hear(struct world *w, const struct auth_reply *msg)
{
	if (msg->len && w->n < HEARD_MAX)
		w->heard[w->n++] = *msg;
}

static void place_of(struct auth_where *where, unsigned place)
{
	memset(where, 0, sizeof(*where));
	memset(where->conn_req, (int)(0x10 + place), sizeof(where->conn_req));
}

static void begin(struct world *w)
{
	static const char *const names[CLIENTS] = { "alice", "bob", "mallory" };
	struct auth_chance chance;
	struct auth_where where;
	struct auth_reply hello;

	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < ENDS; i++) {
		memset(&chance, (int)(i + 1), sizeof(chance));
		place_of(&where, i < CLIENTS ? i : opened[i - CLIENTS].place);
		if (i >= CLIENTS) {
			auth_chap_server(&w->end[i], &where, opened[i - CLIENTS].server, &keys,
					 &chance);
			continue;
		}
		strcpy(key_of[i].name, names[i]);
		key_of[i].len = 32;
		memset(key_of[i].key, (int)(0xa0 + i), 32);
		auth_chap_client(&w->end[i], &where, &key_of[i], &chance, &hello);
		hear(w, &hello);
	}
}

/* ---- the oracle ---- */

static bool same_run(const struct auth_chap *a, const struct auth_chap *b)
{
	return !memcmp(&a->where, &b->where, sizeof(a->where)) &&
	       !memcmp(&a->hello, &b->hello, sizeof(a->hello)) &&
	       !memcmp(&a->challenge, &b->challenge, sizeof(a->challenge)) &&
	       !memcmp(a->claim, b->claim, sizeof(a->claim));
}

static void check_secret(const struct world *w, const struct auth_chap *c)
{
	for (unsigned i = 0; i < w->n; i++) {
		cr_assert_not(memmem(w->heard[i].bytes, w->heard[i].len, c->conn_key, 10));
		for (unsigned k = 0; k < CLIENTS; k++)
			cr_assert_not(memmem(w->heard[i].bytes, w->heard[i].len, key_of[k].key, 8));
	}
}

/* A client is proven: the server that it names has the run, and is proven to, once. */
static void check_client(const struct world *w, unsigned c)
{
	unsigned partners = 0;

	for (unsigned s = CLIENTS; s < ENDS; s++) {
		if (!same_run(&w->end[c], &w->end[s]))
			continue;
		partners++;
		cr_assert_eq(w->end[s].state, AUTH_PROVEN);
		cr_assert_str_eq(w->end[c].peer, opened[s - CLIENTS].server);
		cr_assert_str_eq(w->end[s].peer, key_of[c].name);
		cr_assert(!memcmp(w->end[c].conn_key, w->end[s].conn_key, AUTH_HASH_LEN));
	}
	cr_assert_eq(partners, 1, "client %u is proven to %u servers", c, partners);
}

/* A server is proven: the client whose name it heard has the run, and has claimed it, once. */
static void check_server(const struct world *w, unsigned s)
{
	unsigned partners = 0;

	for (unsigned c = 0; c < CLIENTS; c++) {
		if (!same_run(&w->end[c], &w->end[s]))
			continue;
		partners++;
		/* It has made the claim; what came afterwards may have failed it. */
		cr_assert(w->end[c].state == AUTH_CLAIMED || w->end[c].state == AUTH_PROVEN ||
			  w->end[c].state == AUTH_FAILED);
		cr_assert_str_eq(w->end[s].peer, key_of[c].name);
	}
	cr_assert_eq(partners, 1, "server %u is proven to %u clients", s, partners);
	for (unsigned other = CLIENTS; other < ENDS; other++)
		cr_assert(other == s || w->end[other].state != AUTH_PROVEN ||
			  memcmp(w->end[other].conn_key, w->end[s].conn_key, AUTH_HASH_LEN));
}

static void judge(const struct world *w, unsigned end)
{
	if (w->end[end].state != AUTH_PROVEN)
		return;
	nproven++;
	check_secret(w, &w->end[end]);
	if (end < CLIENTS)
		check_client(w, end);
	else
		check_server(w, end);
}

/* ---- deliveries ---- */

static bool waits(const struct auth_chap *c)
{
	return c->state > AUTH_IDLE && c->state < AUTH_PROVEN;
}

/* Deliver @msg to @end.  False: refused, which tells the attacker nothing. */
static bool deliver(struct world *w, unsigned end, const struct auth_reply *msg)
{
	struct auth_reply reply;
	int rc = auth_chap_take(&w->end[end], msg->bytes, msg->len, &reply);

	nsteps++;
	judge(w, end);
	if (rc)
		return false;
	hear(w, &reply);
	return true;
}

/* Would @end look into @msg at all?  Others it refuses by type and length. */
static bool looks(const struct auth_chap *c, const struct auth_reply *msg)
{
	static const unsigned wanted[AUTH_NSTATES] = {
		[AUTH_GREETED] = AUTH_MSG_CHALLENGE, [AUTH_CLAIMED] = AUTH_MSG_DONE,
		[AUTH_LISTENS] = AUTH_MSG_HELLO, [AUTH_CHALLENGED] = AUTH_MSG_PROOF,
	};
	le16 type;

	memcpy(&type, msg->bytes, sizeof(type));
	return waits(c) && le16_get(type) == wanted[c->state];
}

/* The message @i that was heard: as it was, or, with @form, under the other type of its length. */
static struct auth_reply form_of(const struct world *w, unsigned i, unsigned form)
{
	struct auth_reply msg = w->heard[i];
	struct auth_msg_proof *hdr = (void *)msg.bytes;

	if (form)
		hdr->type = le16_put(le16_get(hdr->type) ^ (msg.len == 200 ? 0x8101 ^ 0x8102 :
								   0x8103 ^ 0x8104));
	return msg;
}

static void all_deliveries(const struct world *w, unsigned depth)
{
	struct world *next = malloc(sizeof(*next));

	cr_assert_not_null(next);
	for (unsigned i = 0; i < 2 * w->n && depth; i++) {
		struct auth_reply msg = form_of(w, i / 2, i % 2);

		for (unsigned end = 0; end < ENDS; end++) {
			if (!looks(&w->end[end], &msg))
				continue;
			*next = *w;
			if (deliver(next, end, &msg))
				all_deliveries(next, depth - 1);
		}
	}
	free(next);
}

/* ---- splices ---- */

static const struct { size_t at, len; } fields[] = {
	{ offsetof(struct auth_msg_hello, nonce), AUTH_NONCE_LEN },
	{ offsetof(struct auth_msg_hello, public), AUTH_POINT_LEN },
	{ offsetof(struct auth_msg_hello, name), AUTH_NAME_MAX },
	{ offsetof(struct auth_msg_proof, status), 2 },
	{ offsetof(struct auth_msg_proof, proof), AUTH_PROOF_LEN },
};

/* Put field @f of @from into @msg. */
static void splice(struct auth_reply *msg, const struct auth_reply *from, unsigned f)
{
	memcpy(msg->bytes + fields[f].at, from->bytes + fields[f].at, fields[f].len);
	if (f == 2)			/* a name and its length */
		memcpy(msg->bytes + offsetof(struct auth_msg_hello, name_len),
		       from->bytes + offsetof(struct auth_msg_hello, name_len), 2);
}

static void all_splices(const struct world *w, unsigned depth)
{
	struct world *next = malloc(sizeof(*next));

	cr_assert_not_null(next);
	for (unsigned i = 0; i < 2 * w->n && depth; i++) {
		for (unsigned k = 0; k < w->n * ARRAY_SIZE(fields); k++) {
			struct auth_reply msg = form_of(w, i / 2, i % 2);
			const struct auth_reply *from = &w->heard[k / ARRAY_SIZE(fields)];

			if (from->len != msg.len ||
			    (msg.len == 200) != (k % ARRAY_SIZE(fields) < 3))
				continue;
			splice(&msg, from, k % ARRAY_SIZE(fields));
			if (!memcmp(msg.bytes, w->heard[i / 2].bytes, msg.len))
				continue;
			for (unsigned end = 0; end < ENDS; end++) {
				if (!looks(&w->end[end], &msg))
					continue;
				*next = *w;
				if (deliver(next, end, &msg))
					all_splices(next, depth - 1);
			}
		}
	}
	free(next);
}

/* ---- the runs ---- */

static unsigned from_env(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 0) : otherwise;
}

/* The honest run of alice and store1: messages 0 (HELLO), then as they are heard. */
static void honest(struct world *w, unsigned steps)
{
	static const unsigned to[] = { CLIENTS, 0, CLIENTS, 0 };

	for (unsigned i = 0; i < steps; i++)
		cr_assert(deliver(w, to[i], &w->heard[i ? w->n - 1 : 0]));
}

Test(auth_attacker, all_orders, .timeout = 3600)
{
	struct world *w = calloc(1, sizeof(*w));

	for (unsigned steps = 0; steps <= 3; steps++) {
		begin(w);
		honest(w, steps);
		all_deliveries(w, from_env("AUTH_DEPTH", 3));
	}
	cr_assert_gt(nproven, 0);
	fprintf(stderr, "all orders: %lu deliveries, %lu ends proven\n", nsteps, nproven);
	free(w);
}

Test(auth_attacker, all_splices, .timeout = 3600)
{
	struct world *w = calloc(1, sizeof(*w));

	for (unsigned steps = 0; steps <= 3; steps++) {
		begin(w);
		honest(w, steps);
		all_splices(w, from_env("AUTH_SPLICE_DEPTH", 1));
	}
	fprintf(stderr, "all splices: %lu deliveries\n", nsteps);
	free(w);
}

Test(auth_attacker, at_random, .timeout = 3600)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t rnd = from_env("AUTH_SEED", 1);

	for (unsigned walk = from_env("AUTH_WALKS", 1500); walk; walk--) {
		begin(w);
		for (unsigned step = 0; step < 24; step++) {
			struct auth_reply msg = form_of(w, random_next(&rnd) % w->n,
							random_next(&rnd) % 4 == 0);
			unsigned end = random_next(&rnd) % ENDS, f = random_next(&rnd) % 16;
			const struct auth_reply *from = &w->heard[random_next(&rnd) % w->n];

			if (f < ARRAY_SIZE(fields) && from->len == msg.len &&
			    (msg.len == 200) == (f < 3))
				splice(&msg, from, f);
			if (looks(&w->end[end], &msg))
				deliver(w, end, &msg);
		}
	}
	cr_assert_gt(nproven, 0);
	fprintf(stderr, "at random: %lu deliveries, %lu ends proven\n", nsteps, nproven);
	free(w);
}
