/* SPDX-License-Identifier: BSD-3-Clause */
/* The server against a client that does what the test says (raw-clt.h): who is let in and why not,
 * answers in every form of doc/protocol.md 3.4 without NEW_RKEY, heartbeats, come-backs, the
 * fence. */
#include <errno.h>
#include <linux/ioprio.h>
#include <stdlib.h>
#include <string.h>

#include "raw-clt.h"
#include "rtrs-imm.h"
#include "srv-pool.h"
#include "srv-state.h"
#include "world.h"

static struct world *w;
static struct raw_clt clt, other;

static void begin(void)
{
	w = world_serve(NULL);
}

static void open_clt(void)
{
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
}

SIM_TEST(p11_set_up)
{
	begin();
	open_clt();
	CHECK(!clt.path.rsp.new_rkey && clt.path.geom.queue_depth == 16 &&
	      clt.path.geom.max_io_size == 65536);
	world_expect(w, SRV_UP("  0.005", "clt@srv", "sess/clt@srv", "2")
			"[  0.009] srv sess: device 0 opened: disk0, rw\n");
	raw_clt_hang_up(&clt);
	world_run_ms(w, 10);
	world_expect(w, SRV_GONE("  0.011", "sess/clt@srv", "connection 0: disconnected"));
}

/* A kernel client takes the queue depth from its first path and the sizes from each: all must
 * agree. */
SIM_TEST(p04_every_path_has_the_same_geometry)
{
	begin();
	open_clt();
	raw_clt_init(&other, "clt2", 2, 1, 2);
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == 0);
	CHECK(!memcmp(&other.path.geom, &clt.path.geom, sizeof(clt.path.geom)));
	CHECK(other.path.rsp.new_rkey == clt.path.rsp.new_rkey);
}

/* The kernel's client counts a descriptor for each of up to 128 pieces of a READ, though it sends
 * one. */
SIM_TEST(p10_room_for_a_header_as_the_kernel_counts_it)
{
	begin();
	open_clt();
	CHECK(clt.path.rsp.max_hdr_size >= 8 + 128 * 16 + 32);
}

/* ---- answers ---- */

static void expect_answer(unsigned buf, unsigned cid, unsigned type, int status, bool after_inv)
{
	const struct hanswer *rsp = &clt.path.answers[buf];

	CHECK(rsp->n && rsp->cid == cid && rsp->type == type && rsp->status == status);
	CHECK(rsp->after_inv == after_inv);
}

static bool all_bytes(const uint8_t *p, size_t len, uint8_t want)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != want)
			return false;
	}
	return true;
}

/* Every row of doc/protocol.md 3.4 that this server can give, on both connections. */
static void answer_rows_of(enum srv_invalidate invalidate, bool direct, bool new_rkey)
{
	w = world_serve(SERVER(.invalidate = invalidate, .direct = direct));
	open_clt();
	for (unsigned cid = 0; cid < 2; cid++) {
		memset(clt.data[3], 0x33, 8192);
		raw_clt_io(&clt, cid, 3, RNBD_OP_WRITE, 16, 8192, false);
		expect_answer(3, cid, RTRS_IO_RSP_IMM, 0, false);
		CHECK(all_bytes(sim_disk_content(world_disk(w)) + 16 * 512, 8192, 0x33));

		raw_clt_io(&clt, cid, 4, RNBD_OP_READ, 16, 8192, false);
		expect_answer(4, cid, RTRS_IO_RSP_IMM, 0, false);
		CHECK(all_bytes(clt.data[4], 8192, 0x33));

		raw_clt_io(&clt, cid, 5, RNBD_OP_READ, 16, 8192, true);
		expect_answer(5, cid, RTRS_IO_RSP_W_INV_IMM, 0, true);
		CHECK(all_bytes(clt.data[5], 8192, 0x33) && !sim_mw_bound(clt.windows[5]));

		raw_clt_io(&clt, cid, 6, RNBD_OP_READ, 1 << 20, 512, false);
		expect_answer(6, cid, RTRS_IO_RSP_IMM, -EIO, false);
		raw_clt_io(&clt, cid, 6, RNBD_OP_READ, 1 << 20, 512, true);
		expect_answer(6, cid, RTRS_IO_RSP_W_INV_IMM, -EIO, true);
		CHECK(!sim_mw_bound(clt.windows[6]));

		raw_clt_io(&clt, cid, 7, RNBD_OP_WRITE, 1 << 20, 512, false);
		expect_answer(7, cid, RTRS_IO_RSP_IMM, -EIO, false);
		raw_clt_io(&clt, cid, 8, RNBD_OP_FLUSH, 0, 0, false);
		expect_answer(8, cid, RTRS_IO_RSP_IMM, 0, false);
	}
	CHECK(clt.path.rsp.new_rkey == new_rkey);
	for (unsigned buf = 3; buf <= 8; buf++)
		CHECK((clt.path.rbufs[buf].rkey != clt.path.answers[buf].old_rkey) ==
		      clt.path.rsp.new_rkey);
}

static void answer_rows(enum srv_invalidate invalidate, bool direct)
{
	answer_rows_of(invalidate, direct, invalidate == SRV_INVALIDATE_ALWAYS);
}

/* Keys that are closed and opened again, for each answer the same. */
SIM_TEST(answer_rows_auto)
{
	sim_offer_rereg(true);
	answer_rows_of(SRV_INVALIDATE_AUTO, false, false);
	answer_rows_of(SRV_INVALIDATE_AUTO, true, false);
}

SIM_TEST(p07_p08_answer_rows_copy)
{
	answer_rows(SRV_INVALIDATE_COPY, false);
	answer_rows(SRV_INVALIDATE_COPY, true);
}

SIM_TEST(p07_p08_answer_rows_never)
{
	answer_rows(SRV_INVALIDATE_NEVER, false);
	answer_rows(SRV_INVALIDATE_NEVER, true);
}

/* On a device where all that is sent from has to be registered, as most are. */
SIM_TEST(answer_rows_with_registered_memory)
{
	sim_offer_local_dma_lkey(false);
	answer_rows(SRV_INVALIDATE_COPY, true);
	answer_rows(SRV_INVALIDATE_NEVER, true);
}

SIM_TEST(p09_answer_rows_always)
{
	answer_rows(SRV_INVALIDATE_ALWAYS, false);
	answer_rows(SRV_INVALIDATE_ALWAYS, true);
}

/* Where keys can be closed and there are no windows for servers. */
SIM_TEST(answer_rows_always_without_windows)
{
	sim_offer_rereg(true);
	sim_offer_windows(false, true);
	answer_rows_of(SRV_INVALIDATE_ALWAYS, true, false);
}

/* Regions of one path.  Its memory is locked, so private buffers are not to be among it. */
static unsigned keys_of_a_path(enum srv_invalidate invalidate)
{
	unsigned before, n;

	w = world_serve(SERVER(.invalidate = invalidate, .direct = true));
	raw_clt_init(&clt, "clt", 1, 1, 2);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(&clt, 0) == 0);
	before = sim_keys();
	CHECK(raw_clt_connect(&other, 0) == 0);
	n = sim_keys() - before;
	raw_clt_fini(&other);
	return n;
}

SIM_TEST(private_memory_is_not_registered)
{
	sim_offer_local_dma_lkey(false);
	CHECK(keys_of_a_path(SRV_INVALIDATE_COPY) == keys_of_a_path(SRV_INVALIDATE_NEVER));
}

/* ---- private memory ---- */

/* The client writes to the chunk of a READ when the storage has filled what it was given, and
 * before the answer. */
static uint8_t read_and_scribble(enum srv_invalidate invalidate, bool direct)
{
	struct ibv_sge sge = { .length = 4096 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	uint8_t got;

	w = world_serve(SERVER(.invalidate = invalidate, .direct = direct));
	open_clt();
	memset(clt.data[3], 0x33, 4096);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_AFTER, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_READ, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	memset(clt.data[4], 0x44, 4096);
	sge.addr = (uintptr_t)clt.data[4];
	sge.lkey = clt.path.mr->lkey;
	wr.wr_id = (uintptr_t)&clt.path.cons[1];
	wr.wr.rdma.remote_addr = clt.path.rbufs[3].addr;
	wr.wr.rdma.rkey = clt.path.rbufs[3].rkey;
	CHECK(fab_post_send(clt.path.cons[1].conn, &wr) == 0);
	world_run_ms(w, 10);
	sim_disk_release(world_disk(w));
	CHECK(raw_clt_wait(&clt, 3, 1000) && clt.path.answers[3].status == 0);
	got = clt.data[3][0];
	CHECK(all_bytes(clt.data[3], 4096, got));
	return got;
}

/* Devices may check what they have put into memory. */
SIM_TEST(direct_reads_go_to_private_memory)
{
	CHECK(read_and_scribble(SRV_INVALIDATE_COPY, true) == 0x33);
	/* Its own answer it can spoil. */
	CHECK(read_and_scribble(SRV_INVALIDATE_COPY, false) == 0x44);
	CHECK(read_and_scribble(SRV_INVALIDATE_NEVER, true) == 0x44);
}

/* ---- keys that end (--invalidate=always) ---- */

static void open_always(void)
{
	w = world_serve(SERVER(.invalidate = SRV_INVALIDATE_ALWAYS));
	open_clt();
}

/* Four bytes to chunk @buf under @rkey; the client lives on if they were let in. */
static bool scribble(unsigned cid, unsigned buf, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)clt.data[9], 4, clt.path.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&clt.path.cons[cid], .opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = clt.path.rbufs[buf].addr, .rkey = rkey },
	};

	CHECK(fab_post_send(clt.path.cons[cid].conn, &wr) == 0);
	world_run_ms(w, 10);
	return !raw_clt_lost(&clt);
}

/* Which storage works on is nobody's, by the key that it was sent with and by the one that comes
 * next. */
static void key_is_dead_in_flight(uint32_t ahead)
{
	uint32_t rkey;

	open_always();
	rkey = clt.path.rbufs[3].rkey;
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	memset(clt.data[3], 0x33, 4096);
	memset(clt.data[9], 0x99, 4096);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	CHECK(!scribble(0, 3, (rkey & ~0xffu) | ((rkey + ahead) & 0xff)));
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	CHECK(all_bytes(sim_disk_content(world_disk(w)), 4096, 0x33));
}

/* The same by keys that are closed, and are open before. */
SIM_TEST(key_is_closed_in_flight)
{
	sim_offer_rereg(true);
	w = world_serve(SERVER(.invalidate = SRV_INVALIDATE_AUTO));
	open_clt();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	memset(clt.data[3], 0x33, 4096);
	memset(clt.data[9], 0x99, 4096);
	CHECK(scribble(0, 3, clt.path.rbufs[3].rkey));
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	CHECK(!scribble(0, 3, clt.path.rbufs[3].rkey));
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	CHECK(all_bytes(sim_disk_content(world_disk(w)), 4096, 0x33));
}

SIM_TEST(keys_are_dead_in_flight)
{
	for (uint32_t ahead = 0; ahead < 4; ahead++)
		key_is_dead_in_flight(ahead);
}

SIM_TEST(old_key_after_the_answer)
{
	open_always();
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false) == 0);
	CHECK(scribble(0, 3, clt.path.rbufs[3].rkey));
	CHECK(!scribble(0, 3, clt.path.answers[3].old_rkey));
}

/* Another chunk's key is no good either, and the whole of a chunk's is. */
SIM_TEST(key_of_another_chunk)
{
	open_always();
	CHECK(scribble(1, 3, clt.path.rbufs[3].rkey));
	clt.path.rbufs[3].addr += clt.path.geom.chunk_size - 4;
	CHECK(scribble(1, 3, clt.path.rbufs[3].rkey));
	clt.path.rbufs[3].addr += 1;
	CHECK(!scribble(1, 3, clt.path.rbufs[3].rkey));
}

/* Requests of one chunk go round all connections, often enough for keys to come again. */
static void keys_on_every_connection(uint32_t jitter_us)
{
	open_always();
	sim_delay("clt", "srv", 1000, jitter_us);
	for (unsigned i = 0; i < 600; i++) {
		memset(clt.data[3], (uint8_t)(i + 1), 512);
		CHECK(raw_clt_io(&clt, i % 2, 3, i % 3 ? RNBD_OP_WRITE : RNBD_OP_READ, 0, 512,
				 i % 3 == 0 && i % 2) == 0);
		CHECK(all_bytes(clt.data[3], 512, (uint8_t)(i % 3 ? i + 1 : i)) || !i);
	}
}

/* The server may hear of the next request before it hears that its answer has arrived. */
SIM_TEST(keys_on_every_connection)
{
	sim_offer_local_dma_lkey(true);
	keys_on_every_connection(0);
	sim_offer_local_dma_lkey(false);
	keys_on_every_connection(3000);
}

/* A path fails while keys are being taken away, and while requests are in the storage: its client
 * is back at once, under keys of a new path. */
SIM_TEST(come_back_among_revocations)
{
	open_always();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 2);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	raw_clt_io_start(&clt, 0, 4, RNBD_OP_WRITE, 8, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 2);
	for (unsigned buf = 5; buf < 9; buf++)
		raw_clt_io_start(&clt, buf & 1, buf, RNBD_OP_READ, 0, 4096, false);
	raw_clt_hang_up(&clt);
	raw_clt_init(&other, "clt", 1, 1, 2);
	other.path.recon_cnt = 2;
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == 0);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
}

/* A chunk whose answer still waits behind long ones in the queue of its connection is used on
 * another one: the key that it was given with that answer is not to open it when the storage has
 * it. */
static bool key_comes_late(uint32_t us)
{
	struct rnbd_io io = { .op = RNBD_OP_WRITE, .bi_size = 4096 };
	struct rtrs_rbuf *rbuf, own;
	struct rnbd_msg_io m;
	uint64_t until;
	bool kept;

	w = world_serve(SERVER(.invalidate = SRV_INVALIDATE_ALWAYS));
	raw_clt_init(&clt, "clt", 1, 1, 3);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	rbuf = &clt.path.rbufs[3];
	memset(clt.data[3], 0x33, 4096);
	memset(clt.data[9], 0x99, 4096);
	/* Answers that leave together, the one of chunk 3 last. */
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_AFTER, 4);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	for (unsigned buf = 4; buf < 8; buf++)
		raw_clt_io_start(&clt, 1, buf, RNBD_OP_READ, 0, 65536, false);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 5);
	/* The next request for it, whose bytes go where the client may write. */
	own = *rbuf;
	*rbuf = clt.path.rbufs[10];
	rnbd_io_encode(&m, &io);
	raw_clt_submit(&clt, 2, 3, RTRS_DIR_WRITE, &m, sizeof(m), 4096, false);
	*rbuf = own;
	until = sim_now_us() + us;
	while (sim_step(until))
		;
	sim_disk_release(world_disk(w));
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	world_run_ms(w, 10);
	kept = sim_disk_held(world_disk(w)) == 1 && !raw_clt_lost(&clt);
	/* The answer has told the key. */
	if (kept)
		CHECK(!scribble(0, 3, rbuf->rkey));
	memset(&clt.path.answers[3], 0, sizeof(clt.path.answers[3]));
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	return kept;
}

SIM_TEST(keys_that_come_late)
{
	unsigned n = 0;

	sim_offer_local_dma_lkey(false);
	for (uint32_t us = 0; us < 1200; us += 20)
		n += key_comes_late(us);
	CHECK(n);	/* else nothing was tried */
}

/* The device is removed while keys are being taken away: nobody hears of that any more, and the
 * requests end all the same, each on the thread of its connection. */
static void device_goes_among_revocations(unsigned steps)
{
	open_always();
	sim_delay("clt", "srv", 1000, 3000);
	for (unsigned buf = 3; buf < 9; buf++)
		CHECK(raw_clt_io(&clt, ~buf & 1, buf, RNBD_OP_READ, 0, 4096, false) == 0);
	for (unsigned buf = 3; buf < 9; buf++)
		raw_clt_io_start(&clt, buf & 1, buf, RNBD_OP_READ, 0, 4096, false);
	while (steps--)
		sim_step(sim_now_us() + 1000);
	sim_lose_device("srv");
	world_run_ms(w, 10);
	CHECK(world_traced(w, "quiet: lingering -> gone"));
	sim_give_device_back("srv");
}

SIM_TEST(device_goes_among_revocations)
{
	sim_offer_local_dma_lkey(true);
	for (unsigned steps = 0; steps < 240; steps++) {
		sim_offer_local_dma_lkey(steps % 2);
		device_goes_among_revocations(steps / 2);
	}
}

static void expect_protection(enum srv_invalidate invalidate, bool by_keys, const char *line)
{
	w = world_serve(SERVER(.invalidate = invalidate));
	open_clt();
	CHECK(clt.path.rsp.new_rkey == by_keys);
	if (!world_traced(w, line))
		world_expect(w, line);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false) == 0);
}

/* --invalidate=auto, and always on a device that cannot. */
SIM_TEST(protection_by_device)
{
	sim_offer_local_dma_lkey(true);
	sim_offer_rereg(false);
	expect_protection(SRV_INVALIDATE_AUTO, false,
			  "requests over sim: invalidate is copy: "
			  "memory windows in software cost more\n");
	expect_protection(SRV_INVALIDATE_ALWAYS, true,
			  "requests over sim: invalidate is always: MW1\n");
	sim_offer_local_dma_lkey(false);
	expect_protection(SRV_INVALIDATE_AUTO, true,
			  "requests over sim: invalidate is always: MW1\n");
	sim_offer_windows(false, true);
	expect_protection(SRV_INVALIDATE_AUTO, false,
			  "requests over sim: invalidate is copy: "
			  "the device has no windows of type 1\n");
	expect_protection(SRV_INVALIDATE_ALWAYS, false,
			  "requests over sim: invalidate is copy: none (not MW1: "
			  "the device has no windows of type 1; not "
			  "suspend: keys of the device cannot be closed for a while)\n");
	sim_offer_rereg(true);
	expect_protection(SRV_INVALIDATE_AUTO, false,
			  "requests over sim: invalidate is suspend\n");
	expect_protection(SRV_INVALIDATE_ALWAYS, false,
			  "requests over sim: invalidate is suspend (not MW1: the device "
			  "has no windows of type 1)\n");
}

/* Clients come through devices of two kinds by turns: the log has one line for each kind. */
SIM_TEST(protection_is_told_once)
{
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	w = world_serve(SERVER(.invalidate = SRV_INVALIDATE_AUTO));
	for (unsigned i = 0; i < 4; i++) {
		sim_offer_windows(i % 2, true);
		raw_clt_init(&clt, "clt", 1, 1, 1);
		CHECK(raw_clt_connect(&clt, 0) == 0);
		CHECK(clt.path.rsp.new_rkey == i % 2);
		CHECK(world_traced(w, "requests over sim: ") == (i < 2));
		world_forget(w);
		raw_clt_fini(&clt);
		world_run_ms(w, 10);
		world_forget(w);
	}
}

/* The windows of the device are enough for one path: the next client is told of copies, and
 * served. */
SIM_TEST(no_windows_left)
{
	struct world_server_conf conf = world_server_defaults;

	sim_limit_windows(conf.queue_depth + conf.queue_depth / 2);
	conf.invalidate = SRV_INVALIDATE_ALWAYS;
	w = world_serve(&conf);
	open_clt();
	raw_clt_init(&other, "clt2", 2, 2, 1);
	CHECK(raw_clt_open(&other, "sess2", RNBD_ACCESS_RO) == 0);
	CHECK(clt.path.rsp.new_rkey && !other.path.rsp.new_rkey);
	CHECK(world_traced(w,
			   "requests over sim: invalidate is copy: "
			   "a path needs 16 keys of the device, and it "
			      "has no more: Cannot allocate memory\n"));
	for (unsigned i = 0; i < 2; i++) {
		CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false) == 0);
		CHECK(raw_clt_io(&other, 0, 3, RNBD_OP_READ, 0, 4096, false) == 0);
	}
	raw_clt_fini(&other);
	raw_clt_fini(&clt);
	world_run_ms(w, 100);

	/* They are back. */
	open_clt();
	CHECK(clt.path.rsp.new_rkey);
}

/* More READs in the storage than an export may have private buffers: the rest waits its turn. */
SIM_TEST(direct_reads_wait_for_private_memory)
{
	struct world_io *ios[100];
	struct world_client *c;

	w = world_serve(SERVER(.direct = true, .queue_depth = ARRAY_SIZE(ios)));
	c = world_client_start(w, CLIENT(.connections = 1));
	world_run_ms(w, 20);
	CHECK(world_client_opened(c) == 0);
	for (unsigned i = 0; i < ARRAY_SIZE(ios); i++)
		CHECK(world_write(c, i * 4096, 4096, (uint8_t)(i + 1)) == 0);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, ARRAY_SIZE(ios));
	world_ios_start(c, RNBD_OP_READ, ios, ARRAY_SIZE(ios), 0);
	world_run_ms(w, 20);
	CHECK(sim_disk_held(world_disk(w)) == SRV_POOL_BUFS / 4 * 3);
	sim_disk_release(world_disk(w));
	CHECK(world_ios_end(ios, ARRAY_SIZE(ios), 0, 1, 5000));
}

/* A READ that waits for private memory when its path fails is not done when there is some. */
SIM_TEST(waits_for_private_memory_on_a_dead_path)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct world_client_conf cconf = world_client_defaults;
	struct world_io *ios[SRV_POOL_BUFS / 4 * 3];	/* all that an export may have */
	struct world_client *c[ARRAY_SIZE(names)];
	struct sim_disk *d;

	cconf.connections = 1;
	cconf.mode = RNBD_ACCESS_RO;
	cconf.host = "clt2";
	w = world_create(1);
	d = world_disk(w);
	world_server_start(w, SERVER(.direct = true, .threads = 1));
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		cconf.name = names[i];
		c[i] = world_client_start(w, &cconf);
	}
	open_clt();
	world_run_ms(w, 20);
	sim_disk_hold(d, RNBD_OP_READ, SIM_HOLD_BEFORE, 1000);
	for (unsigned i = 0; i < ARRAY_SIZE(ios); i++)
		ios[i] = world_io_start(c[i % ARRAY_SIZE(c)], RNBD_OP_READ, i * 4096, 4096, 0,
					false);
	world_run_ms(w, 20);
	CHECK(sim_disk_held(d) == ARRAY_SIZE(ios));
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_READ, 0, 4096, false);
	world_run_ms(w, 20);
	CHECK(sim_disk_inflight(d) == ARRAY_SIZE(ios));
	raw_clt_hang_up(&clt);
	world_run_ms(w, 20);
	CHECK(world_traced(w, "srv sess/clt@srv: path: drained: draining -> lingering"));
	sim_disk_release(d);
	sim_disk_hold(d, RNBD_OP_READ, SIM_HOLD_BEFORE, 1000);
	for (unsigned i = 0; i < ARRAY_SIZE(ios); i++)
		CHECK(world_io_end(ios[i], 0, 1000) == 0);
	world_run_ms(w, 20);
	CHECK(!sim_disk_inflight(d));
	CHECK(world_traced(w, "srv sess/clt@srv: path: quiet: lingering -> gone"));
}

/* A window that is not there: the answer costs its client the path, and no more than that. */
SIM_TEST(answer_to_a_dead_window)
{
	begin();
	open_clt();
	world_forget(w);
	sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_AFTER, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_READ, 0, 4096, true);
	world_run_ms(w, 10);
	CHECK(fab_dealloc_mw(clt.windows[3]) == 0);
	clt.windows[3] = NULL;
	sim_disk_release(world_disk(w));
	CHECK(!raw_clt_wait(&clt, 3, 1000));
	world_run_ms(w, 10);
	world_expect(w,
		     SRV_GONE("  0.022", "sess/clt@srv",
		       "connection 1: sending failed: peer refused a request: unknown or dead "
		       "remote key"));
}

/* ---- who is let in (doc/protocol.md 1.7) ---- */

/* The refusals that have a reason of their own for the client, by their words in the log. */
static enum rtrs_refusal refusal_for(const char *why)
{
	static const struct { const char *why; enum rtrs_refusal refusal; } reasons[] = {
		{ "too many sessions, see --max-sessions", RTRS_REFUSES_SESSIONS },
		{ "too many paths, see --max-paths", RTRS_REFUSES_PATHS },
		{ "too many paths in set-up from this host", RTRS_REFUSES_SETUPS },
		{ "too many connections from this host, see --max-connections",
		  RTRS_REFUSES_CONNECTIONS },
		{ "session has too many paths", RTRS_REFUSES_OWN_PATHS },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (!strcmp(why, reasons[i].why))
			return reasons[i].refusal;
	}
	return RTRS_REFUSES_NOT;
}

static void expect_refused(struct raw_clt *who, unsigned cid, int status, const char *why)
{
	who->path.hears = true;
	CHECK(raw_clt_connect(who, cid) == status);
	CHECK(who->path.refusal == refusal_for(why));
	if (!world_traced(w, why))
		world_expect(w, why);
	world_forget(w);
}

SIM_TEST(refusals)
{
	begin();
	raw_clt_init(&clt, "clt", 1, 1, 2);
	clt.path.cid_num = 4097;
	expect_refused(&clt, 0, -ECONNRESET, "more than 4096 connections");
	clt.path.cid_num = 2;
	expect_refused(&clt, 2, -ECONNRESET, "connection number not below their count");
	clt.path.first_conn = false;
	expect_refused(&clt, 0, -ENXIO, "unknown session");
	clt.path.first_conn = true;
	CHECK(raw_clt_connect(&clt, 0) == 0);

	/* The same path again, in the same attempt. */
	raw_clt_init(&other, "clt", 1, 1, 2);
	expect_refused(&other, 0, -ECONNRESET, "connection number is taken");
	other.path.cid_num = 3;
	expect_refused(&other, 1, -ECONNRESET, "cid_num differs");
	/* Another path of that session between the same addresses. */
	memset(other.path.sess_uuid, 9, RTRS_UUID_LEN);
	expect_refused(&other, 0, -EEXIST, "has a path between these addresses");
	raw_clt_fini(&other);
	CHECK(raw_clt_connect(&clt, 1) == 0);
	CHECK(raw_clt_info(&clt, "sess") == 0);
}

/* Of four times as many sessions with a path each as are allowed, @most, the first get in and are
 * served; each other is refused because of @why. */
static void up_to_the_limit(unsigned most, const struct world_server_conf *conf, const char *why)
{
	static const char *const wires[] = { "srv", "srv/1", "srv/2", "srv/3" };
	struct raw_clt *in = calloc(most, sizeof(*in));
	char name[16];

	CHECK(in);
	w = world_serve(conf);
	for (unsigned n = 0; n < 4 * most; n++) {
		struct raw_clt *c = n < most ? &in[n] : &other;

		raw_clt_init(c, n % 2 ? "clt2" : "clt", (uint8_t)(n + 1), (uint8_t)(n + 1), 2);
		c->path.dst = sim_addr(wires[n % ARRAY_SIZE(wires)], RTRS_PORT);
		if (n < most) {
			snprintf(name, sizeof(name), "sess%u", n);
			CHECK(raw_clt_open(c, name, n ? RNBD_ACCESS_RO : RNBD_ACCESS_RW) == 0);
			continue;
		}
		expect_refused(c, 0, -ENOMEM, why);
		raw_clt_fini(c);
	}
	memset(in[0].data[0], 0x5a, 4096);
	CHECK(raw_clt_io(&in[0], 1, 0, RNBD_OP_WRITE, 8, 4096, false) == 0);
	for (unsigned n = 0; n < most; n++) {
		CHECK(raw_clt_io(&in[n], 1, 1, RNBD_OP_READ, 8, 4096, false) == 0);
		CHECK(!memcmp(in[n].data[1], in[0].data[0], 4096));
	}
	for (unsigned n = 0; n < most; n++)
		raw_clt_fini(&in[n]);
	free(in);
}

SIM_TEST(paths_up_to_the_limit)
{
	struct world_server_conf conf = world_server_defaults;

	conf.any_address = true;
	for (conf.max_paths = 1; conf.max_paths <= 5; conf.max_paths += 4)
		up_to_the_limit(conf.max_paths, &conf, "too many paths, see --max-paths");
}

SIM_TEST(sessions_up_to_the_limit)
{
	struct world_server_conf conf = world_server_defaults;

	conf.any_address = true;
	for (conf.max_sessions = 1; conf.max_sessions <= 5; conf.max_sessions += 4)
		up_to_the_limit(conf.max_sessions, &conf,
				"too many sessions, see --max-sessions");
}

/* Another path of a session that is there is no session more. */
SIM_TEST(a_path_more_is_no_session_more)
{
	w = world_serve(SERVER(.max_sessions = 1));
	open_clt();
	raw_clt_init(&other, "clt2", 2, 1, 1);
	CHECK(raw_clt_connect(&other, 0) == 0);
	raw_clt_fini(&other);
	raw_clt_init(&other, "clt2", 2, 2, 1);
	expect_refused(&other, 0, -ENOMEM, "too many sessions, see --max-sessions");
}

/* What a host may have is counted over all paths of its sessions. */
SIM_TEST(limits_of_a_host_count_all_paths)
{
	static const char *const wires[] = { "srv", "srv/1", "srv/2", "srv/3" };
	struct raw_clt *half = calloc(SRV_MAX_HOST_HALF_OPEN + 1, sizeof(*half));
	unsigned n;

	CHECK(half);
	w = world_serve(SERVER(.any_address = true));
	for (n = 0; n <= SRV_MAX_HOST_HALF_OPEN; n++) {
		raw_clt_init(&half[n], "clt", (uint8_t)(n + 1), (uint8_t)(n / 4 + 1), 2);
		half[n].path.dst = sim_addr(wires[n % 4], RTRS_PORT);
		if (n == SRV_MAX_HOST_HALF_OPEN)
			break;
		CHECK(raw_clt_connect(&half[n], 0) == 0);
	}
	expect_refused(&half[n], 0, -ENOMEM, "too many paths in set-up from this host");
	/* Another host has its own. */
	raw_clt_init(&other, "clt2", 200, 200, 2);
	CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == 0);
	for (n = 0; n <= SRV_MAX_HOST_HALF_OPEN; n++)
		raw_clt_fini(&half[n]);
	free(half);
}

/* A path counts with the connections that it may have, whether they are there or not.  Other hosts
 * get in. */
SIM_TEST(connections_of_a_host_up_to_the_limit)
{
	static const unsigned left = CONF_MAX_CONS * 3 / 4 - RTRS_MAX_CONS;
	static const struct { unsigned cons; const char *why; } cases[] = {
		{ left - 1, NULL }, { left, NULL },
		{ left + 1, "too many connections from this host, see --max-connections" },
		{ RTRS_MAX_CONS, "too many connections from this host, see --max-connections" },
		{ 4 * left, "more than 4096 connections" },
	};
	struct world_server_conf conf = world_server_defaults;

	conf.queue_depth = 1;		/* memory is no limit */
	conf.any_address = true;
	w = world_serve(&conf);
	raw_clt_init(&clt, "clt", 1, 1, 2);
	clt.path.cid_num = RTRS_MAX_CONS;
	CHECK(raw_clt_connect(&clt, 0) == 0);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		raw_clt_init(&other, "clt", (uint8_t)(i + 2), (uint8_t)(i + 2), 2);
		other.path.dst = sim_addr("srv/1", RTRS_PORT);
		other.path.cid_num = (uint16_t)cases[i].cons;
		if (cases[i].why)
			expect_refused(&other, 0, cases[i].why == cases[4].why ? -ECONNRESET :
				       -ENOMEM, cases[i].why);
		else
			CHECK(raw_clt_connect(&other, 0) == 0);
		raw_clt_fini(&other);
		world_run_ms(w, 1000);
	}
	raw_clt_init(&other, "clt2", 100, 100, 2);
	CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == 0);
}

/* A session has so many paths, between addresses of which no two are the same pair. */
SIM_TEST(paths_of_a_session_up_to_the_limit)
{
	static const char *const wires[] = { "srv", "srv/1", "srv/2", "srv/3" };
	struct raw_clt *in = calloc(RTRS_MAX_PATHS, sizeof(*in));
	char host[16], ip[20];

	CHECK(in);
	w = world_serve(SERVER(.any_address = true, .queue_depth = 1));
	for (unsigned n = 0; n < 4 * RTRS_MAX_PATHS; n++) {
		struct raw_clt *c = n < RTRS_MAX_PATHS ? &in[n] : &other;

		snprintf(host, sizeof(host), "path%u", n / 4);
		snprintf(ip, sizeof(ip), "10.9.0.%u", n / 4 + 1);
		if (n % 4 == 0)
			sim_host_add(host, ip);
		raw_clt_init(c, host, 0, 7, 2);
		memcpy(c->path.sess_uuid, &n, sizeof(n));
		c->path.dst = sim_addr(wires[n % ARRAY_SIZE(wires)], RTRS_PORT);
		if (n < RTRS_MAX_PATHS) {
			CHECK(raw_clt_open(c, "sess", n ? RNBD_ACCESS_RO : RNBD_ACCESS_RW) == 0);
			continue;
		}
		/* The log takes a part of so many lines. */
		if (n == RTRS_MAX_PATHS)
			expect_refused(c, 0, -ECONNRESET, "session has too many paths");
		else
			CHECK(raw_clt_connect(c, 0) == -ECONNRESET);
		raw_clt_fini(c);
	}
	memset(in[0].data[0], 0x5a, 4096);
	CHECK(raw_clt_io(&in[0], 1, 0, RNBD_OP_WRITE, 8, 4096, false) == 0);
	for (unsigned n = 0; n < RTRS_MAX_PATHS; n++) {
		CHECK(raw_clt_io(&in[n], 1, 0, RNBD_OP_READ, 8, 4096, false) == 0);
		CHECK(in[n].data[0][0] == 0x5a && in[n].data[0][4095] == 0x5a);
	}
	for (unsigned n = 0; n < RTRS_MAX_PATHS; n++)
		raw_clt_fini(&in[n]);
	free(in);
}

static void expect_hang_up(const char *name, const char *why)
{
	raw_clt_init(&clt, "clt", 1, 1, 1);
	CHECK(raw_clt_connect(&clt, 0) == 0);
	CHECK(raw_clt_info(&clt, name) == -ECONNRESET);
	if (!world_traced(w, why))
		world_expect(w, why);
	world_forget(w);
	raw_clt_fini(&clt);
	world_run_ms(w, 100);
}

SIM_TEST(p16_bad_session_names)
{
	begin();
	expect_hang_up("a/b", "path not set up: ");
	expect_hang_up("a.b", "path not set up: ");
	raw_clt_init(&other, "clt2", 2, 2, 1);
	CHECK(raw_clt_open(&other, "taken", RNBD_ACCESS_RO) == 0);
	expect_hang_up("taken", "session name taken of a client without a name is in use by "
				"taken/clt2@srv");
	raw_clt_fini(&other);
	open_clt();
}

SIM_TEST(p29_info_with_a_connection_missing)
{
	begin();
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_connect(&clt, 0) == 0);
	CHECK(raw_clt_info(&clt, "sess") == -ECONNRESET);
	world_run_ms(w, 10);
	world_expect(w,
		     SRV_NOT_UP("  0.003", "clt@srv",
		       "connection 0: INFO_REQ with 1 of 2 connections"));
}

SIM_TEST(stuck_in_set_up)
{
	begin();
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_connect(&clt, 0) == 0);
	world_run_ms(w, 40000);
	CHECK(raw_clt_lost(&clt));
	world_expect(w,
		     SRV_NOT_UP(" 30.001", "clt@srv",
		       "set-up not finished in 30 s: 1 of 2 connections, without INFO_REQ"));
}

/* Back with the uuids of @clt, which the server may still have: at once, and fit for use. */
static void expect_back_at_once(void)
{
	uint64_t us = sim_now_us();

	raw_clt_init(&other, "clt", 1, 1, 2);
	other.path.recon_cnt = (uint16_t)(clt.path.recon_cnt + 1);
	CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == 0);
	CHECK(sim_now_us() - us < 100000);
	CHECK(raw_clt_io(&other, 1, 3, RNBD_OP_WRITE, 0, 4096, false) == 0);
	raw_clt_fini(&other);
}

/* All connections are up, and then nothing comes. */
SIM_TEST(no_info_req)
{
	begin();
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_connect(&clt, 0) == 0 && raw_clt_connect(&clt, 1) == 0);
	world_run_ms(w, 29000);
	CHECK(!raw_clt_lost(&clt));
	world_run_ms(w, 2000);
	CHECK(raw_clt_lost(&clt));
	CHECK(world_traced(w, "set-up not finished in 30 s: 2 of 2 connections, without INFO_REQ"));
	CHECK(world_traced(w, "srv clt@srv: path: quiet: lingering -> gone"));
	expect_back_at_once();
}

/* The client of a path in set-up starts again, while the server has not given the path up: the
 * machine has lost power, with one connection or with all of them. */
SIM_TEST(come_back_in_set_up)
{
	for (unsigned n = 1; n <= 2; n++) {
		begin();
		raw_clt_init(&clt, "clt", 1, 1, 2);
		for (unsigned cid = 0; cid < n; cid++)
			CHECK(raw_clt_connect(&clt, cid) == 0);
		sim_kill("clt", SIM_KILL_POWER);
		world_run_ms(w, 100);
		sim_power_on("clt");
		expect_back_at_once();
		CHECK(world_traced(w, "path not set up: its client has restarted"));
	}
}

/* ---- heartbeats ---- */

SIM_TEST(p34_answered_heartbeats)
{
	begin();
	open_clt();
	world_run_ms(w, 100000);
	CHECK(!raw_clt_lost(&clt) && clt.path.hb_msgs == 20);
}

SIM_TEST(p34_mute_and_idle)
{
	begin();
	open_clt();
	world_forget(w);
	clt.path.mute = true;
	world_run_ms(w, 34000);
	CHECK(!raw_clt_lost(&clt));
	world_run_ms(w, 2000);
	CHECK(raw_clt_lost(&clt));
	world_expect(w, SRV_GONE(" 35.005", "sess/clt@srv", "heartbeat missed 5 times"));
}

/* As often as the server is told; the silence of a cable that was pulled is found, and its client
 * is back at once. */
SIM_TEST(heartbeat_settings)
{
	w = world_serve(SERVER(.hb_interval_ms = 100, .hb_missed_max = 2));
	open_clt();
	world_run_ms(w, 10000);
	CHECK(!raw_clt_lost(&clt));
	CHECK(clt.path.hb_msgs >= 40 && clt.path.hb_msgs <= 100);
	sim_drop("clt", "srv");
	world_run_ms(w, 250);
	CHECK(!world_traced(w, "path down"));
	world_run_ms(w, 200);
	CHECK(world_traced(w, "srv sess/clt@srv: path down: heartbeat missed 2 times"));
	CHECK(world_traced(w, "srv sess/clt@srv: path: drained: draining -> lingering"));
	sim_heal("clt", "srv");
	expect_back_at_once();
}

SIM_TEST(mute_and_busy)
{
	begin();
	open_clt();
	clt.path.mute = true;
	for (unsigned i = 0; i < 40; i++) {
		world_run_ms(w, 4000);
		CHECK(raw_clt_io(&clt, 1, 2, RNBD_OP_READ, 0, 512, false) == 0);
	}
	CHECK(!raw_clt_lost(&clt));
}

/* ---- come-backs (doc/decisions.md D14) ---- */

/* The client's machine lost power and is back: same path, while the server believes it is up. */
SIM_TEST(come_back_of_a_lost_machine)
{
	uint64_t us;

	begin();
	open_clt();
	world_forget(w);
	sim_kill("clt", SIM_KILL_POWER);
	world_run_ms(w, 3000);
	sim_power_on("clt");
	raw_clt_init(&other, "clt", 1, 1, 2);
	other.path.recon_cnt = 2;
	us = sim_now_us();
	CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == 0);
	CHECK(sim_now_us() - us < 100000);
	world_expect(w, SRV_GONE("  3.011", "sess/clt@srv", "its client has reconnected")
			SRV_UP("  3.015", "sess/clt@srv", "sess/clt@srv", "2")
			"[  3.019] srv sess: device 0 opened: disk0, rw\n");
}

/* A client without our extension gives up what was in flight; its device is not open again before
 * the storage has done with that, however long it takes. */
SIM_TEST(come_back_of_a_client_that_gives_up)
{
	begin();
	open_clt();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	raw_clt_hang_up(&clt);
	raw_clt_init(&other, "clt", 1, 1, 2);
	other.path.recon_cnt = 2;
	CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == -ECONNRESET);
	world_run_ms(w, 20000);
	CHECK(!raw_clt_lost(&other) && !other.path.answers[0].n);
	sim_disk_release(world_disk(w));
	CHECK(raw_clt_opened(&other, 100) == 0);
	CHECK(raw_clt_io(&other, 1, 0, RNBD_OP_WRITE, 0, 4096, false) == 0);
}

/* The client of path @uuid comes, and is lost. */
static void come_and_go(uint8_t uuid)
{
	raw_clt_fini(&clt);
	raw_clt_init(&clt, "clt", uuid, uuid, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	world_run_ms(w, 1000);
	raw_clt_hang_up(&clt);
	world_run_ms(w, 1000);
}

/* A path that is lost again and again is known when its session has gone.  A client that begins
 * again each time has other paths of the same name. */
SIM_TEST(path_that_flaps)
{
	const struct srv_flap *f;
	struct srv *srv;

	begin();
	open_clt();
	srv = world_server_srv(w);
	for (uint8_t i = 0; i < 2 * SRV_FLAP_UPS; i++)
		come_and_go(i + 10);
	CHECK(list_empty(&srv->sessions));
	for (unsigned ups = 2; ups <= SRV_FLAP_UPS; ups++) {
		CHECK(!srv_flaps_next(&srv->flaps, NULL));
		come_and_go(1);
	}
	CHECK(list_empty(&srv->sessions));
	f = srv_flaps_next(&srv->flaps, NULL);
	CHECK(f && f->ups == SRV_FLAP_UPS && !srv_flaps_next(&srv->flaps, f));
	CHECK(!strcmp(f->path, "sess/10.0.0.1@10.0.0.2:1234"));
	CHECK(!strcmp(f->session, "sess"));
	CHECK(!strcmp(f->cause, "connection 0: disconnected"));
	/* The path is back, and stays. */
	raw_clt_fini(&clt);
	open_clt();
	world_run_ms(w, SRV_FLAP_STEADY_MS);
	CHECK(!raw_clt_lost(&clt) && !srv_flaps_next(&srv->flaps, NULL));
}

/* A dead session whose requests are still in the storage keeps its name from nobody. */
SIM_TEST(name_of_a_dead_session)
{
	struct sim_disk *d;

	begin();
	d = world_disk(w);
	open_clt();
	sim_disk_hold(d, RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	CHECK(raw_clt_connect(&other, 0) == 0);
	CHECK(raw_clt_connect(&other, 1) == 0);
	world_forget(w);
	sim_cut("clt", "srv");
	CHECK(raw_clt_info(&other, "sess") == 0);
	world_expect(w, SRV_LOST("  0.024", "sess/clt@srv", "connection 0: disconnected")
			SRV_UP("  0.025", "clt2@srv", "sess/clt2@srv", "2"));
	sim_disk_release(d);
}

/* ---- order under one buf_id ---- */

/* A second path of the session. */
static void open_second_path(void)
{
	raw_clt_init(&other, "clt2", 2, 1, 2);
	CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
	CHECK(raw_clt_info(&other, "sess") == 0);
}

/* A client without tags that uses a chunk on another path has given the first one up.  What waits
 * behind an older request of its buf_id is not done when its path has failed meanwhile, too: its
 * client sends it again. */
SIM_TEST(held_behind_the_fence_by_a_dead_path)
{
	struct sim_disk *d;

	begin();
	d = world_disk(w);
	open_clt();
	open_second_path();
	sim_disk_hold(d, RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	memset(clt.data[3], 0x33, 4096);
	memset(other.data[3], 0x44, 4096);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	raw_clt_io_start(&other, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_inflight(d) == 1 && sim_disk_held(d) == 1);
	CHECK(raw_clt_lost(&clt) && !raw_clt_lost(&other));
	CHECK(world_traced(w,
			   "srv sess/clt@srv: path down: "
			   "its client has retried a request over another path"));
	raw_clt_hang_up(&clt);		/* back, so that the session goes on */
	clt.path.recon_cnt++;
	CHECK(raw_clt_connect(&clt, 0) == 0 && raw_clt_connect(&clt, 1) == 0);
	CHECK(raw_clt_info(&clt, "sess") == 0);
	raw_clt_fini(&other);
	world_run_ms(w, 10);
	CHECK(world_traced(w, "srv sess/clt2@srv: path: drained: draining -> lingering"));
	sim_disk_release(d);
	world_run_ms(w, 10);
	CHECK(all_bytes(sim_disk_content(d), 4096, 0x33));
}

static void scribble_on_chunk(struct raw_clt *c, unsigned buf)
{
	struct ibv_sge sge = { (uintptr_t)c->data[9], RAW_DATA, c->path.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&c->path.cons[1], .opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = c->path.rbufs[buf].addr,
			     .rkey = c->path.rbufs[buf].rkey },
	};

	memset(c->data[9], 0x99, RAW_DATA);
	CHECK(fab_post_send(c->path.cons[1].conn, &wr) == 0);
	wr.wr.rdma.remote_addr += c->path.geom.chunk_size - RAW_DATA;
	CHECK(fab_post_send(c->path.cons[1].conn, &wr) == 0);
}

/* What was checked is what is done: a client that changes its chunk while its request waits changes
 * nothing. */
SIM_TEST(header_changes_behind_the_check)
{
	begin();
	open_clt();
	open_second_path();
	memset(clt.data[3], 0x33, 4096);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	raw_clt_io_start(&other, 1, 3, RNBD_OP_READ, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_inflight(world_disk(w)) == 1);
	scribble_on_chunk(&other, 3);
	world_run_ms(w, 10);
	sim_disk_release(world_disk(w));
	CHECK(raw_clt_wait(&other, 3, 1000) && other.path.answers[3].status == 0);
	CHECK(all_bytes(other.data[3], 4096, 0x33));
}

/* The fence is for IO: a client that is back is greeted while an older request of that buf_id is in
 * the storage. */
SIM_TEST(fence_lets_messages_through)
{
	struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };
	struct rnbd_msg_sess_info m;

	begin();
	open_clt();
	open_second_path();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	raw_clt_submit(&other, 0, 3, RTRS_DIR_READ, &m, sizeof(m), sizeof(m), false);
	CHECK(raw_clt_wait(&other, 3, 1000) && other.path.answers[3].status == 0);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	sim_disk_release(world_disk(w));
	CHECK(raw_clt_wait(&clt, 3, 1000));
}

/* A client that was told by hand that its device has grown: a kernel's has "resize" for that. */
SIM_TEST(io_behind_the_end)
{
	const uint64_t sectors = WORLD_DISK_SIZE / 512;

	begin();
	open_clt();
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_READ, sectors, 4096, false) == -EIO);
	sim_disk_resize(world_disk(w), 2 * WORLD_DISK_SIZE);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_READ, 2 * sectors - 7, 4096, false) == -EIO);
	sim_disk_resize(world_disk(w), 3 * WORLD_DISK_SIZE);
	memset(clt.data[3], 0x44, 4096);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_WRITE, 3 * sectors - 8, 4096, false) == 0);
	CHECK(raw_clt_io(&clt, 1, 4, RNBD_OP_READ, 3 * sectors - 8, 4096, false) == 0);
	CHECK(all_bytes(clt.data[4], 4096, 0x44));
	/* The storage does not answer: it goes by what is known. */
	sim_disk_resize(world_disk(w), 4 * WORLD_DISK_SIZE);
	sim_disk_hold_size(world_disk(w));
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_READ, 3 * sectors, 4096, false);
	/* A request for what is there does not wait for that one. */
	CHECK(raw_clt_io(&clt, 1, 4, RNBD_OP_READ, 3 * sectors - 8, 4096, false) == 0);
	CHECK(raw_clt_wait(&clt, 3, 2000) && clt.path.answers[3].status == -EIO);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_READ, 3 * sectors, 4096, false) == -EIO);
	sim_disk_release(world_disk(w));
	world_run_ms(w, 10);
	CHECK(raw_clt_io(&clt, 1, 3, RNBD_OP_READ, 3 * sectors, 4096, false) == 0);
}

static void hang_up(void *arg)
{
	raw_clt_hang_up(&clt);
	*(bool *)arg = true;
}

/* The same of a path that is lost at any step of it: it is not kept by what it waits for. */
SIM_TEST(io_behind_the_end_of_a_lost_path)
{
	unsigned step = 0;
	bool hung_up;

	do {
		begin();
		open_clt();
		sim_disk_hold_size(world_disk(w));
		raw_clt_io_start(&clt, 1, 3, RNBD_OP_READ, WORLD_DISK_SIZE / 512, 4096, false);
		raw_clt_io_start(&clt, 1, 4, RNBD_OP_READ, WORLD_DISK_SIZE / 512, 4096, false);
		hung_up = false;
		sim_at_step(sim_steps() + ++step, hang_up, &hung_up);
		world_run_ms(w, 200);
		sim_at_step(0, NULL, NULL);
		CHECK(!hung_up || world_traced(w, "session closed"));
		CHECK(!hung_up || world_traced(w, "device 0 closed"));
		sim_disk_release(world_disk(w));
	} while (hung_up);
	CHECK(step > 5);
}

static void greet_as(uint8_t ver)
{
	struct rnbd_sess_info info = { .ver = ver };
	struct rnbd_msg_sess_info m;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	raw_clt_submit(&clt, 0, 3, RTRS_DIR_READ, &m, sizeof(m), sizeof(m), false);
	CHECK(raw_clt_wait(&clt, 3, 1000) && clt.path.answers[3].status == 0);
}

/* What the storage is told of a READ that carries @prio in @len bytes of message. */
static uint16_t prio_told(uint16_t prio, uint16_t len)
{
	struct rnbd_io io = { .device_id = clt.device_id, .op = RNBD_OP_READ, .bi_size = 512,
			      .prio = prio };
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	m.prio = le16_put(prio);
	raw_clt_submit(&clt, 1, 4, RTRS_DIR_READ, &m, len, 512, false);
	CHECK(raw_clt_wait(&clt, 4, 1000) && clt.path.answers[4].status == 0);
	return sim_disk_prio(world_disk(w));
}

/* Before version 2 of RNBD there is garbage in its place. */
SIM_TEST(priority_counts_from_version_2)
{
	const uint16_t prio = IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | 5;

	begin();
	open_clt();
	greet_as(2);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == prio);
	CHECK(prio_told(0, sizeof(struct rnbd_msg_io)) == 0);
	greet_as(1);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == 0);
	greet_as(0);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == 0);
	greet_as(3);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == prio);
	CHECK(prio_told(prio, RNBD_MSG_IO_MIN) == 0);
}

/* Give "disk0" the rules of @allow and @prio. */
static void set_disk(const char *allow, uint16_t prio)
{
	struct conf_export ex = { .spec = { .name = "disk0", .path = "disk0" },
				  .priority = prio };
	char err[EXPORT_LIFE_ERR];

	CHECK(conf_allow_list_add(&ex.allow, allow, err, sizeof(err)) == 0);
	CHECK(world_server_change(w, &ex, 1, err) == 0);
}

static uint16_t best_effort(unsigned level)
{
	return (uint16_t)(IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | level);
}

/* The priority of an export is the best that its IO gets, from then on.  The default, 4, is what
 * a kernel's client sends when nobody has chosen. */
SIM_TEST(priority_of_an_export)
{
	const uint16_t prio = best_effort(5);
	const uint16_t idle = IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT;
	const uint16_t realtime = IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT | 1;

	begin();
	open_clt();
	greet_as(2);
	CHECK(prio_told(0, sizeof(struct rnbd_msg_io)) == 0);
	CHECK(prio_told(best_effort(4), sizeof(struct rnbd_msg_io)) == 0);
	set_disk("all", idle);
	CHECK(prio_told(0, sizeof(struct rnbd_msg_io)) == idle);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == idle);
	CHECK(prio_told(best_effort(4), sizeof(struct rnbd_msg_io)) == idle);
	CHECK(prio_told(realtime, sizeof(struct rnbd_msg_io)) == idle);
	CHECK(prio_told(prio, RNBD_MSG_IO_MIN) == idle);
	greet_as(1);
	CHECK(prio_told(prio, sizeof(struct rnbd_msg_io)) == idle);
	set_disk("all", prio);
	CHECK(prio_told(0, sizeof(struct rnbd_msg_io)) == prio);
	greet_as(2);
	CHECK(prio_told(best_effort(3), sizeof(struct rnbd_msg_io)) == prio);
	CHECK(prio_told(best_effort(4), sizeof(struct rnbd_msg_io)) == prio);
	CHECK(prio_told(best_effort(6), sizeof(struct rnbd_msg_io)) == best_effort(6));
	set_disk("all", best_effort(2));
	CHECK(prio_told(best_effort(4), sizeof(struct rnbd_msg_io)) == best_effort(2));
	CHECK(prio_told(best_effort(3), sizeof(struct rnbd_msg_io)) == best_effort(3));
	set_disk("all", 0);
	CHECK(prio_told(0, sizeof(struct rnbd_msg_io)) == 0);
}

/* A path of the session of clt, from the other host; -errno, 0: it has joined. */
static int join_from_other(void)
{
	int rc;

	raw_clt_init(&other, "clt2", 2, 1, 2);
	rc = raw_clt_connect(&other, 0);
	if (!rc)
		rc = raw_clt_connect(&other, 1);
	return rc ? rc : raw_clt_info(&other, "sess");
}

/* The session keeps what it has open, and a path from an address that is not in the list does not
 * join it meanwhile. */
SIM_TEST(allow_of_an_export)
{
	begin();
	open_clt();
	set_disk("10.0.0.1", 0);
	CHECK(raw_clt_io(&clt, 1, 4, RNBD_OP_READ, 0, 4096, false) == 0);
	CHECK(join_from_other() != 0);
	CHECK(world_traced(w, "path not set up: its session has disk0 open, whose allow does not "
			   "contain this address"));
	raw_clt_fini(&other);
	CHECK(raw_clt_io(&clt, 1, 4, RNBD_OP_READ, 0, 4096, false) == 0);
	set_disk("10.0.0.1, 10.0.0.3", 0);
	CHECK(join_from_other() == 0);
	raw_clt_fini(&other);
	/* One address of two is not enough for a list that names one. */
	set_disk("10.0.0.3", 0);
	CHECK(raw_clt_io(&clt, 1, 4, RNBD_OP_READ, 0, 4096, false) == 0);
	raw_clt_fini(&clt);
	world_run_ms(w, 50);
	raw_clt_init(&clt, "clt", 1, 3, 2);
	CHECK(raw_clt_open(&clt, "anew", RNBD_ACCESS_RW) == -ENOENT);
	set_disk("all", 0);
	raw_clt_fini(&clt);
	world_run_ms(w, 50);
	raw_clt_init(&clt, "clt", 1, 4, 2);
	CHECK(raw_clt_open(&clt, "anew", RNBD_ACCESS_RW) == 0);
}

static void release_size(void *arg)
{
	sim_disk_release(world_disk(w));
	*(bool *)arg = true;
}

/* An OPEN goes on at any step of a path that joins from elsewhere: one of the two is refused. */
SIM_TEST(allow_when_a_path_joins)
{
	unsigned step = 0, opened = 0, joined = 0;
	struct rnbd_msg_open m;
	bool released;

	/* Over a device that pins memory a path is let in before its memory is there. */
	CHECK(rnbd_open_encode(&m, "disk0", RNBD_ACCESS_RO) == 0);
	do {
		w = world_serve(SERVER(.invalidate = SRV_INVALIDATE_NEVER));
		set_disk("10.0.0.1", 0);
		raw_clt_init(&clt, "clt", 1, 1, 2);
		CHECK(raw_clt_connect(&clt, 0) == 0 && raw_clt_connect(&clt, 1) == 0);
		CHECK(raw_clt_info(&clt, "sess") == 0);
		raw_clt_init(&other, "clt2", 2, 1, 2);
		CHECK(raw_clt_connect(&other, 0) == 0);
		sim_disk_hold_size(world_disk(w));
		raw_clt_submit(&clt, 0, 1, RTRS_DIR_READ, &m, sizeof(m),
			       sizeof(struct rnbd_msg_open_rsp), false);
		CHECK(raw_clt_connect(&other, 1) == 0);
		released = false;
		sim_at_step(sim_steps() + ++step, release_size, &released);
		if (!raw_clt_info(&other, "sess"))
			world_run_ms(w, 10);
		sim_at_step(0, NULL, NULL);
		if (!released)
			sim_disk_release(world_disk(w));
		CHECK(raw_clt_wait(&clt, 1, 1000));
		if (clt.path.answers[1].status)
			CHECK(clt.path.answers[1].status == -ENOENT && ++joined);
		else
			opened++;
		CHECK(raw_clt_lost(&other) == !clt.path.answers[1].status);
		raw_clt_fini(&other);
	} while (released);
	CHECK(opened && joined);
}

/* Against the rules: two requests in one chunk at once.  It costs the client its path. */
SIM_TEST(chunk_used_twice)
{
	begin();
	open_clt();
	world_forget(w);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	raw_clt_io_start(&clt, 0, 3, RNBD_OP_READ, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(raw_clt_lost(&clt));
	world_expect(w,
		     SRV_LOST("  0.021", "sess/clt@srv",
		       "connection 0: chunk 3 used twice at once"));
	sim_disk_release(world_disk(w));
}

/* An immediate has room for more numbers of chunks than there are, unless the depth is a power of
 * two. */
SIM_TEST(chunk_behind_the_last_one)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sge = { .length = 64 };

	w = world_serve(SERVER(.queue_depth = 15));
	open_clt();
	CHECK(raw_clt_io(&clt, 1, 14, RNBD_OP_READ, 0, 4096, false) == 0);
	sge.addr = (uintptr_t)clt.data[3];
	sge.lkey = clt.path.mr->lkey;
	wr.wr_id = (uintptr_t)&clt.path.cons[1];
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.imm_data = rtrs_imm_io_req(&clt.path.geom, 15, 0);
	wr.wr.rdma.remote_addr = clt.path.rbufs[3].addr;
	wr.wr.rdma.rkey = clt.path.rbufs[3].rkey;
	CHECK(fab_post_send(clt.path.cons[1].conn, &wr) == 0);
	world_run_ms(w, 10);
	CHECK(world_traced(w,
			   "srv sess/clt@srv: path down: connection 1: "
			   "request for chunk 15 of 15\n"));
}
