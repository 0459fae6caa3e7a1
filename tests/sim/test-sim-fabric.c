/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sim provider has beyond the promises of fabric.h (those: tests/fabric): faults on
 * demand, and memory windows with BIND_MW, LOCAL_INV and SEND_WITH_INV. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "sim-fabric.h"
#include "sim-test.h"

#define BUF 20000u

/* One end of a connection, with all its completions. */
struct end {
	struct sim_host *host;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_conn *conn;
	struct fab_pd *pd;
	struct ibv_mr *mr;
	uint8_t buf[BUF];
	struct fab_event ev;		/* last one */
	unsigned nevents, nrequests;
	struct ibv_wc wc[64];
	unsigned nwc;
	bool drained;
};

static struct end clt, srv;

static void end_open(struct end *e, const char *host)
{
	struct sim_place before;

	memset(e, 0, sizeof(*e));
	e->host = sim_host_find(host);
	before = sim_enter(e->host, e->host->epoch);
	CHECK(fab_cm_create(&(struct fab_cm_conf){ .provider = &fab_sim }, &e->cm) == 0);
	sim_leave(before);
}

static void end_qp(struct end *e)
{
	struct fab_qp_attr attr = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2 };

	CHECK(fab_pd_create(e->conn, &e->pd) == 0);
	CHECK(fab_create_qp(e->conn, e->pd, &attr) == 0);
	e->mr = fab_reg_mr(e->pd, e->buf, BUF,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
	CHECK(e->mr);
}

/* Take events and completions that are there; accepts the first who asks, refuses others. */
static void end_poll(struct end *e)
{
	short events;
	int n;

	while (fab_cm_get_event(e->cm, &e->ev) == 1) {
		e->nevents++;
		if (e->ev.type != FAB_EVENT_CONNECT_REQUEST)
			continue;
		e->nrequests++;
		if (e->conn) {
			fab_reject(e->ev.conn, "no", 2);
			continue;
		}
		e->conn = e->ev.conn;
		end_qp(e);
		CHECK(fab_accept(e->conn, "yes", 3) == 0);
	}
	if (!e->pd || e->drained)
		return;
	while ((n = fab_poll(e->conn, e->wc + e->nwc, 4)) > 0)
		e->nwc += (unsigned)n;
	e->drained = n == -ENOTCONN;
	if (!e->drained && fab_arm(e->conn, &events) == 1)
		end_poll(e);
}

static void run(uint64_t ms)
{
	for (uint64_t i = 0; i < ms * 4; i++) {
		uint64_t until = sim_now_us() + 250;

		while (sim_step(until))
			;
		if (!clt.host->frozen)
			end_poll(&clt);
		if (!srv.host->frozen)
			end_poll(&srv);
	}
}

static void world_open(void)
{
	struct fab_addr any;

	sim_init(1);
	sim_host_add("clt", "10.0.0.1");
	sim_host_add("srv", "10.0.0.2");
	end_open(&clt, "clt");
	end_open(&srv, "srv");
	any = srv.host->addrs[0];
	any.provider = &fab_sim;
	CHECK(fab_listen(srv.cm, &any, &srv.listener) == 0);
}

static void start_connect(void)
{
	struct fab_addr to;

	fab_listener_addr(srv.listener, &to);
	CHECK(fab_conn_create(clt.cm, NULL, &clt.conn) == 0);
	CHECK(fab_resolve(clt.conn, NULL, &to) == 0);
	run(1);
	CHECK(clt.ev.type == FAB_EVENT_ROUTE_RESOLVED);
	end_qp(&clt);
	CHECK(fab_connect(clt.conn, "hello", 5) == 0);
}

static void pair_open(void)
{
	world_open();
	start_connect();
	run(5);
	CHECK(clt.ev.type == FAB_EVENT_ESTABLISHED && clt.ev.private_data_len == 3);
	CHECK(srv.ev.type == FAB_EVENT_ESTABLISHED);
	for (size_t i = 0; i < BUF; i++)
		clt.buf[i] = (uint8_t)(i * 7);
}

static void end_close(struct end *e)
{
	if (e->mr)
		fab_dereg_mr(e->mr);
	if (e->conn)
		fab_conn_destroy(e->conn);
	if (e->pd)
		fab_pd_destroy(e->pd);
	fab_listener_destroy(e->listener);
	fab_cm_destroy(e->cm);
}

static void world_close(void)
{
	if (clt.pd)
		fab_disconnect(clt.conn);
	if (srv.pd)
		fab_disconnect(srv.conn);
	run(5);
	end_close(&clt);
	end_close(&srv);
	CHECK(sim_keys() == 0 && sim_conns() == 0);
	sim_run_ms(60000);
	sim_net_fini();
	sim_fini();
}

static void post_recv(struct end *e)
{
	struct ibv_recv_wr wr = { .wr_id = 99 };

	CHECK(fab_post_recv(e->conn, &wr) == 0);
}

/* @len bytes and an immediate from clt to srv under @rkey. */
static void post_write(uint64_t wr_id, uint32_t len, uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)clt.buf, .length = len, .lkey = clt.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(5),
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};

	CHECK(fab_post_send(clt.conn, &wr) == 0);
}

SIM_TEST(drop_and_heal)
{
	pair_open();
	post_recv(&srv);
	sim_drop("clt", "srv");
	post_write(1, BUF, (uintptr_t)srv.buf, srv.mr->rkey);
	run(60000);
	CHECK(srv.nwc == 0 && clt.nwc == 0 && srv.buf[7] == 0);
	sim_heal("clt", "srv");
	run(10);
	CHECK(srv.nwc == 1 && srv.wc[0].wr_id == 99 && srv.wc[0].byte_len == BUF);
	CHECK(clt.nwc == 1 && clt.wc[0].wr_id == 1 && clt.wc[0].status == IBV_WC_SUCCESS);
	CHECK(memcmp(clt.buf, srv.buf, BUF) == 0);
	world_close();
}

SIM_TEST(cut)
{
	pair_open();
	post_recv(&srv);
	post_write(1, BUF, (uintptr_t)srv.buf, srv.mr->rkey);
	sim_cut("clt", "srv");
	run(5);
	CHECK(clt.drained && srv.drained);
	CHECK(clt.nwc == 1 && clt.wc[0].status == IBV_WC_WR_FLUSH_ERR);
	CHECK(srv.nwc == 1 && srv.wc[0].status == IBV_WC_WR_FLUSH_ERR);
	CHECK(clt.ev.type == FAB_EVENT_DISCONNECTED);
	CHECK(strcmp(fab_conn_cause(clt.conn), "connection cut") == 0);
	world_close();
}

SIM_TEST(cut_at_message)
{
	pair_open();
	post_recv(&srv);
	/* BUF takes five pieces; the third is lost. */
	sim_cut_at_message("clt", "srv", 3);
	post_write(1, BUF, (uintptr_t)srv.buf, srv.mr->rkey);
	run(5);
	CHECK(clt.drained && srv.drained);
	CHECK(memcmp(clt.buf, srv.buf, 2 * SIM_MTU) == 0 && srv.buf[2 * SIM_MTU + 1] == 0);
	world_close();
}

SIM_TEST(unanswered_connect_times_out)
{
	world_open();
	sim_drop("clt", "srv");
	start_connect();
	run(SIM_CONNECT_TIMEOUT_MS - 100);
	CHECK(clt.nevents == 1);
	run(200);
	CHECK(clt.ev.type == FAB_EVENT_UNREACHABLE && clt.ev.status == -ETIMEDOUT);
	/* The request is on its way still, and the word that nobody waits for its answer. */
	sim_heal("clt", "srv");
	run(10);
	CHECK(srv.nrequests == 1 && srv.drained);
	world_close();
}

SIM_TEST(nobody_listens)
{
	world_open();
	sim_kill("srv", SIM_KILL_PROCESS);
	start_connect();
	run(5);
	CHECK(clt.ev.type == FAB_EVENT_UNREACHABLE && clt.ev.status == -ECONNREFUSED);
	world_close();
}

SIM_TEST(duplicate_connect)
{
	world_open();
	sim_duplicate_connect("clt", "srv");
	start_connect();
	run(5);
	/* The first to come was accepted and is a ghost; who asked in earnest was refused. */
	CHECK(srv.nrequests == 2 && srv.drained);
	CHECK(clt.ev.type == FAB_EVENT_REJECTED && clt.ev.private_data_len == 2);
	world_close();
}

SIM_TEST(freeze_and_thaw)
{
	pair_open();
	post_recv(&srv);
	sim_freeze("srv");
	post_write(1, 100, (uintptr_t)srv.buf, srv.mr->rkey);
	run(1000);
	CHECK(clt.nwc == 0 && !clt.drained);
	sim_thaw("srv");
	run(5);
	CHECK(clt.nwc == 1 && srv.nwc == 1);
	world_close();
}

SIM_TEST(kill_process_tells_the_peer)
{
	pair_open();
	post_recv(&clt);
	sim_kill("srv", SIM_KILL_PROCESS);
	run(5);
	CHECK(clt.drained && clt.ev.type == FAB_EVENT_DISCONNECTED);
	CHECK(srv.drained);
	world_close();
}

SIM_TEST(kill_power_is_silent)
{
	pair_open();
	sim_kill("srv", SIM_KILL_POWER);
	post_write(1, 100, (uintptr_t)srv.buf, srv.mr->rkey);
	run(1000);
	CHECK(!clt.drained && clt.nwc == 0);
	/* Back again it knows nothing of the connection, and says so. */
	sim_power_on("srv");
	post_write(2, 100, (uintptr_t)srv.buf, srv.mr->rkey);
	run(5);
	CHECK(clt.drained && clt.nwc == 2 && srv.buf[7] == 0);
	world_close();
}

/* ---- windows; their rules are in the conformance suite ---- */

/* As on a NIC: not when they are posted. */
SIM_TEST(windows_in_their_turn)
{
	struct ibv_mw *mw;
	struct ibv_send_wr bind = {
		.wr_id = 50, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr inv = {
		.wr_id = 51, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
	};

	pair_open();
	mw = fab_alloc_mw(srv.pd, IBV_MW_TYPE_2);
	CHECK(mw && !sim_mw_bound(mw));
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = inv.invalidate_rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = srv.mr, .addr = (uintptr_t)srv.buf, .length = 100,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	CHECK(fab_post_send(srv.conn, &bind) == 0);
	mw->rkey = bind.bind_mw.rkey;
	CHECK(!sim_mw_bound(mw));
	run(1);
	CHECK(srv.nwc == 1 && srv.wc[0].opcode == IBV_WC_BIND_MW && sim_mw_bound(mw));
	CHECK(fab_post_send(srv.conn, &inv) == 0 && sim_mw_bound(mw));
	run(1);
	CHECK(srv.nwc == 2 && srv.wc[1].opcode == IBV_WC_LOCAL_INV && !sim_mw_bound(mw));
	CHECK(fab_dealloc_mw(mw) == 0);
	world_close();
}

SIM_TEST(devices_without_windows)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

	pair_open();
	for (unsigned mask = 0; mask < 4; mask++) {
		struct fab_device_attr attr;

		sim_offer_windows(mask & 1, mask & 2);
		CHECK(fab_query_device(srv.conn, &attr) == 0);
		for (unsigned i = 0; i < 2; i++) {
			struct ibv_mw *mw = fab_alloc_mw(srv.pd, types[i]);

			CHECK(!(attr.caps & FAB_CAP_MW(types[i])) == !(mask & 1u << i));
			CHECK(mw ? mask & 1u << i : errno == EOPNOTSUPP);
			CHECK(fab_dealloc_mw(mw) == 0);
		}
	}
	world_close();
}

static void post_invalidate(struct end *e, enum ibv_wr_opcode op, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 51, .opcode = op, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey,
	};

	CHECK(fab_post_send(e->conn, &wr) == 0);
}

SIM_TEST(p13_a_region_is_not_invalidated)
{
	pair_open();
	post_recv(&srv);
	post_invalidate(&clt, IBV_WR_SEND_WITH_INV, srv.mr->rkey);
	run(5);
	CHECK(clt.drained && srv.drained);
	CHECK(strstr(fab_conn_cause(srv.conn), "cannot be invalidated"));
	world_close();
}

/* The key dies while pieces of the message are still to come. */
SIM_TEST(revoke_in_the_middle)
{
	pair_open();
	post_recv(&srv);
	sim_delay("clt", "srv", 1000, 0);
	post_write(1, BUF, (uintptr_t)srv.buf, srv.mr->rkey);
	while (srv.buf[1] == 0)
		sim_step(UINT64_MAX);
	CHECK(fab_revoke_mr(srv.mr) == 0);
	memset(srv.buf, 0, BUF);
	run(10);
	CHECK(clt.drained && srv.drained && clt.wc[0].status == IBV_WC_REM_ACCESS_ERR);
	for (size_t i = 0; i < BUF; i++)
		CHECK(srv.buf[i] == 0);
	world_close();
}

int main(int argc, char **argv)
{
	fab_provider_register(&fab_sim);
	return sim_test_main(argc, argv);
}
