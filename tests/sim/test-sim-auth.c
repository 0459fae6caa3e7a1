/* SPDX-License-Identifier: BSD-3-Clause */
/* Authentication in messages, on the whole server and client: what a client that has proven itself
 * may do, and what everybody else may not, who knows all that crosses the network. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "conf.h"
#include "raw-clt.h"
#include "raw-srv.h"
#include "secrets-set.h"
#include "srv-auth.h"
#include "srv-state.h"
#include "world.h"

static struct world *w;
static struct raw_clt alice, other;
static char file[] = "/tmp/test-sim-auth.XXXXXX";
static struct psks keys;

/* The keys of the provers follow. */
static char key_text[2048] =
	"alice:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
	"bob:aa112233445566778899aabbccddeeff00112233445566778899aabbccddee01\n"
	"alice/new:bb112233445566778899aabbccddeeff00112233445566778899aabbccddee\n";

static const struct psk *key_of(const char *name)
{
	return psk_find(&keys, name, strlen(name));
}

/* ---- a client made by hand ---- */

/* What a client has after its proof. */
struct proof {
	struct auth_chap chap;
	struct rtrs_msg_conn_req req;	/* of the connection of the proof */
};

static void chance_of(struct auth_chance *chance, unsigned n)
{
	for (unsigned i = 0; i < sizeof(*chance); i++)
		((uint8_t *)chance)[i] = (uint8_t)(n * 31 + i * 7 + 1);
}

static void post_recv(struct hpath *p)
{
	struct ibv_sge sge = { (uintptr_t)p->info_buf, AUTH_MSG_MAX, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&p->cons[0], .sg_list = &sge, .num_sge = 1 };

	p->listens = true;
	p->said = 0;
	CHECK(!fab_post_recv(p->cons[0].conn, &wr));
}

/* Connect with the ask.  The server asks for the proof. */
static void ask(struct raw_clt *c, struct proof *proof, const struct psk *key, unsigned n,
		struct auth_reply *hello)
{
	struct hpath *p = &c->path;
	struct rtrs_msg_conn_rsp rsp;
	struct auth_chance chance;
	struct auth_where where;

	p->auth = RTRS_AUTHS_ASKS;
	p->auth_version = AUTH_VERSION;
	hpath_conn_req(p, 0, &proof->req);
	CHECK(hpath_connect(p, 0) == 0);
	CHECK(p->rsp.auth == RTRS_AUTHS_ASKS);
	rtrs_conn_rsp_encode(&rsp, &p->rsp);
	auth_conn_where(&where, &proof->req, &rsp, p->cons[0].conn);
	chance_of(&chance, n);
	auth_chap_client(&proof->chap, &where, key, &chance, hello);
}

/* Send @msg and take the answer.  False: the server has hung up. */
static bool say(struct raw_clt *c, const void *msg, size_t len)
{
	post_recv(&c->path);
	hpath_send(&c->path, 0, msg, len);
	HWAIT(c->path.said || hpath_any_closed(&c->path));
	return c->path.said;
}

/* Begin anew, for the connections of the path. */
static void leave(struct raw_clt *c)
{
	hpath_reset(&c->path);
	c->path.listens = false;
}

/* Prove that @c has @key.  0, or the errno of the handshake. */
static int prove(struct raw_clt *c, struct proof *proof, const struct psk *key, unsigned n)
{
	struct auth_reply reply;
	int rc = 0;

	ask(c, proof, key, n, &reply);
	while (!rc && proof->chap.state != AUTH_PROVEN) {
		if (!say(c, reply.bytes, reply.len))
			return -ECONNRESET;
		rc = auth_chap_take(&proof->chap, c->path.info_buf, c->path.said, &reply);
	}
	leave(c);
	return rc;
}

static void sealed(struct raw_clt *c, const struct proof *proof, unsigned cid,
		   struct rtrs_msg_conn_req *m)
{
	c->path.auth = RTRS_AUTHS_PROVES;
	hpath_conn_req(&c->path, cid, m);
	/* All of its connections are in plain. */
	auth_conn_req_seal(m, &proof->chap.where.channel, proof->chap.conn_key);
}

/* Connect @cid under the proof.  0 or the errno of the refusal. */
static int enter(struct raw_clt *c, const struct proof *proof, unsigned cid)
{
	struct rtrs_msg_conn_req m;

	sealed(c, proof, cid, &m);
	return hpath_connect_with(&c->path, cid, &m, sizeof(m));
}

/* ---- begin and end ---- */

static void begin(enum auth_mode mode)
{
	struct world_server_conf conf = world_server_defaults;

	conf.auth = (struct auth_conf){ .server = true, .asked = true, .mode = mode, .psk = file };
	conf.any_address = true;
	w = world_serve(&conf);
}

static struct proof alices;

/* A session of alice with a path of two connections. */
static void begin_with_alice(enum auth_mode mode)
{
	begin(mode);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &alices, key_of("alice"), 1) == 0);
	CHECK(enter(&alice, &alices, 0) == 0 && enter(&alice, &alices, 1) == 0);
	CHECK(raw_clt_info(&alice, "sess") == 0);
	world_forget(w);
}

static void alice_is_well(void)
{
	CHECK(!raw_clt_lost(&alice));
	CHECK(hpath_sess_info(&alice.path) == 0);
}

/* ---- our own client ---- */

static void io_of(const struct auth_creds *creds, int want)
{
	struct world_client_conf conf = world_client_defaults;
	struct world_client *c;

	conf.auth = creds;
	conf.name = creds ? secrets_own(creds->secrets)->name : "nobody";
	conf.once = true;
	c = world_client_start(w, &conf);
	world_run_ms(w, 5000);
	CHECK((world_client_opened(c) == 0) == (want == 0));
	world_client_stop(w, c);
}

/* @name: NULL for the only key of @psk. */
static struct auth_creds *creds_out_of(const char *psk, enum auth_mode mode, const char *name)
{
	const struct auth_conf conf = { .asked = true, .mode = mode, .psk = psk,
					.username = name };
	struct auth_creds *creds;
	char err[256];

	CHECK(auth_creds_create(&conf, &creds, err, sizeof(err)) == 0);
	return creds;
}

static struct auth_creds *creds_of(enum auth_mode mode, const char *name)
{
	return creds_out_of(file, mode, name);
}

SIM_TEST(modes)
{
	struct auth_creds *demands = creds_of(AUTH_MODE_REQUIRE, "alice");
	struct auth_creds *may = creds_of(AUTH_MODE_PSK, "bob");

	for (enum auth_mode mode = 0; mode < AUTH_MODES; mode++) {
		begin(mode);
		io_of(demands, mode == AUTH_MODE_NONE);
		io_of(may, 0);
		io_of(NULL, mode == AUTH_MODE_REQUIRE);
		CHECK(world_traced(w, "it does not authenticate, which --auth=require needs") ==
		      (mode == AUTH_MODE_REQUIRE));
		world_destroy(w);
	}
	auth_creds_destroy(demands);
	auth_creds_destroy(may);
}

/* ---- another key for a client that runs ---- */

static char file_of_old[] = "/tmp/test-sim-auth.XXXXXX";
static char file_of_new[] = "/tmp/test-sim-auth.XXXXXX";

static struct clt_path *path_of(struct world_client *c, unsigned i)
{
	return world_client_clt(c)->sess.paths[i];
}

/* True if both paths of @c are up by the key @name. */
static bool both_up_by(struct world_client *c, const char *name)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct clt_path *path = path_of(c, i);

		if (clt_path_state(path) != CLT_PATH_UP ||
		    strcmp(auth_key_name(path->auth.key), name))
			return false;
	}
	return true;
}

static void replace_key(struct auth_creds *creds)
{
	struct secrets_set set = { 0 };
	char *report = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&report, &len);

	secrets_set_add(&set, creds->secrets, file_of_new);
	CHECK(secrets_set_read(&set, stderr));
	secrets_set_replace(&set, out);
	secrets_set_free(&set);
	fclose(out);
	free(report);
}

/* A client of alice with two paths, which gets the key alice/new while it runs. */
static struct world_client *begin_with_new_key(struct auth_creds **creds)
{
	struct world_client *c;

	begin(AUTH_MODE_REQUIRE);
	*creds = creds_out_of(file_of_old, AUTH_MODE_REQUIRE, NULL);
	c = world_client_start(w, CLIENT(.auth = *creds, .npaths = 2));
	world_run_ms(w, 1000);
	CHECK(world_client_opened(c) == 0 && both_up_by(c, "alice"));
	CHECK(world_write(c, 0, 4096, 'a') == 0 && world_flush(c) == 0);
	replace_key(*creds);
	world_forget(w);
	return c;
}

static void end_with_new_key(struct world_client *c, struct auth_creds *creds)
{
	CHECK(world_read(c, 0, 4096, 'a') == 0);
	world_client_stop(w, c);
	world_destroy(w);
	auth_creds_destroy(creds);
}

/* A server that knows the new key alone takes the place of the one that knows all. */
static void restart_with_new_key(void)
{
	struct world_server_conf conf = world_server_defaults;

	conf.auth = (struct auth_conf){ .server = true, .asked = true, .mode = AUTH_MODE_REQUIRE,
					.psk = file_of_new };
	conf.any_address = true;
	if (world_server_runs_on(w, "srv"))
		world_server_stop(w);
	world_server_start(w, &conf);
}

/* A path that is lost comes back at once, by the key of the session.  When the session has lost all
 * paths it begins anew by the new key. */
SIM_TEST(a_new_key_waits_for_the_session)
{
	struct auth_creds *creds;
	struct world_client *c = begin_with_new_key(&creds);

	for (unsigned i = 0; i < 2; i++) {
		clt_path_fail(path_of(c, i), -ECONNRESET, "by the test");
		world_run_ms(w, 1000);
		CHECK(both_up_by(c, "alice"));
		CHECK(path_of(c, i)->failed == 0);
	}
	CHECK(!world_traced(w, "another key of psk:alice"));
	restart_with_new_key();
	world_run_ms(w, 10000);
	CHECK(both_up_by(c, "alice/new"));
	end_with_new_key(c, creds);
}

/* Both paths are lost at once, and the server that follows knows both keys: the new one counts. */
SIM_TEST(a_new_key_begins_with_the_session)
{
	struct auth_creds *creds;
	struct world_client *c = begin_with_new_key(&creds);

	for (unsigned i = 0; i < 2; i++)
		clt_path_fail(path_of(c, i), -ECONNRESET, "by the test");
	world_run_ms(w, 10000);
	CHECK(both_up_by(c, "alice/new"));
	CHECK(!world_traced(w, "the server has refused the key"));
	end_with_new_key(c, creds);
}

/* The client still believes in one path when the other finds a server that knows the new key
 * alone. */
SIM_TEST(a_new_key_behind_the_refusal_of_the_old)
{
	struct auth_creds *creds;
	struct world_client *c = begin_with_new_key(&creds);

	world_server_kill(w, SIM_KILL_POWER);
	sim_power_on("srv");
	restart_with_new_key();
	clt_path_fail(path_of(c, 1), -ECONNRESET, "by the test");
	world_run_ms(w, 3000);
	CHECK(clt_path_state(path_of(c, 0)) == CLT_PATH_UP);
	CHECK(world_traced(w, "the server has refused the key"));
	CHECK(world_traced(w, "not the server that the other paths lead to"));
	world_run_ms(w, 60000);
	CHECK(both_up_by(c, "alice/new"));
	end_with_new_key(c, creds);
}

/* ---- strangers who know all numbers ---- */

/* Without a proof: another path of the session, a connection of its path, a new life of it. */
SIM_TEST(anonymous_in_a_session)
{
	for (enum auth_mode mode = AUTH_MODE_PSK; mode < AUTH_MODES; mode++) {
		for (unsigned path = 1; path <= 2; path++) {
			for (uint16_t recon = 1; recon <= 2; recon++) {
				begin_with_alice(mode);
				raw_clt_init(&other, "clt2", (uint8_t)path, 1, 2);
				other.path.recon_cnt = recon;
				CHECK(raw_clt_connect(&other, 0) == -EACCES);
				other.path.hears = true;
				CHECK(raw_clt_connect(&other, 1) == -EACCES);
				CHECK(other.path.refusal == (mode == AUTH_MODE_REQUIRE ?
				      RTRS_REFUSES_UNPROVEN : RTRS_REFUSES_IDENTITY));
				raw_clt_fini(&other);
				alice_is_well();
			}
		}
	}
}

static bool any(const void *arg, const struct srv_refused *r)
{
	return true;
}

/* The log has the last refusal with the identity that was proven. */
static bool last_refused(const char *identity)
{
	const struct srv_refused *r = srv_log_last_refusal(world_server_srv(w), any, NULL);

	return r && !strcmp(r->identity, identity);
}

/* Before the proof there is one answer, whatever the client knows or makes up, and however full the
 * server is. */
SIM_TEST(one_answer_before_the_proof)
{
	static const uint8_t uuids[] = { 1, 9 };
	struct proof proof;

	for (unsigned full = 0; full < 2; full++) {
		begin_with_alice(AUTH_MODE_REQUIRE);
		if (full)
			world_server_srv(w)->nsessions += CONF_MAX_SESSIONS;
		for (unsigned i = 0; i < ARRAY_SIZE(uuids); i++) {
			raw_clt_init(&other, "clt2", uuids[i], uuids[i], 2);
			other.path.hears = true;
			for (unsigned tag = 0; tag < 2; tag++) {
				other.path.auth = tag ? RTRS_AUTHS_PROVES : RTRS_AUTHS_NOTHING;
				CHECK(raw_clt_connect(&other, 0) == -EACCES);
				CHECK(other.path.refusal == RTRS_REFUSES_UNPROVEN);
			}
			raw_clt_fini(&other);
		}
		/* Behind it the reason follows. */
		raw_clt_init(&other, "clt2", 9, 9, 2);
		other.path.hears = true;
		CHECK(prove(&other, &proof, key_of("bob"), 2) == 0);
		CHECK(enter(&other, &proof, 0) == (full ? -ENOMEM : 0));
		CHECK(!full || other.path.refusal == RTRS_REFUSES_SESSIONS);
		CHECK(last_refused(full ? "psk:bob" : ""));
		raw_clt_fini(&other);
		if (full)
			world_server_srv(w)->nsessions -= CONF_MAX_SESSIONS;
		alice_is_well();
	}
}

/* Bob has a key of his own; alice has another one, too. */
SIM_TEST(another_key_in_a_session)
{
	static const char *const lines[] = {
		"its session belongs to psk:alice, but the client is psk:bob",
		"its session was made with another key of psk:alice",
	};
	static const enum rtrs_refusal refusals[] = { RTRS_REFUSES_IDENTITY,
						      RTRS_REFUSES_OTHER_KEY };
	static const char *const names[] = { "bob", "alice/new" };
	struct proof proof;

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned path = 1; path <= 2; path++) {
			begin_with_alice(AUTH_MODE_REQUIRE);
			raw_clt_init(&other, "clt2", (uint8_t)path, 1, 2);
			other.path.hears = path == 2;
			CHECK(prove(&other, &proof, key_of(names[i]), 2) == 0);
			CHECK(enter(&other, &proof, 0) == -EACCES);
			CHECK(other.path.refusal == (path == 2 ? refusals[i] : RTRS_REFUSES_NOT));
			CHECK(world_traced(w, lines[i]));
			CHECK(last_refused(i ? "psk:alice" : "psk:bob"));
			raw_clt_fini(&other);
			alice_is_well();
		}
	}
}

/* The same key, from another host: a path more. */
SIM_TEST(a_second_path)
{
	struct proof proof;

	begin_with_alice(AUTH_MODE_REQUIRE);
	raw_clt_init(&other, "clt2", 2, 1, 2);
	CHECK(prove(&other, &proof, key_of("alice"), 2) == 0);
	CHECK(enter(&other, &proof, 0) == 0 && enter(&other, &proof, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == 0);
	raw_clt_fini(&other);
	alice_is_well();
}

/* ---- one proof, used again ---- */

/* Each connection of the proof once, in its order, from its address, as it was proven. */
SIM_TEST(a_pass_is_used_up)
{
	struct rtrs_msg_conn_req m[2];
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	sealed(&alice, &proof, 0, &m[0]);
	sealed(&alice, &proof, 1, &m[1]);
	CHECK(hpath_connect_with(&alice.path, 1, &m[1], sizeof(m[1])) == -EACCES);
	raw_clt_init(&other, "clt2", 1, 1, 2);
	CHECK(hpath_connect_with(&other.path, 0, &m[0], sizeof(m[0])) == -EACCES);
	CHECK(world_traced(w, "its path has been authenticated from another address"));
	raw_clt_fini(&other);
	for (unsigned bit = 16; bit < 8 * sizeof(m[0]); bit++) {
		struct rtrs_msg_conn_req changed = m[0];

		((uint8_t *)&changed)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(hpath_connect_with(&alice.path, 0, &changed, sizeof(changed)) < 0);
	}
	CHECK(hpath_connect_with(&alice.path, 0, &m[0], sizeof(m[0])) == 0);
	raw_clt_init(&other, "clt", 1, 1, 2);
	CHECK(hpath_connect_with(&other.path, 0, &m[0], sizeof(m[0])) == -EACCES);
	raw_clt_fini(&other);
	CHECK(hpath_connect_with(&alice.path, 1, &m[1], sizeof(m[1])) == 0);
	CHECK(raw_clt_info(&alice, "sess") == 0);
	raw_clt_hang_up(&alice);
	world_run_ms(w, 10000);
	/* The whole path again, when the first has gone. */
	CHECK(hpath_connect_with(&alice.path, 0, &m[0], sizeof(m[0])) == -EACCES);
}

SIM_TEST(a_pass_gets_old)
{
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	world_run_ms(w, 36000);
	CHECK(enter(&alice, &proof, 0) == -EACCES);
	CHECK(world_traced(w, "its path has not been authenticated, or too long ago"));
}

/* The server's answer has its proof, for that connection alone. */
SIM_TEST(the_server_accepts_with_a_proof)
{
	struct rtrs_msg_conn_req m[2];
	struct rtrs_msg_conn_rsp rsp;
	struct proof proof;
	const struct auth_channel *channel = &proof.chap.where.channel;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	for (unsigned cid = 0; cid < 2; cid++)
		sealed(&alice, &proof, cid, &m[cid]);
	for (unsigned cid = 0; cid < 2; cid++) {
		CHECK(hpath_connect_with(&alice.path, cid, &m[cid], sizeof(m[cid])) == 0);
		rtrs_conn_rsp_encode(&rsp, &alice.path.rsp);
		CHECK(auth_conn_rsp_ok(&rsp, channel, m[cid].auth_data, proof.chap.conn_key));
		CHECK(!auth_conn_rsp_ok(&rsp, channel, m[!cid].auth_data, proof.chap.conn_key));
	}
}

/* ---- the other version ---- */

/* A client that asks for the first version, which binds nothing: nobody asks it for a proof. */
SIM_TEST(version_1)
{
	for (enum auth_mode mode = AUTH_MODE_PSK; mode < AUTH_MODES; mode++) {
		for (unsigned version = 0; version < 256; version++) {
			int rc;

			if (version == AUTH_VERSION)
				continue;
			begin(mode);
			raw_clt_init(&alice, "clt", 1, 1, 2);
			alice.path.auth = RTRS_AUTHS_ASKS;
			alice.path.auth_version = (uint8_t)version;
			rc = hpath_connect(&alice.path, 0);
			CHECK(rc == (mode == AUTH_MODE_REQUIRE ? -EACCES : 0));
			CHECK(rc || alice.path.rsp.auth == RTRS_AUTHS_NOTHING);
			CHECK(world_traced(w, "its version of authentication is not accepted "
					      "over this transport"));
			raw_clt_fini(&alice);
		}
	}
}

/* A tag as it is over RDMA, where the first version is spoken: of a relay, or of a client that does
 * not know better. */
SIM_TEST(tag_of_version_1)
{
	const struct auth_channel rdma = { .transport = "rdma" };
	struct rtrs_msg_conn_req m;
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	sealed(&alice, &proof, 0, &m);
	auth_conn_req_seal(&m, &rdma, proof.chap.conn_key);
	CHECK(hpath_connect_with(&alice.path, 0, &m, sizeof(m)) == -EACCES);
	CHECK(enter(&alice, &proof, 0) == 0);
}

/* ---- TLS on a part of a path ---- */

static void tls_of_both(enum fab_tls_mode mode)
{
	sim_tls("clt", mode);
	sim_tls("srv", mode);
}

/* A client of its own will has TLS for its proof, and not for its path, or the other way round: the
 * server refuses what the client's own tag allows. */
SIM_TEST(tls_of_the_proof)
{
	const struct auth_channel plain = { .transport = "sim" };
	struct rtrs_msg_conn_req m;
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	tls_of_both(FAB_TLS_ON);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	tls_of_both(FAB_TLS_OFF);
	sealed(&alice, &proof, 0, &m);
	CHECK(hpath_connect_with(&alice.path, 0, &m, sizeof(m)) == -EACCES);
	CHECK(world_traced(w, "or TLS was terminated between the ends"));
	auth_conn_req_seal(&m, &plain, proof.chap.conn_key);
	CHECK(hpath_connect_with(&alice.path, 0, &m, sizeof(m)) == -EACCES);
	CHECK(world_traced(w, "this connection has TLS and the connection of its proof had none"));
}

/* The same of the path's own connections, by nobody in particular. */
SIM_TEST(tls_of_the_path)
{
	for (enum fab_tls_mode first = FAB_TLS_OFF; first <= FAB_TLS_ON; first++) {
		begin(AUTH_MODE_PSK);
		raw_clt_init(&alice, "clt", 1, 1, 2);
		tls_of_both(first);
		CHECK(raw_clt_connect(&alice, 0) == 0);
		tls_of_both(FAB_TLS_ON - first);
		CHECK(raw_clt_connect(&alice, 1) == -EACCES);
		CHECK(world_traced(w, "this connection has TLS and the first one of its path has "
				   "none, or vice versa"));
		tls_of_both(first);
		CHECK(raw_clt_connect(&alice, 1) == 0);
		CHECK(raw_clt_info(&alice, "sess") == 0);
		raw_clt_fini(&alice);
	}
}

/* ---- messages of a handshake that was heard ---- */

/* HELLO and PROOF of alice again: once heard, by whoever connects with the same numbers. */
SIM_TEST(replayed_and_reflected)
{
	struct auth_reply hello, claim;
	uint8_t challenge[AUTH_MSG_MAX];
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	ask(&alice, &proof, key_of("alice"), 1, &hello);
	CHECK(say(&alice, hello.bytes, hello.len));
	memcpy(challenge, alice.path.info_buf, sizeof(challenge));
	CHECK(auth_chap_take(&proof.chap, challenge, alice.path.said, &claim) == 0);
	CHECK(say(&alice, claim.bytes, claim.len));
	leave(&alice);
	for (unsigned i = 0; i < 5; i++) {
		struct { const void *msg; size_t len; } said[2] = {
			{ hello.bytes, hello.len }, { claim.bytes, claim.len } };
		struct auth_reply own;

		if (i == 1)		/* PROOF first */
			said[0] = said[1];
		if (i == 2)		/* the server's CHALLENGE */
			said[0].msg = challenge;
		if (i == 3)		/* HELLO twice */
			said[1] = said[0];
		if (i == 4)
			said[1].len--;
		ask(&alice, &proof, key_of("alice"), 1, &own);
		if (say(&alice, said[0].msg, said[0].len) && say(&alice, said[1].msg, said[1].len))
			CHECK(((struct auth_msg_proof *)alice.path.info_buf)->status.v);
		leave(&alice);
		CHECK(enter(&alice, &proof, 0) == -EACCES);
	}
}

/* Something else than a message: nothing comes of it. */
SIM_TEST(garbage)
{
	uint8_t bytes[AUTH_MSG_MAX + 1] = { 0 };
	struct auth_reply hello;
	struct proof proof;

	begin(AUTH_MODE_REQUIRE);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	for (size_t len = 0; len <= sizeof(bytes); len += len < 8 ? 1 : 24) {
		ask(&alice, &proof, key_of("alice"), 1, &hello);
		CHECK(!say(&alice, bytes, len));
		leave(&alice);
	}
}

/* ---- limits ---- */

#define STALLED 200u

/* A host that begins and says nothing more: so many are open at once, for so long; others
 * get in. */
SIM_TEST(stalled)
{
	static struct raw_clt stalled[STALLED];
	struct auth_reply hello;
	struct proof proof;
	unsigned up = 0;

	begin(AUTH_MODE_REQUIRE);
	for (unsigned i = 0; i < STALLED; i++) {
		raw_clt_init(&stalled[i], "clt2", (uint8_t)i, 2, 2);
		ask(&stalled[i], &proof, key_of("bob"), i, &hello);
	}
	raw_clt_init(&alice, "clt", 1, 1, 2);
	CHECK(prove(&alice, &proof, key_of("alice"), 1) == 0);
	CHECK(enter(&alice, &proof, 0) == 0);
	for (unsigned i = 0; i < STALLED; i++)
		up += !raw_clt_lost(&stalled[i]);
	CHECK(up == SRV_MAX_HOST_GUESTS);
	world_run_ms(w, SRV_GUEST_TIMEOUT + 1000);
	for (unsigned i = 0; i < STALLED; i++) {
		CHECK(raw_clt_lost(&stalled[i]));
		raw_clt_fini(&stalled[i]);
	}
	CHECK(world_traced(w, "authentication: not finished in time"));
}

/* Hosts that have all places together: the one with the most makes room.  A client that began
 * before all of them, and comes later to its end, is none of these. */
SIM_TEST(stalled_by_many)
{
	static const char *const hosts[] = { "clt2", "clt3", "clt4", "clt5", "clt6" };
	static struct raw_clt stalled[SRV_MAX_GUESTS];
	struct auth_reply hello, reply;
	struct proof slow, proof;
	struct raw_clt late;
	unsigned lost = 0;

	begin(AUTH_MODE_REQUIRE);
	for (unsigned i = 1; i < ARRAY_SIZE(hosts); i++) {
		char ip[] = "10.0.0.1x";

		ip[sizeof(ip) - 2] = (char)('0' + i);
		sim_host_add(hosts[i], ip);
	}
	raw_clt_init(&alice, "clt", 1, 1, 2);
	ask(&alice, &slow, key_of("alice"), 1, &hello);
	for (unsigned i = 0; i < SRV_MAX_GUESTS; i++) {
		raw_clt_init(&stalled[i], hosts[i % ARRAY_SIZE(hosts)], (uint8_t)i, 2, 2);
		ask(&stalled[i], &proof, key_of("bob"), i, &reply);
	}
	raw_clt_init(&late, "clt", 2, 1, 2);
	ask(&late, &proof, key_of("alice"), 2, &reply);
	CHECK(!raw_clt_lost(&alice) && say(&alice, hello.bytes, hello.len));
	CHECK(!raw_clt_lost(&late) && say(&late, reply.bytes, reply.len));
	for (unsigned i = 0; i < SRV_MAX_GUESTS; i++) {
		lost += raw_clt_lost(&stalled[i]);
		raw_clt_fini(&stalled[i]);
	}
	CHECK(lost == 2);
	raw_clt_fini(&late);
}

/* ---- proofs that wait ---- */

#define PASSES_MAX 2048u		/* as srv-pass.c has it */
#define PASSES_OF_ONE 512u
#define PROVERS 16u			/* keys of PASSES_MAX proofs */

/* @c is path @n of many, each of a session of its own. */
static void path_is(struct raw_clt *c, unsigned n)
{
	memcpy(c->path.sess_uuid, &n, sizeof(n));
	memcpy(c->path.paths_uuid, &n, sizeof(n));
}

static struct proof proofs[4 * PASSES_MAX];
static unsigned nproofs, provers = PROVERS;

/* Alice has @n proofs, each of another path, under @provers keys in turn. */
static void prove_up_to(unsigned n)
{
	char name[16];

	for (; nproofs < n; nproofs++) {
		snprintf(name, sizeof(name), "many%u", nproofs % provers);
		path_is(&alice, nproofs);
		CHECK(prove(&alice, &proofs[nproofs], key_of(name), nproofs) == 0);
	}
}

/* Path @n comes with its proof, and goes.  False: the server has forgotten the proof. */
static bool path_enters(unsigned n)
{
	bool enters;

	world_forget(w);
	path_is(&alice, n);
	enters = enter(&alice, &proofs[n], 0) == 0;
	CHECK(enters == (enter(&alice, &proofs[n], 1) == 0));
	CHECK(enters != world_traced(w, "its path has not been authenticated, or too long ago"));
	if (enters)
		CHECK(raw_clt_info(&alice, "sess") == 0 && hpath_sess_info(&alice.path) == 0);
	raw_clt_hang_up(&alice);
	world_run_ms(w, 10);
	return enters;
}

/* Of those that wait the oldest goes for one that is one too many.  All paths that enter here have
 * one key, and so the name of their session. */
SIM_TEST(proofs_up_to_the_limit)
{
	begin(AUTH_MODE_REQUIRE);
	sim_delay("clt", "srv", 10, 0);		/* a proof has an end in time, too */
	raw_clt_init(&alice, "clt", 1, 1, 2);
	prove_up_to(PASSES_MAX);
	CHECK(path_enters(0));
	prove_up_to(PASSES_MAX + 2);		/* one in its place, and one beyond */
	CHECK(!path_enters(1));
	CHECK(path_enters(PROVERS));
	prove_up_to(4 * PASSES_MAX);
	CHECK(!path_enters(3 * PASSES_MAX - PROVERS));
	CHECK(path_enters(3 * PASSES_MAX));
	CHECK(path_enters(4 * PASSES_MAX - PROVERS));
}

/* Of one key the oldest goes, and none of another key. */
SIM_TEST(proofs_of_a_key_up_to_the_limit)
{
	struct proof bobs;

	begin(AUTH_MODE_REQUIRE);
	sim_delay("clt", "srv", 10, 0);
	raw_clt_init(&other, "clt2", 250, 250, 2);
	CHECK(prove(&other, &bobs, key_of("bob"), 1) == 0);
	raw_clt_init(&alice, "clt", 1, 1, 2);
	nproofs = 0;
	provers = 1;
	prove_up_to(PASSES_OF_ONE - 1);
	CHECK(path_enters(0));
	prove_up_to(PASSES_OF_ONE + 1);		/* as many as may wait */
	CHECK(path_enters(1));
	prove_up_to(PASSES_OF_ONE + 3);		/* one beyond */
	CHECK(!path_enters(2));
	CHECK(path_enters(3));
	prove_up_to(4 * PASSES_OF_ONE);
	CHECK(!path_enters(3 * PASSES_OF_ONE - 1));
	CHECK(path_enters(3 * PASSES_OF_ONE));
	CHECK(path_enters(4 * PASSES_OF_ONE - 1));
	CHECK(enter(&other, &bobs, 0) == 0);
	raw_clt_fini(&other);
}

/* An attempt that is refused, or fails, takes its proof along: those who share a key, and come
 * again and again, do not push out the proofs of each other. */
SIM_TEST(a_proof_ends_with_its_attempt)
{
	struct srv *srv;
	struct proof proof;

	begin_with_alice(AUTH_MODE_REQUIRE);
	srv = world_server_srv(w);
	CHECK(srv->passes.n == 0);
	raw_clt_init(&other, "clt", 9, 1, 2);
	CHECK(prove(&other, &proof, key_of("alice"), 2) == 0 && srv->passes.n == 1);
	CHECK(enter(&other, &proof, 0) == -EEXIST);
	CHECK(srv->passes.n == 0);
	raw_clt_fini(&other);
	raw_clt_init(&other, "clt2", 10, 10, 2);
	CHECK(prove(&other, &proof, key_of("bob"), 3) == 0);
	CHECK(enter(&other, &proof, 0) == 0 && srv->passes.n == 1);
	raw_clt_hang_up(&other);
	world_run_ms(w, 10);
	CHECK(srv->passes.n == 0);
	raw_clt_fini(&other);
}

/* Make a file with @text; @name becomes its name. */
static void write_file(char *name, const char *text)
{
	int fd = mkstemp(name);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* ---- a client that goes ---- */

static bool step_reached(void *arg)
{
	return sim_steps() >= *(const unsigned *)arg;
}

static void close_path(void *arg)
{
	clt_path_close(arg);
}

static bool fiber_ended(void *arg)
{
	return sim_fiber_done(arg);
}

/* Close the first path of two behind step @k of its way up.  False: it was up before. */
static bool closed_at_step(const struct auth_creds *creds, unsigned k)
{
	struct world_client *c;
	struct clt_path *path;
	struct sim_fiber *f;
	bool was_up;

	begin(AUTH_MODE_REQUIRE);
	c = world_client_start(w, CLIENT(.auth = creds, .npaths = 2));
	path = path_of(c, 0);
	CHECK(sim_run_until(step_reached, &k, 1000));
	was_up = clt_path_state(path) == CLT_PATH_UP;
	f = world_client_fiber(c, close_path, path);
	CHECK(sim_run_until(fiber_ended, f, 1000));
	sim_fiber_free(f);
	world_run_ms(w, 1000);
	CHECK(clt_path_state(path) == CLT_PATH_CLOSED);
	CHECK(list_empty(&path->setup_timer.link) && list_empty(&path->hb_timer.link) &&
	      list_empty(&path->retry_timer.link));
	CHECK(world_client_opened(c) == 0);
	world_client_stop(w, c);
	world_destroy(w);
	return !was_up;
}

/* A closed path has no timer, in whichever step of the proof it was closed. */
SIM_TEST(closed_at_each_step)
{
	struct auth_creds *creds = creds_of(AUTH_MODE_REQUIRE, "alice");
	unsigned k = 1;

	while (closed_at_step(creds, k))
		k++;
	CHECK(k > 60);
	auth_creds_destroy(creds);
}

/* The proof is of the first connection: a server that asks on another one breaks the protocol. */
SIM_TEST(asked_on_another_connection)
{
	static struct raw_srv srv;
	struct auth_creds *creds = creds_of(AUTH_MODE_PSK, "alice");
	struct world_client *c;

	w = world_create(1);
	raw_srv_start(&srv, false);
	srv.peer.asks_late = true;
	c = world_client_start(w, CLIENT(.auth = creds, .connections = 1));
	world_run_ms(w, 100);
	CHECK(world_traced(w, "cannot connect: connection 1: the server asks for a proof"));
	srv.peer.asks_late = false;
	CHECK(world_wait_open(c, 5000) == 0);
	world_client_stop(w, c);
	world_run_ms(w, 100);
	raw_srv_stop(&srv);
	auth_creds_destroy(creds);
}

int main(int argc, char **argv)
{
	char err[256], old[128];
	int rc;

	snprintf(old, sizeof(old), "%.*s", (int)strcspn(key_text, "\n") + 1, key_text);
	write_file(file_of_old, old);
	write_file(file_of_new, strstr(key_text, "alice/new:"));
	for (unsigned i = 0; i < PROVERS; i++) {
		size_t at = strlen(key_text);

		snprintf(key_text + at, sizeof(key_text) - at, "many%u:%064x\n", i, i + 1);
	}
	write_file(file, key_text);
	CHECK(psk_read(file, geteuid(), &keys, err, sizeof(err)) == 0);
	rc = sim_test_main(argc, argv);
	psk_free(&keys);
	unlink(file);
	unlink(file_of_new);
	unlink(file_of_old);
	return rc;
}
