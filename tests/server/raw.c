/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one connection manager and the connections of one path; the test's thread.  Ends the program
 * on anything unexpected. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#include "raw.h"
#include "rtrs-imm.h"
#include "util.h"

/* ---- completions ---- */

static void post_empty(struct raw_con *con, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->cqe };

		check_eq(fab_post_recv(con->fab, &wr), 0);
	}
}

static void got_response(struct raw *r, uint32_t payload)
{
	struct raw_slot *slot;
	uint32_t msg_id;
	int status;

	rtrs_imm_io_rsp_split(payload, &msg_id, &status);
	check(msg_id < r->geom.queue_depth);
	slot = &r->slots[msg_id];
	check(slot->busy);
	slot->busy = false;
	slot->answers++;
	slot->status = status;
}

static void got_imm(struct raw_con *con, __be32 imm)
{
	struct raw *r = con->raw;
	unsigned type = rtrs_imm_type(imm);
	struct ibv_send_wr wr;

	switch (type) {
	case RTRS_IO_RSP_IMM:
		got_response(r, rtrs_imm_payload(imm));
		break;
	case RTRS_HB_MSG_IMM:
		r->hb_seen++;
		rtrs_wr_heartbeat(&wr, (uintptr_t)&con->cqe, RTRS_HB_ACK_IMM);
		if (!r->mute)
			fab_post_send(con->fab, &wr);
		break;
	case RTRS_HB_ACK_IMM:
		r->acks_seen++;
		break;
	default:
		check(!"immediate of unknown type");
	}
}

static void wc_done(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct raw_con *con = container_of(cqe, struct raw_con, cqe);

	if (wc->status != IBV_WC_SUCCESS || !(wc->opcode & IBV_WC_RECV))
		return;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		got_imm(con, wc->imm_data);
	} else {
		check(wc->wc_flags & IBV_WC_WITH_INV);
		con->raw->invs++;
	}
	if (!con->drained)
		post_empty(con, 1);
}

static void info_done(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct raw_con *con = container_of(cqe, struct raw_con, info_cqe);

	if (wc->status != IBV_WC_SUCCESS)
		return;
	con->info_done = true;
	con->info_len = wc->byte_len;
}

/* ---- steps ---- */

static void got_event(struct raw *r, const struct fab_event *ev)
{
	struct raw_con *con = fab_conn_context(ev->conn);
	struct rtrs_conn_rsp rsp;
	const char *why;

	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		con->resolved = true;
		break;
	case FAB_EVENT_ESTABLISHED:
	case FAB_EVENT_REJECTED:
		con->rejected = ev->type == FAB_EVENT_REJECTED;
		con->established = !con->rejected;
		con->status = rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len,
						   con->rejected, &rsp, &why);
		if (!con->status)
			con->status = rsp.status;
		if (con->established && con == &r->cons[0] && !r->geom.queue_depth)
			check_eq(rtrs_geom_init(&r->geom, rsp.queue_depth, rsp.max_io_size,
						rsp.max_hdr_size), 0);
		break;
	case FAB_EVENT_UNREACHABLE:
		con->unreachable = true;
		con->status = ev->status;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(con->fab);
		break;
	case FAB_EVENT_CONNECT_REQUEST:
	case FAB_EVENT_LISTENER_GONE:
		check(!"an event of a listener");
	}
}

void raw_step(struct raw *r, int timeout_ms)
{
	struct pollfd fds[RAW_MAX_CONS + 1];
	unsigned n = 0;
	struct fab_event ev;
	int rc;

	for (unsigned i = 0; i < RAW_MAX_CONS; i++) {
		struct raw_con *con = &r->cons[i];
		short events;

		if (!con->fab || !con->established || con->drained)
			continue;
		while ((rc = fab_dispatch(con->fab, 64)) > 0)
			timeout_ms = 0;
		if (rc == -ENOTCONN) {
			con->drained = true;
			timeout_ms = 0;
			continue;
		}
		if (fab_arm(con->fab, &events))
			timeout_ms = 0;
		else
			fds[n++] = (struct pollfd){ .fd = fab_conn_fd(con->fab), .events = events };
	}
	fds[n++] = (struct pollfd){ .fd = fab_cm_fd(r->cm), .events = POLLIN };
	check(poll(fds, n, timeout_ms) >= 0 || errno == EINTR);
	while ((rc = fab_cm_get_event(r->cm, &ev)) > 0)
		got_event(r, &ev);
	check_eq(rc, 0);
}

void raw_wait_closed(struct raw *r)
{
	for (unsigned i = 0; i < RAW_MAX_CONS; i++) {
		if (r->cons[i].fab && r->cons[i].established)
			raw_until(r, r->cons[i].drained);
	}
}

/* ---- life ---- */

struct raw *raw_create(const char *addr, unsigned cid_num)
{
	struct raw *r = calloc(1, sizeof(*r));
	char err[200];

	check(r && cid_num <= RAW_MAX_CONS);
	if (fab_addr_parse(addr, fab_provider_find("tcp"), RTRS_PORT, &r->addr, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	check_eq(fab_cm_create(&(struct fab_cm_conf){ .provider = r->addr.provider }, &r->cm), 0);
	check_eq(getrandom(&r->req.sess_uuid, RTRS_UUID_LEN, 0), RTRS_UUID_LEN);
	check_eq(getrandom(&r->req.paths_uuid, RTRS_UUID_LEN, 0), RTRS_UUID_LEN);
	r->req.cid_num = (uint16_t)cid_num;
	r->req.recon_cnt = 1;
	r->req.first_conn = true;
	return r;
}

/* Queues for any depth that a test asks for, known only after the first connection. */
static const struct fab_qp_attr qp_attr = {
	.max_send_wr = 4096,
	.max_recv_wr = 4096,
	.max_send_sge = 2,
};

int raw_connect(struct raw *r, unsigned cid)
{
	struct raw_con *con = &r->cons[cid < RAW_MAX_CONS ? cid : 0];
	struct rtrs_msg_conn_req m;
	int status;

	check(!con->fab);
	*con = (struct raw_con){ .raw = r, .cqe.done = wc_done, .info_cqe.done = info_done };
	check_eq(fab_conn_create(r->cm, con, &con->fab), 0);
	check_eq(fab_resolve(con->fab, NULL, &r->addr), 0);
	raw_until(r, con->resolved || con->unreachable);
	if (con->resolved) {
		if (!r->pd)
			check_eq(fab_pd_create(con->fab, &r->pd), 0);
		check_eq(fab_create_qp(con->fab, r->pd, &qp_attr), 0);
		r->req.cid = (uint16_t)cid;
		rtrs_conn_req_encode(&m, &r->req);
		check_eq(fab_connect(con->fab, &m, sizeof(m)), 0);
		raw_until(r, con->established || con->rejected || con->unreachable);
	}
	status = con->status;
	if (!con->established || status) {
		fab_conn_destroy(con->fab);
		con->fab = NULL;
		check(status < 0);
	}
	return status;
}

static void memory_init(struct raw *r)
{
	size_t len = (size_t)r->geom.queue_depth * r->geom.chunk_size;

	if (r->mem)
		return;
	r->mem = calloc(1, len);
	r->slots = calloc(r->geom.queue_depth, sizeof(*r->slots));
	r->rbufs = calloc(r->geom.queue_depth, sizeof(*r->rbufs));
	r->info = calloc(1, 65536 * 17);
	check(r->mem && r->slots && r->rbufs && r->info);
	r->mem_mr = fab_reg_mr(r->pd, r->mem, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	r->info_mr = fab_reg_mr(r->pd, r->info, 65536 * 17, IBV_ACCESS_LOCAL_WRITE);
	check(r->mem_mr && r->info_mr);
}

static void memory_fini(struct raw *r)
{
	if (!r->mem)
		return;
	fab_dereg_mr(r->mem_mr);
	fab_dereg_mr(r->info_mr);
	free(r->mem);
	free(r->slots);
	free(r->rbufs);
	free(r->info);
	r->mem = NULL;
}

bool raw_info(struct raw *r, const char *name)
{
	struct raw_con *con = &r->cons[0];
	struct rtrs_msg_info_req *m;
	struct ibv_sge sge;
	struct ibv_recv_wr rwr = { .wr_id = (uintptr_t)&con->info_cqe, .sg_list = &sge,
				   .num_sge = 1 };
	struct ibv_send_wr swr = { .wr_id = (uintptr_t)&con->cqe, .sg_list = &sge, .num_sge = 1,
				   .opcode = IBV_WR_SEND };
	const char *why = "";

	memory_init(r);
	m = (void *)(r->info + 65536 * 16);
	sge = (struct ibv_sge){ (uintptr_t)r->info, 65536 * 16, r->info_mr->lkey };
	check_eq(fab_post_recv(con->fab, &rwr), 0);
	rtrs_info_req_encode(m, name);
	sge = (struct ibv_sge){ (uintptr_t)m, sizeof(*m), r->info_mr->lkey };
	fab_post_send(con->fab, &swr);
	raw_until(r, con->info_done || con->drained);
	if (!con->info_done)
		return false;
	check_eq(rtrs_info_rsp_decode(r->info, con->info_len, &r->geom, r->rbufs, &why), 0);
	for (unsigned i = 0; i < r->req.cid_num; i++)
		post_empty(&r->cons[i], i ? 2 * r->geom.queue_depth : 2 * RTRS_SERVICE_CON_DEPTH);
	return true;
}

void raw_up(struct raw *r, const char *name)
{
	for (unsigned cid = 0; cid < r->req.cid_num; cid++)
		check_eq(raw_connect(r, cid), 0);
	check(raw_info(r, name));
}

void raw_down(struct raw *r)
{
	for (unsigned i = 0; i < RAW_MAX_CONS; i++) {
		if (r->cons[i].fab)
			fab_disconnect(r->cons[i].fab);
	}
	raw_wait_closed(r);
	for (unsigned i = 0; i < RAW_MAX_CONS; i++) {
		if (r->cons[i].fab)
			fab_conn_destroy(r->cons[i].fab);
		r->cons[i].fab = NULL;
	}
	for (unsigned i = 0; r->mem && i < r->geom.queue_depth; i++)
		r->slots[i].busy = false;
	r->req.recon_cnt++;
}

void raw_destroy(struct raw *r)
{
	raw_down(r);
	memory_fini(r);
	if (r->pd)
		fab_pd_destroy(r->pd);
	fab_cm_destroy(r->cm);
	free(r);
}

/* ---- requests ---- */

void raw_prepare(struct raw *r, struct rtrs_wr_req *w, unsigned cid, uint32_t buf_id,
		 enum rtrs_dir dir, const void *usr, uint16_t usr_len, uint32_t data_len)
{
	uint8_t *hdr = raw_data(r, buf_id) + r->geom.max_io_size;
	struct rtrs_req req = {
		.dir = dir,
		.data_len = data_len,
		.usr_len = usr_len,
		.has_desc = dir == RTRS_DIR_READ && data_len,
		.desc = { (uintptr_t)raw_data(r, buf_id), r->mem_mr->rkey, data_len },
	};
	bool has_data = dir == RTRS_DIR_WRITE && data_len;
	struct ibv_sge data = { (uintptr_t)raw_data(r, buf_id), data_len, r->mem_mr->lkey };
	struct ibv_sge sge = { (uintptr_t)hdr, 0, r->mem_mr->lkey };

	r->slots[buf_id].busy = true;
	memcpy(hdr, usr, usr_len);
	sge.length = (uint32_t)rtrs_req_encode(&req, hdr);
	rtrs_wr_request(w, (uintptr_t)&r->cons[cid].cqe, false, &r->geom, buf_id,
			&r->rbufs[buf_id], &req, has_data ? &data : NULL, &sge);
}

void raw_post(struct raw *r, unsigned cid, uint32_t buf_id, enum rtrs_dir dir, const void *usr,
	      uint16_t usr_len, uint32_t data_len)
{
	struct rtrs_wr_req w;

	check(!r->slots[buf_id].busy);
	raw_prepare(r, &w, cid, buf_id, dir, usr, usr_len, data_len);
	check_eq(fab_post_send(r->cons[cid].fab, &w.wr), 0);
}

int raw_wait(struct raw *r, uint32_t buf_id)
{
	raw_until(r, !r->slots[buf_id].busy);
	return r->slots[buf_id].status;
}

int raw_sess_info(struct raw *r, struct rnbd_sess_info *info)
{
	struct rnbd_msg_sess_info m;
	int status;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, info);
	raw_post(r, 0, 0, RTRS_DIR_READ, &m, sizeof(m), sizeof(m));
	status = raw_wait(r, 0);
	if (!status)
		check_eq(rnbd_sess_info_decode(raw_data(r, 0), sizeof(m), info), 0);
	return status;
}

void raw_post_open(struct raw *r, uint32_t buf_id, const char *name, enum rnbd_access_mode mode)
{
	struct rnbd_msg_open m;

	check_eq(rnbd_open_encode(&m, name, mode), 0);
	raw_post(r, 0, buf_id, RTRS_DIR_READ, &m, sizeof(m), sizeof(struct rnbd_msg_open_rsp));
}

int raw_open(struct raw *r, const char *name, enum rnbd_access_mode mode,
	     struct rnbd_dev_info *info)
{
	int status;

	raw_post_open(r, 0, name, mode);
	status = raw_wait(r, 0);
	if (!status)
		check_eq(rnbd_open_rsp_decode(raw_data(r, 0), sizeof(struct rnbd_msg_open_rsp), info),
			 0);
	return status;
}

int raw_close(struct raw *r, uint32_t device_id)
{
	struct rnbd_msg_close m;

	rnbd_close_encode(&m, device_id);
	raw_post(r, 0, 0, RTRS_DIR_WRITE, &m, sizeof(m), 0);
	return raw_wait(r, 0);
}

void raw_post_io(struct raw *r, unsigned cid, uint32_t buf_id, enum rnbd_io_op op, uint32_t flags,
		 uint64_t off, uint32_t len)
{
	bool has_data = op == RNBD_OP_READ || op == RNBD_OP_WRITE;
	bool is_read = op == RNBD_OP_READ || op == RNBD_OP_FLUSH;
	const struct rnbd_io io = {
		.op = op,
		.flags = flags,
		.sector = off >> RNBD_SECTOR_SHIFT,
		.bi_size = len,
	};
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	raw_post(r, cid, buf_id, is_read ? RTRS_DIR_READ : RTRS_DIR_WRITE, &m, sizeof(m),
		 has_data ? len : 0);
}

int raw_io(struct raw *r, unsigned cid, uint32_t buf_id, enum rnbd_io_op op, uint32_t flags,
	   uint64_t off, uint32_t len)
{
	raw_post_io(r, cid, buf_id, op, flags, off, len);
	return raw_wait(r, buf_id);
}
