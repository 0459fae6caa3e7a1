/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the server: its memory, and the thread that executes requests with the lock of the mock HCA.
 * Anything the client does wrong ends the program. */
#include <errno.h>

#include "../thread/thread.h"
#include "cleanup.h"
#include "mock-hca.h"
#include "mock-server.h"
#include "rnbd-msg.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "util.h"

struct request {
	struct list link;
	struct mock_conn *conn;
	uint32_t id, off, byte_len;
};

/* All with mock_lock. */
static struct {
	pthread_cond_t work;
	pthread_t thread;
	bool stop, holds;
	struct mock_server_conf conf;
	struct rtrs_geom geom;
	uint8_t *disk, *chunks;
	uint32_t *chunk_keys;
	struct list requests;
	uint8_t boot_id;
	unsigned long answers;
	unsigned seed;
} w = { .work = PTHREAD_COND_INITIALIZER };

/* ---- the thread ---- */

/* What a READ asks for. */
static void place(struct mock_conn *c, const struct rtrs_req *req, const void *data, uint32_t len)
{
	mock_peer_place(c, req->desc.key, req->desc.addr, data, len);
}

static int serve_io(struct mock_conn *c, const struct rtrs_req *req, const uint8_t *chunk)
{
	struct rnbd_io io;

	check(!rnbd_io_decode(req->usr, req->usr_len, req->data_len, req->dir == RTRS_DIR_READ,
			      &io));
	if (io.op == RNBD_OP_FLUSH)
		return 0;
	check(range_ok(io.sector * 512, io.bi_size, w.conf.disk_size));
	w.answers++;
	switch (io.op) {
	case RNBD_OP_READ:
		place(c, req, w.disk + io.sector * 512, io.bi_size);
		return 0;
	case RNBD_OP_WRITE:
		memcpy(w.disk + io.sector * 512, chunk, io.bi_size);
		return 0;
	case RNBD_OP_WRITE_ZEROES:
		memset(w.disk + io.sector * 512, 0, io.bi_size);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int serve_user(struct mock_conn *c, const struct rtrs_req *req)
{
	struct rnbd_sess_info info;
	struct rnbd_msg_sess_info info_rsp;
	struct rnbd_msg_open_rsp open_rsp;
	struct rnbd_dev_info dev = {
		.nsectors = w.conf.disk_size / 512, .max_write_zeroes_sectors = 1 << 20,
		.physical_block_size = 4096, .fua = !w.conf.no_fua, .writeback = true,
		.logical_block_size = w.conf.block ? w.conf.block : 512,
	};

	switch (rnbd_msg_type(req->usr, req->usr_len)) {
	case RNBD_MSG_SESS_INFO:
		info = (struct rnbd_sess_info){ .ver = 2, .ext = { .valid = true,
			.features = RNBD_EXT_ALL, .boot_id = { w.boot_id } } };
		rnbd_sess_info_encode(&info_rsp, RNBD_MSG_SESS_INFO_RSP, &info);
		place(c, req, &info_rsp, sizeof(info_rsp));
		return 0;
	case RNBD_MSG_OPEN:
		rnbd_open_rsp_encode(&open_rsp, &dev);
		place(c, req, &open_rsp, sizeof(open_rsp));
		return 0;
	case RNBD_MSG_PROBE:
	case RNBD_MSG_CLOSE:
		return 0;
	}
	check(!"unknown user message");
	return 0;
}

static void answer(struct mock_conn *c, unsigned id, int status, bool invalidated)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .wc_flags = IBV_WC_WITH_IMM,
			     .imm_data = rtrs_imm_io_rsp(id, status, invalidated) };
	struct rtrs_msg_rkey_rsp rkey;

	if (w.conf.new_rkey) {
		rtrs_rkey_rsp_encode(&rkey, (uint16_t)id, ++w.chunk_keys[id]);
		wc.opcode = IBV_WC_RECV;
		wc.byte_len = sizeof(rkey);
	}
	mock_peer_send(c, wc, &rkey);
}

static void serve(struct request *r)
{
	uint8_t *chunk = w.chunks + (size_t)r->id * w.geom.chunk_size;
	uint8_t copy[RTRS_HDR_MAX];
	struct ibv_wc taken = { 0 };
	struct rtrs_req req;
	const char *why;
	uint32_t start, len;
	int status;

	check(!rtrs_req_extent(&w.geom, chunk, r->off, r->byte_len, &start, &len, &why));
	memcpy(copy, chunk + start, len);
	check(!rtrs_req_decode(&w.geom, copy, start, len, r->off, r->byte_len, &req, &why));
	status = rnbd_msg_type(req.usr, req.usr_len) == RNBD_MSG_IO ?
			 serve_io(r->conn, &req, chunk) : serve_user(r->conn, &req);
	if (req.need_inval && rand_r(&w.seed) % 2) {
		taken = mock_peer_inv(r->conn, req.desc.key);
		check(taken.status == IBV_WC_SUCCESS);
		mock_peer_send(r->conn, taken, NULL);
	}
	answer(r->conn, r->id, status, taken.wc_flags != 0);
}

static struct request *pick_request(void)
{
	unsigned skip = (unsigned)rand_r(&w.seed) % 4;
	struct request *r = list_entry(w.requests.next, struct request, link);

	while (skip-- && r->link.next != &w.requests)
		r = list_entry(r->link.next, struct request, link);
	return r;
}

static void *server(void *arg)
{
	pthread_mutex_lock(&mock_lock);
	while (!w.stop) {
		struct request *r;

		if (list_empty(&w.requests) || w.holds) {
			pthread_cond_wait(&w.work, &mock_lock);
			continue;
		}
		r = pick_request();
		list_del(&r->link);
		serve(r);
		free(r);
		pthread_mutex_unlock(&mock_lock);	/* let others in between */
		pthread_mutex_lock(&mock_lock);
	}
	pthread_mutex_unlock(&mock_lock);
	return NULL;
}

/* ---- what arrives ---- */

static void info_arrived(struct mock_conn *c)
{
	struct rtrs_msg_info_rsp *rsp = calloc(1, rtrs_info_rsp_len(w.conf.queue_depth));
	struct rtrs_region *regions = calloc(w.conf.queue_depth, sizeof(*regions));
	struct ibv_wc wc = { .opcode = IBV_WC_RECV };

	check(rsp && regions);
	for (unsigned i = 0; i < w.conf.queue_depth; i++)
		regions[i] = (struct rtrs_region){ (uintptr_t)w.chunks +
						   (size_t)i * w.geom.chunk_size, w.chunk_keys[i],
						   w.geom.chunk_size };
	rtrs_info_rsp_encode(rsp, regions, w.conf.queue_depth);
	wc.byte_len = (uint32_t)rtrs_info_rsp_len(w.conf.queue_depth);
	mock_peer_send(c, wc, rsp);
	free(regions);
	free(rsp);
}

static void request_arrived(struct mock_conn *c, const struct ibv_send_wr *wr)
{
	uint32_t payload = rtrs_imm_payload(wr->imm_data);
	struct request *r = calloc(1, sizeof(*r));
	uint8_t *to = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;

	check(r && rtrs_imm_type(wr->imm_data) == RTRS_IO_REQ_IMM);
	r->conn = c;
	rtrs_imm_io_req_split(&w.geom, payload, &r->id, &r->off);
	check(r->id < w.conf.queue_depth);
	check(wr->wr.rdma.rkey == w.chunk_keys[r->id]);
	for (int i = 0; i < wr->num_sge; i++) {
		check(range_ok((uint64_t)(to - w.chunks), wr->sg_list[i].length,
			       (uint64_t)w.conf.queue_depth * w.geom.chunk_size));
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
		r->byte_len += wr->sg_list[i].length;
	}
	list_add_tail(&w.requests, &r->link);
	pthread_cond_signal(&w.work);
}

static void arrived(struct mock_conn *c, const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_SEND)
		info_arrived(c);
	else if (wr->num_sge)		/* else a heartbeat */
		request_arrived(c, wr);
}

static void lost(struct mock_conn *c)
{
	struct request *r, *tmp;

	list_for_each_safe(r, tmp, &w.requests, link) {
		if (r->conn == c) {
			list_del(&r->link);
			free(r);
		}
	}
}

static size_t accept_all(void *private_data)
{
	const struct rtrs_conn_rsp rsp = {
		.queue_depth = (uint16_t)w.conf.queue_depth, .max_io_size = w.conf.max_io_size,
		.max_hdr_size = 4096, .new_rkey = w.conf.new_rkey,
	};

	rtrs_conn_rsp_encode(private_data, &rsp);
	return sizeof(struct rtrs_msg_conn_rsp);
}

static const struct mock_peer peer = { .accept = accept_all, .arrived = arrived, .lost = lost };

/* ---- the test's side ---- */

void mock_server_start(const struct mock_server_conf *conf)
{
	mock_init();
	mock.attr.max_qp_wr = MOCK_QUEUE;
	mock.attr.caps = FAB_CAP_DMA_LKEY | FAB_CAP_REREG_MR |
			 (conf->type_1 ? FAB_CAP_MW_TYPE_1 : 0) |
			 (conf->type_2 ? FAB_CAP_MW_TYPE_2B : 0);
	mock.peer = &peer;
	w.conf = *conf;
	list_init(&w.requests);
	check(!rtrs_geom_init(&w.geom, conf->queue_depth, conf->max_io_size, 4096));
	w.disk = calloc(1, conf->disk_size);
	w.chunks = calloc(conf->queue_depth, w.geom.chunk_size);
	w.chunk_keys = calloc(conf->queue_depth, sizeof(*w.chunk_keys));
	check(w.disk && w.chunks && w.chunk_keys);
	for (unsigned i = 0; i < conf->queue_depth; i++)
		w.chunk_keys[i] = i << 8;
	w.stop = w.holds = false;
	if (!fab_provider_find("mock"))
		fab_provider_register(&fab_mock);
	check(!pthread_create(&w.thread, NULL, server, NULL));
}

void mock_server_stop(void)
{
	pthread_mutex_lock(&mock_lock);
	w.stop = true;
	pthread_cond_signal(&w.work);
	pthread_mutex_unlock(&mock_lock);
	pthread_join(w.thread, NULL);
	check(list_empty(&w.requests));
	mock_fini();
	free(w.disk);
	free(w.chunks);
	free(w.chunk_keys);
}

void mock_server_addr(struct fab_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->provider = &fab_mock;
	addr->ss.ss_family = AF_INET;
	addr->len = sizeof(struct sockaddr_storage);
}

void mock_server_hold(bool hold)
{
	LOCK_SCOPE(&mock_lock);
	w.holds = hold;
	pthread_cond_signal(&w.work);
}

unsigned mock_server_waiting(void)
{
	struct request *r;
	unsigned n = 0;

	LOCK_SCOPE(&mock_lock);
	list_for_each(r, &w.requests, link)
		n++;
	return n;
}

void mock_server_answer(struct fab_conn *conn, unsigned id)
{
	LOCK_SCOPE(&mock_lock);
	answer(container_of(conn, struct mock_conn, fab), id, 0, false);
}

unsigned long mock_server_answers(void)
{
	LOCK_SCOPE(&mock_lock);
	return w.answers;
}

void mock_server_reboot(void)
{
	LOCK_SCOPE(&mock_lock);
	w.boot_id++;
}
