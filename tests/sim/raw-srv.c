/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns chunks with a region each for each path, and the disk.  One thread; an actor of its host. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "raw-srv.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "sim-test.h"

#define CHUNK_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* ---- RNBD ---- */

static const struct rnbd_dev_info disk = {
	.nsectors = RAW_SRV_DISK / RNBD_SECTOR_SIZE,
	.max_hw_sectors = RAW_SRV_IO / RNBD_SECTOR_SIZE,
	.physical_block_size = RNBD_SECTOR_SIZE,
	.logical_block_size = RNBD_SECTOR_SIZE,
	.max_segments = 1,
	.fua = true,
	.writeback = true,
};

/* The number of @name, which gets one if it has none. */
static int dev_open(struct peer_srv_sess *sess, const char *name)
{
	int id = -ENOMEM;

	for (int i = PEER_SRV_DEVS - 1; i >= 0; i--) {
		if (!strcmp(sess->devs[i], name))
			return i;
		if (!sess->devs[i][0])
			id = i;
	}
	if (id >= 0)
		strcpy(sess->devs[id], name);
	return id;
}

static bool dev_is_open(const struct peer_srv_sess *sess, uint32_t id)
{
	return id < PEER_SRV_DEVS && sess->devs[id][0];
}

/* OPEN, whose answer is to be in @info, and CLOSE. */
static int do_control(struct raw_srv *s, struct peer_srv_sess *sess, const struct rtrs_req *req,
		      struct rnbd_dev_info *info)
{
	struct rnbd_open open;
	uint32_t id;
	int rc;

	switch (rnbd_msg_type(req->usr, req->usr_len)) {
	case RNBD_MSG_OPEN:
		s->nopens++;
		CHECK(rnbd_open_decode(req->usr, req->usr_len, &open) == 0);
		if (s->no_open)
			return s->no_open;
		rc = dev_open(sess, open.name);
		info->device_id = (uint32_t)rc;
		if (s->told_size)
			info->nsectors = s->told_size / RNBD_SECTOR_SIZE;
		return MIN(rc, 0);
	case RNBD_MSG_CLOSE:
		CHECK(rnbd_close_decode(req->usr, req->usr_len, &id) == 0);
		if (dev_is_open(sess, id))
			sess->devs[id][0] = '\0';
		return 0;
	default:
		return 0;
	}
}

static void say_something(struct raw_srv *s, uint8_t *chunk)
{
	s->nquestions++;
	memset(chunk, 0, RAW_SRV_IO);
	memcpy(chunk, s->says, sizeof(s->says));
}

static int do_io(struct raw_srv *s, const struct peer_srv_sess *sess, const struct rtrs_req *req,
		 uint8_t *chunk)
{
	struct rnbd_io io;
	int rc = rnbd_io_decode(req->usr, req->usr_len, req->data_len, req->dir == RTRS_DIR_READ,
				&io);

	if (rc)
		return rc;
	if (io.op == RNBD_OP_EXTENTS) {
		s->asked = io;
		say_something(s, chunk);
		return 0;
	}
	if (!dev_is_open(sess, io.device_id)) {
		s->nstrays++;
		return -ENOTCONN;
	}
	s->nrequests++;
	s->ops |= 1u << io.op;
	if (!range_ok(io.sector * RNBD_SECTOR_SIZE, io.bi_size, RAW_SRV_DISK))
		return -EIO;
	if (io.op == RNBD_OP_READ)
		memcpy(chunk, s->disk + io.sector * RNBD_SECTOR_SIZE, io.bi_size);
	else if (io.op == RNBD_OP_WRITE)
		memcpy(s->disk + io.sector * RNBD_SECTOR_SIZE, chunk, io.bi_size);
	return 0;
}

/* ---- answers ---- */

static struct raw_srv *srv_of(struct peer_srv *s)
{
	return container_of(s, struct raw_srv, peer);
}

static void answer(struct peer_srv_con *con, const struct rtrs_req *req, unsigned buf, int status)
{
	struct raw_srv *s = srv_of(con->srv);
	struct rtrs_rsp rsp = peer_srv_rsp(con->srv, req, buf, status);
	struct rtrs_wr_rsp w;

	rsp.new_rkey = s->peer.new_rkey;
	rsp.rkey_rsp = (struct ibv_sge){ (uintptr_t)&s->key_rsp[buf], sizeof(s->key_rsp[buf]),
					 s->peer.own_mr->lkey };
	fab_post_send(con->fab, rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp));
}

/* The answer to a READ, that invalidates its key @times and says that it did or did not. */
static void answer_read(struct peer_srv_con *con, const struct rtrs_req *req, unsigned buf,
			unsigned times, bool says)
{
	struct rtrs_req plain = *req;
	struct rtrs_rsp rsp = peer_srv_rsp(con->srv, &plain, buf, 0);
	struct rtrs_wr_rsp w;
	struct ibv_send_wr *wr, again;

	plain.need_inval = times;
	wr = rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp);
	w.wr[w.n - 1].imm_data = rtrs_imm_io_rsp(buf, 0, says);
	if (times == 2) {
		again = w.wr[w.n - 2];
		w.wr[w.n - 2].next = &again;
	}
	fab_post_send(con->fab, wr);
}

static void write_late(struct peer_srv_con *con, unsigned buf)
{
	struct raw_srv *s = srv_of(con->srv);
	struct ibv_sge sge = { .addr = (uintptr_t)s->chunks[buf], .length = s->last.len,
			       .lkey = s->peer.own_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = s->last.addr, .rkey = s->last.key },
	};

	fab_post_send(con->fab, &wr);
}

static void send_imm(struct peer_srv_con *con, __be32 imm)
{
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = imm,
	};

	fab_post_send(con->fab, &wr);
}

static void send_key(struct peer_srv_con *con, unsigned buf, uint32_t len, bool with_imm)
{
	struct raw_srv *s = srv_of(con->srv);
	struct ibv_sge sge = { .addr = (uintptr_t)&s->key_rsp[buf], .length = len,
			       .lkey = s->peer.own_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge, .num_sge = len ? 1 : 0,
		.opcode = with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = rtrs_imm_io_rsp(buf, 0, false),
	};

	fab_post_send(con->fab, &wr);
}

static struct peer_srv_con *other_con(struct peer_srv_con *con)
{
	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		struct peer_srv_con *o = &con->srv->cons[i];

		if (o->fab && !o->failed && o->cid && o->cid != con->cid)
			return o;
	}
	return NULL;
}

/* @req was executed with @status; its chunk's key is alive again. */
static void answer_badly(struct peer_srv_con *con, const struct rtrs_req *req, unsigned buf,
			 int status)
{
	struct raw_srv *s = srv_of(con->srv);
	enum raw_evil evil = s->evil;

	s->evil = RAW_GOOD;
	switch (evil) {
	case RAW_UNKNOWN_ID:
		send_imm(con, rtrs_imm_io_rsp(PEER_SRV_DEPTH + 5, 0, false));
		return;
	case RAW_IDLE_ID:
		send_imm(con, rtrs_imm_io_rsp((buf + 1) % PEER_SRV_DEPTH, 0, false));
		return;
	case RAW_TWICE:
		answer(con, req, buf, status);
		answer(con, req, buf, status);
		return;
	case RAW_OTHER_CON:
		answer(other_con(con), req, buf, status);
		return;
	case RAW_UNKNOWN_IMM:
		send_imm(con, rtrs_imm_pack(5, buf));
		return;
	case RAW_ODD_STATUS:
		answer(con, req, buf, -511);
		return;
	case RAW_PLAIN_SEND:
		send_key(con, buf, 0, false);
		return;
	case RAW_INVAL_LIE:
		answer_read(con, req, buf, 0, true);
		return;
	case RAW_INVAL_SILENT:
		answer_read(con, req, buf, 1, false);
		return;
	case RAW_INVAL_TWICE:
		answer_read(con, req, buf, 2, true);
		return;
	case RAW_LATE_WRITE:
		write_late(con, buf);
		answer(con, req, buf, status);
		return;
	case RAW_KEY_WRONG_BUF:
		s->key_rsp[buf].buf_id = le16_put((uint16_t)((buf + 1) % PEER_SRV_DEPTH));
		send_key(con, buf, sizeof(s->key_rsp[buf]), true);
		return;
	case RAW_KEY_WRONG_TYPE:
		s->key_rsp[buf].type = le16_put(RTRS_MSG_INFO_RSP);
		send_key(con, buf, sizeof(s->key_rsp[buf]), true);
		return;
	case RAW_KEY_SHORT:
		send_key(con, buf, 4, true);
		return;
	case RAW_KEY_MISSING:
		send_imm(con, rtrs_imm_io_rsp(buf, status, false));
		return;
	case RAW_GOOD:
		break;
	}
	CHECK(!"no such thing to do");
}

/* The region of the chunk on the path of @con. */
static struct ibv_mr **chunk_mr(const struct peer_srv_con *con, unsigned buf)
{
	struct raw_srv *s = srv_of(con->srv);

	return &s->mrs[con->path - s->peer.paths][buf];
}

/* The chunk under a fresh key. */
static void chunk_open(const struct peer_srv_con *con, unsigned buf)
{
	struct raw_srv *s = srv_of(con->srv);
	struct ibv_mr **mr = chunk_mr(con, buf);

	fab_dereg_mr(*mr);
	*mr = fab_reg_mr(s->peer.pd, s->chunks[buf], RAW_SRV_CHUNK, CHUNK_RIGHTS);
	CHECK(*mr);
}

static void rearm_key(const struct peer_srv_con *con, unsigned buf)
{
	struct raw_srv *s = srv_of(con->srv);

	if (!s->peer.new_rkey)
		return;
	if (!s->same_key)
		chunk_open(con, buf);
	rtrs_rkey_rsp_encode(&s->key_rsp[buf], (uint16_t)buf, (*chunk_mr(con, buf))->rkey);
}

static void say_features(const struct raw_srv *s, uint8_t *chunk)
{
	const struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR,
					     .ext = { .valid = true, .features = s->features } };

	rnbd_sess_info_encode((struct rnbd_msg_sess_info *)chunk, RNBD_MSG_SESS_INFO_RSP, &info);
}

static void on_request(struct peer_srv_con *con, struct rtrs_req *req, unsigned buf)
{
	struct raw_srv *s = srv_of(con->srv);
	struct rnbd_dev_info info = disk;
	int type, status;

	if (s->peer.new_rkey && !s->same_key) {
		fab_dereg_mr(*chunk_mr(con, buf));
		*chunk_mr(con, buf) = NULL;
		s->nrevoked++;
	}
	s->nasked += req->need_inval;
	if (req->dir == RTRS_DIR_READ && req->has_desc && !s->evil)
		s->last = req->desc;
	if (s->no_inval)
		req->need_inval = false;
	status = do_control(s, con->path->sess, req, &info);
	type = peer_srv_control(req, &info, s->chunks[buf]);
	if (type == RNBD_MSG_SESS_INFO && s->features)
		say_features(s, s->chunks[buf]);
	if (type == RNBD_MSG_LIST)
		say_something(s, s->chunks[buf]);
	if (type == RNBD_MSG_IO)
		status = do_io(s, con->path->sess, req, s->chunks[buf]);
	if (type == RNBD_MSG_PROBE) {
		s->nprobes += req->data_len;
		if (s->loses_probes)
			return;
	}
	rearm_key(con, buf);
	if (type == RNBD_MSG_IO && s->evil)
		answer_badly(con, req, buf, status);
	else
		answer(con, req, buf, status);
}

/* ---- set-up ---- */

static unsigned regions(struct peer_srv_con *con, struct rtrs_region *regions)
{
	struct raw_srv *s = srv_of(con->srv);

	for (unsigned i = 0; i < PEER_SRV_DEPTH; i++) {
		chunk_open(con, i);
		regions[i] = (struct rtrs_region){ (uintptr_t)s->chunks[i],
						   (*chunk_mr(con, i))->rkey, RAW_SRV_CHUNK };
	}
	return PEER_SRV_DEPTH;
}

static struct ibv_mr *memory(struct peer_srv *s)
{
	return fab_reg_mr(s->pd, srv_of(s), sizeof(struct raw_srv), IBV_ACCESS_LOCAL_WRITE);
}

static const struct peer_srv_ops ops = { .memory = memory, .regions = regions,
					 .request = on_request };

void raw_srv_heartbeat(struct raw_srv *s)
{
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		struct peer_srv_con *con = &s->peer.cons[i];

		if (!con->fab || con->failed || con->cid)
			continue;
		rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_MSG_IMM);
		fab_post_send(con->fab, &wr);
	}
}

/* ---- the actor ---- */

static void raw_run(struct sim_actor *a)
{
	struct raw_srv *s = container_of(a, struct raw_srv, actor);
	short events;

	peer_srv_events(&s->peer);
	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		if (s->peer.cons[i].fab)
			peer_srv_poll(&s->peer.cons[i], &events);
	}
}

static bool raw_ready(struct sim_actor *a)
{
	struct raw_srv *s = container_of(a, struct raw_srv, actor);

	if (sim_fd_ready(fab_cm_fd(s->peer.cm)))
		return true;
	for (unsigned i = 0; i < PEER_SRV_CONS; i++) {
		struct fab_conn *fab = s->peer.cons[i].fab;

		if (fab && sim_fd_ready(fab_conn_fd(fab)))
			return true;
	}
	return false;
}

static void start(struct raw_srv *s, bool new_rkey)
{
	struct fab_addr addr = sim_addr("srv", RTRS_PORT);
	struct sim_host *h = sim_host_find("srv");
	struct sim_place before = sim_enter(h, h->epoch);

	((struct sockaddr_in *)&addr.ss)->sin_addr.s_addr = INADDR_ANY;
	memset(s, 0, offsetof(struct raw_srv, disk));
	peer_srv_start(&s->peer, &ops, &addr, s->chunks[0], RAW_SRV_IO);
	s->peer.new_rkey = new_rkey;
	s->actor.ready = raw_ready;
	s->actor.run = raw_run;
	sim_actor_add(&s->actor);
	sim_leave(before);
}

void raw_srv_start(struct raw_srv *s, bool new_rkey)
{
	memset(s->disk, 0, sizeof(s->disk));
	start(s, new_rkey);
}

void raw_srv_start_again(struct raw_srv *s)
{
	start(s, s->peer.new_rkey);
}

unsigned raw_srv_sessions(const struct raw_srv *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PEER_SRV_SESSIONS; i++)
		n += s->peer.sessions[i].ncons > 0;
	return n;
}

static bool raw_gone(void *arg)
{
	return !raw_srv_sessions(arg);
}

void raw_srv_kill(struct raw_srv *s)
{
	sim_kill("srv", SIM_KILL_PROCESS);
	CHECK(sim_run_until(raw_gone, s, 1000));
	raw_srv_stop(s);
}

void raw_srv_stop(struct raw_srv *s)
{
	for (unsigned path = 0; path < PEER_SRV_PATHS; path++) {
		for (unsigned i = 0; i < PEER_SRV_DEPTH; i++)
			fab_dereg_mr(s->mrs[path][i]);
	}
	peer_srv_stop(&s->peer);
	sim_actor_del(&s->actor);
}
