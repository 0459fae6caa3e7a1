/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and their names belong to identities (fab_conn_identity()): a client that knows uuids or
 * a name of another one gets nothing by that, and disturbs nobody. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "raw-clt.h"
#include "srv-state.h"
#include "world.h"

static struct world *w;
static struct raw_clt clt, other;

static void begin(const char *owner, const char *stranger)
{
	w = world_serve(NULL);
	sim_identify("clt", owner);
	sim_identify("clt2", stranger);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	world_forget(w);
}

static int do_read(void)
{
	return raw_clt_io(&clt, 1, 3, RNBD_OP_READ, 0, 4096, false);
}

/* Another path of the session, a connection of its path, a new life of its path. */
static void intrude(const char *owner, const char *stranger, const char *line)
{
	for (unsigned path = 1; path <= 2; path++) {
		for (uint16_t recon = 1; recon <= 2; recon++) {
			begin(owner, stranger);
			raw_clt_init(&other, "clt2", (uint8_t)path, 1, 2);
			other.path.recon_cnt = recon;
			CHECK(raw_clt_connect(&other, 0) == -EACCES);
			CHECK(other.path.refusal == RTRS_REFUSES_NOT);
			other.path.first_conn = false;
			other.path.hears = true;
			CHECK(raw_clt_connect(&other, 1) == -EACCES);
			CHECK(other.path.refusal == RTRS_REFUSES_IDENTITY);
			CHECK(world_traced(w, line));
			/* Its owner noticed nothing. */
			CHECK(!raw_clt_lost(&clt) && do_read() == 0);
			raw_clt_fini(&other);
		}
	}
}

SIM_TEST(session_of_another)
{
	intrude("psk:gw1", "psk:gw2", "connection refused: its session belongs to psk:gw1, but "
		"the client is psk:gw2 (Permission denied)");
	intrude("psk:gw1", "cert:gw1", "its session belongs to psk:gw1, but the client is "
		"cert:gw1");
	intrude("psk:gw1", "psk:gw", "its session belongs to psk:gw1, but the client is psk:gw (");
	intrude("psk:gw1", "", "its session belongs to psk:gw1, but the client is a client "
		"without a name");
	intrude("", "psk:gw2", "its session belongs to a client without a name, but the client is "
		"psk:gw2");
}

/* ---- lineages (doc/decisions.md D27) ---- */

/* Have @r come as the @generation-th of the lineage that all of them name. */
static void set_lineage(struct raw_clt *r, uint32_t generation)
{
	static const uint8_t id[RTRS_LINEAGE_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

	r->path.lineage = RTRS_CONN_REQ_LINEAGE;
	r->path.hears = true;
	rtrs_lineage_uuid(r->path.paths_uuid, id, generation);
}

/* The client @owner has a session of the lineage; @next asks with @generation, from another
 * host. */
static int next_of_lineage(const char *owner, const char *next, uint32_t generation)
{
	int status;

	w = world_serve(NULL);
	sim_identify("clt", owner);
	sim_identify("clt2", next);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	set_lineage(&clt, 5);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	world_forget(w);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	set_lineage(&other, generation);
	status = raw_clt_connect(&other, 0);
	world_run_ms(w, 100);
	return status;
}

/* Only its own identity ends a session, whatever others know of it. */
SIM_TEST(lineage_of_another)
{
	static const char *const others[] = { "psk:gw2", "cert:gw1", "psk:gw", "psk:gw11", "" };

	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		CHECK(next_of_lineage("psk:gw1", others[i], 6) == 0);
		CHECK(!raw_clt_lost(&clt) && do_read() == 0);
		/* Nor does it keep the client out. */
		CHECK(next_of_lineage("psk:gw1", others[i], 4) == 0);
		CHECK(!raw_clt_lost(&clt) && do_read() == 0);
	}
	CHECK(next_of_lineage("", "psk:gw1", 6) == 0);
	CHECK(!raw_clt_lost(&clt) && do_read() == 0);
}

/* A later session ends the one before, an earlier one is refused. */
SIM_TEST(lineage_of_its_own)
{
	static const char *const owners[] = { "psk:gw1", "" };

	for (unsigned i = 0; i < ARRAY_SIZE(owners); i++) {
		CHECK(next_of_lineage(owners[i], owners[i], 6) == 0);
		CHECK(raw_clt_lost(&clt));
		CHECK(world_traced(w, "path down: its client goes on in another process"));
		CHECK(next_of_lineage(owners[i], owners[i], UINT32_MAX) == 0);
		CHECK(raw_clt_lost(&clt));
		CHECK(next_of_lineage(owners[i], owners[i], 4) == -ESTALE);
		CHECK(other.path.refusal == RTRS_REFUSES_SUCCEEDED);
		CHECK(world_traced(w, "connection refused: a later process of this client has the "
				   "session sess"));
		CHECK(!raw_clt_lost(&clt) && do_read() == 0);
	}
}

/* Nor does a key that was removed, of the right name. */
SIM_TEST(lineage_of_a_removed_key)
{
	CHECK(next_of_lineage("psk:gw1", "psk:gw1", 4) == -ESTALE);
	sim_identify_key("clt2", 7);
	raw_clt_fini(&other);
	raw_clt_init(&other, "clt2", 3, 3, 2);
	set_lineage(&other, 6);
	CHECK(raw_clt_connect(&other, 0) == -EKEYREVOKED);
	world_run_ms(w, 100);
	CHECK(!raw_clt_lost(&clt) && do_read() == 0);
}

/* The same bytes without the flag are any uuid: of a kernel, or of an older client. */
SIM_TEST(uuid_without_lineage)
{
	CHECK(next_of_lineage("", "", 6) == 0 && raw_clt_lost(&clt));
	w = world_serve(NULL);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	set_lineage(&clt, 5);
	clt.path.lineage = 0;
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	set_lineage(&other, 6);
	CHECK(raw_clt_connect(&other, 0) == 0);
	world_run_ms(w, 100);
	CHECK(!raw_clt_lost(&clt) && do_read() == 0);
}

/* A second path by the same identity, from another host. */
SIM_TEST(own_session)
{
	begin("psk:gw1", "psk:gw1");
	raw_clt_init(&other, "clt2", 2, 1, 2);
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == 0);
}

/* A connection that comes into a path in set-up, by another identity than the first. */
SIM_TEST(half_a_path)
{
	begin("psk:gw1", "psk:gw2");
	raw_clt_init(&other, "clt", 7, 7, 2);
	CHECK(raw_clt_connect(&other, 0) == 0);
	sim_identify("clt", "psk:gw3");
	CHECK(raw_clt_connect(&other, 1) == -EACCES);
}

/* A client whose second path comes with another identity is told so, and goes on over the first. */
SIM_TEST(client_is_told)
{
	struct world_client *c;

	w = world_serve(SERVER(.any_address = true));
	sim_identify("clt", "psk:gw1");
	c = world_client_start(w, CLIENT(.npaths = 2));
	CHECK(world_wait_open(c, 2000) == 0);
	world_run_ms(w, 100);
	sim_identify("clt", "psk:gw2");
	world_forget(w);
	sim_cut("clt", "srv/1");
	world_run_ms(w, 1000);
	CHECK(world_traced(w, "connection 0 was refused: the session belongs to another identity"));
	CHECK(world_write(c, 0, 4096, 7) == 0);
	world_client_stop(w, c);
}

/* A handshake whose key was removed before the connection is judged. */
SIM_TEST(key_taken_out)
{
	begin("psk:gw1", "psk:gw2");
	sim_identify_key("clt2", 7);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(&other, 0) == -EKEYREVOKED);
	CHECK(other.path.refusal == RTRS_REFUSES_NOT);
	other.path.hears = true;
	CHECK(raw_clt_connect(&other, 0) == -EKEYREVOKED);
	CHECK(other.path.refusal == RTRS_REFUSES_KEY);
	CHECK(world_traced(w, "connection refused: the key of psk:gw2 was removed"));
}

static bool is_of(const void *identity, const struct srv_refused *r)
{
	return !strcmp(r->identity, identity);
}

/* The last refusals are kept, of a client that tries again one, and of a network some: it hides no
 * refusal of others. */
SIM_TEST(last_refusals)
{
	const struct srv_refused *last;
	char identity[16];
	struct srv *srv;

	begin("psk:gw1", "psk:gw2");
	srv = world_server_srv(w);
	sim_identify_key("clt2", 7);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(&other, 0) == -EKEYREVOKED);
	raw_clt_fini(&other);
	raw_clt_init(&other, "clt", 3, 3, 2);
	for (unsigned i = 0; i < 4 * SRV_REFUSED_ALL; i++) {
		snprintf(identity, sizeof(identity), "psk:x%u", i);
		sim_identify("clt", identity);
		sim_identify_key("clt", 7);
		for (unsigned again = 0; again < 2; again++)
			CHECK(raw_clt_connect(&other, 0) == -EKEYREVOKED);
		world_run_ms(w, 1);
	}
	raw_clt_fini(&other);
	last = srv_log_last_refusal(srv, is_of, "psk:gw2");
	CHECK(last && !strcmp(last->why, "the key of psk:gw2 was removed"));
	for (unsigned i = 0; i < 4 * SRV_REFUSED_ALL; i++) {
		snprintf(identity, sizeof(identity), "psk:x%u", i);
		last = srv_log_last_refusal(srv, is_of, identity);
		CHECK(!last == (i < 4 * SRV_REFUSED_ALL - SRV_REFUSED_NET));
	}
}

/* A name is one of each identity: that of another session of somebody else stands in nobody's way,
 * while its client is there and when it is away. */
static void name_of_another(const char *stranger)
{
	for (unsigned away = 0; away < 2; away++) {
		begin("psk:gw1", stranger);
		if (away) {
			raw_clt_hang_up(&clt);
			world_run_ms(w, 60000);
		}
		raw_clt_init(&other, "clt2", 2, 2, 2);
		CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
		CHECK(raw_clt_info(&other, "sess") == 0);
		if (!away)
			CHECK(do_read() == 0);
		/* The first one is back, with another session. */
		raw_clt_fini(&clt);
		raw_clt_init(&clt, "clt", 3, 3, 2);
		CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
		raw_clt_fini(&other);
	}
}

SIM_TEST(name_of_another)
{
	name_of_another("psk:gw2");
	name_of_another("");
}

/* A name is one session's of an identity, and the server says so. */
SIM_TEST(own_name_twice)
{
	static const char *const identities[] = { "psk:gw1", "" };

	for (unsigned i = 0; i < ARRAY_SIZE(identities); i++) {
		begin(identities[i], identities[i]);
		raw_clt_init(&other, "clt2", 2, 2, 2);
		CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
		CHECK(raw_clt_info(&other, "sess") == -ECONNRESET);
		CHECK(world_traced(w, i ? "path not set up: session name sess of a client without "
				   "a name is in use by sess/" :
				   "path not set up: session name sess of psk:gw1 is in use by "
				   "sess/"));
		raw_clt_fini(&other);
		CHECK(do_read() == 0);
	}
}

/* ---- refusals that are told ---- */

typedef int change_fn(struct world *w, const struct conf_export *exports, unsigned n,
		      char err[EXPORT_LIFE_ERR]);

/* Give "disk0" these lists by @change. */
static void set_disk_by(change_fn *change, const char *allow, const char *read_only)
{
	struct conf_export ex = { .spec = { .name = "disk0", .path = "disk0" } };
	char err[EXPORT_LIFE_ERR];

	CHECK(conf_allow_list_add(&ex.allow, allow, err, sizeof(err)) == 0);
	if (*read_only)
		CHECK(conf_allow_list_add(&ex.read_only, read_only, err, sizeof(err)) == 0);
	CHECK(change(w, &ex, 1, err) == 0);
}

static void set_disk(const char *allow, const char *read_only)
{
	set_disk_by(world_server_change, allow, read_only);
}

/* @other wants to be a path of the session that @uuid stands for, under @name.  It hears @refusal;
 * a kernel in its place sees the end, and nothing else (hpath-wc.c). */
static void told(uint8_t uuid, const char *name, enum rtrs_refusal refusal)
{
	const uint64_t *counted = &world_server_srv(w)->refused[refusal == RTRS_REFUSES_EXPORT ?
								 SRV_REFUSED_RIGHTS :
								 SRV_REFUSED_IDENTITY];
	const uint64_t before = *counted;

	for (unsigned hears = 0; hears < 2; hears++) {
		raw_clt_init(&other, "clt2", (uint8_t)(2 + hears), uuid, 2);
		CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
		other.path.hears = hears;
		CHECK(raw_clt_info(&other, name) == -ECONNRESET);
		CHECK(other.path.refusal == (hears ? refusal : RTRS_REFUSES_NOT));
		CHECK(raw_clt_lost(&other) == !hears);
		raw_clt_fini(&other);
		world_run_ms(w, 50);
	}
	CHECK(*counted == before + 2);
	CHECK(do_read() == 0);
}

SIM_TEST(told_why)
{
	begin("psk:gw1", "psk:gw1");
	told(2, "sess", RTRS_REFUSES_NAME);
	told(1, "else", RTRS_REFUSES_OTHER_NAME);
	set_disk("10.0.0.1", "10.0.0.3");
	told(1, "sess", RTRS_REFUSES_EXPORT);
}

/* The server hangs up on a client that was told and does not hang up. */
SIM_TEST(told_and_stays)
{
	begin("", "");
	raw_clt_init(&other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	other.path.hears = true;
	CHECK(raw_clt_info(&other, "sess") == -ECONNRESET);
	CHECK(other.path.refusal == RTRS_REFUSES_NAME);
	CHECK(world_traced(w, "path not set up: session name sess of a client without a name"));
	world_forget(w);
	world_run_ms(w, SRV_TOLD_TIMEOUT - 100);
	CHECK(!raw_clt_lost(&other));
	world_run_ms(w, 200);
	CHECK(raw_clt_lost(&other));
	CHECK(world_traced(w, "path not set up: it was refused, and does not disconnect"));
}

/* ---- exports ---- */

/* An OPEN of "disk0", or of what does not exist, by @identity. */
static int open_as(const char *identity, enum rnbd_access_mode mode)
{
	int rc;

	sim_identify("clt2", identity);
	raw_clt_init(&other, "clt2", 5, 5, 2);
	rc = raw_clt_open(&other, "other", mode);
	if (!rc)
		CHECK(raw_clt_io(&other, 1, 3, RNBD_OP_WRITE, 0, 512, false) ==
		      (mode == RNBD_ACCESS_RO ? -EPERM : 0));
	raw_clt_fini(&other);
	world_run_ms(w, 50);
	return rc;
}

SIM_TEST(rights)
{
	static const struct {
		const char *allow, *read_only, *identity;
		int ro, rw;
	} cases[] = {
		{ "all", "", "", 0, 0 },
		{ "psk:gw2", "", "psk:gw2", 0, 0 },
		{ "psk:gw2", "", "psk:gw1", -ENOENT, -ENOENT },
		{ "psk:gw2", "", "cert:gw2", -ENOENT, -ENOENT },
		{ "psk:gw2", "", "", -ENOENT, -ENOENT },
		{ "psk:gw2, 10.0.0.3", "", "", 0, 0 },
		{ "psk:gw2", "psk:backup", "psk:gw2", 0, 0 },
		{ "psk:gw2", "psk:backup", "psk:backup", 0, -EROFS },
		{ "psk:gw2", "psk:backup", "psk:gw1", -ENOENT, -ENOENT },
		{ "all", "psk:backup", "psk:backup", 0, -EROFS },
		{ "all", "psk:backup", "psk:gw1", -ENOENT, -ENOENT },
		{ "0.0.0.0/0", "psk:backup", "psk:gw1", 0, 0 },
		{ "0.0.0.0/0", "psk:backup", "psk:backup", 0, -EROFS },
		{ "psk:gw2, psk:backup", "psk:backup", "psk:backup", 0, -EROFS },
		{ "psk:gw2", "10.0.0.0/8", "psk:gw2", 0, -EROFS },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		w = world_serve(NULL);
		set_disk(cases[i].allow, cases[i].read_only);
		CHECK(open_as(cases[i].identity, RNBD_ACCESS_RO) == cases[i].ro);
		CHECK(open_as(cases[i].identity, RNBD_ACCESS_RW) == cases[i].rw);
		CHECK(open_as(cases[i].identity, RNBD_ACCESS_MIGRATION) == cases[i].rw);
	}
}

/* A client that knows reasons gets each; a kernel and an older client an errno.  An export that the
 * client may not open has the answer of one that does not exist. */
SIM_TEST(reasons_of_an_open)
{
	static const uint32_t features[] = { 0, RNBD_EXT_ALL & ~RNBD_EXT_REASON, RNBD_EXT_ALL };
	static const struct {
		const char *allow, *read_only;
		int err;
		enum rnbd_refusal refusal;
	} cases[] = {
		{ "all", "", -EPERM, RNBD_REFUSES_WRITER },
		{ "psk:gw1", "psk:gw2", -EROFS, RNBD_REFUSES_READER },
		{ "psk:gw1", "", -ENOENT, RNBD_REFUSES_NOT },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(features); i++) {
		unsigned c = i % ARRAY_SIZE(cases);
		int rc;

		begin("psk:gw1", "psk:gw2");
		set_disk(cases[c].allow, cases[c].read_only);
		raw_clt_init(&other, "clt2", 5, 5, 2);
		other.features = features[i / ARRAY_SIZE(cases)];
		rc = raw_clt_open(&other, "other", RNBD_ACCESS_RW);
		CHECK(rc == (cases[c].refusal && other.features == RNBD_EXT_ALL ?
			     rnbd_refusal_to_wire(cases[c].refusal) : cases[c].err));
		raw_clt_fini(&other);
	}
}

/* What is open stays open when the lists change, and a path that may only read does not join. */
SIM_TEST(rights_change)
{
	begin("psk:gw1", "psk:gw1");
	set_disk("10.0.0.1", "10.0.0.3");
	CHECK(do_read() == 0);
	raw_clt_init(&other, "clt2", 2, 1, 2);
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == -ECONNRESET);
	CHECK(world_traced(w, "its session has disk0 open for writing, which is read-only for this "
			   "address"));
	raw_clt_fini(&other);
	set_disk("psk:gw1", "psk:gw1");
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 512, false) == 0);
	/* Taken away, it comes back for reading alone. */
	CHECK(world_server_kick(w, "disk0") == 1);
	raw_clt_fini(&clt);
	world_run_ms(w, 50);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == -EROFS);
	CHECK(world_traced(w, "open of disk0 as rw refused: Read-only file system; its read-only "
			   "contains clt, psk:gw1"));
}

/* With --force a writer who may only read from now on loses the export, comes back as a reader, and
 * is left alone by the next such change; a reader keeps what it has open. */
SIM_TEST(rights_change_forced)
{
	static const enum rnbd_access_mode writes[] = { RNBD_ACCESS_RW, RNBD_ACCESS_MIGRATION };

	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++) {
		w = world_serve(NULL);
		sim_identify("clt", "psk:gw1");
		raw_clt_init(&clt, "clt", 1, 1, 2);
		CHECK(raw_clt_open(&clt, "sess", writes[i]) == 0);
		CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 512, false) == 0);
		set_disk_by(world_server_change_forced, "all", "psk:gw1");
		CHECK(world_traced(w, "its rules no longer allow the client to have it open"));
		CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 512, false) == -ENOTCONN);
		raw_clt_fini(&clt);
		world_run_ms(w, 50);
		raw_clt_init(&clt, "clt", 1, 1, 2);
		CHECK(raw_clt_open(&clt, "sess", writes[i]) == -EROFS);
		raw_clt_fini(&clt);
		world_run_ms(w, 50);
		raw_clt_init(&clt, "clt", 1, 1, 2);
		CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RO) == 0);
		set_disk_by(world_server_change_forced, "all", "psk:gw1, psk:gw2");
		CHECK(do_read() == 0);
	}
}
