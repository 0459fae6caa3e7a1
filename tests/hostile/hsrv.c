/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns connections, one domain and its memory, and the thread that polls.  Everything is under the
 * lock but waiting.  How it ends: hsrv_stop() waits until the last connection has drained.  A failed
 * connection drains and is forgotten; what cannot happen ends the test. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "hsrv.h"
#include "rnbd-msg.h"
#include "rtrs-imm.h"
#include "rtrs-wr.h"
#include "thread.h"
#include "util.h"

#define DEPTH 8u
#define CHUNK (HSRV_IO + 4096u)
#define CONS 16
#define QUEUE 128
#define LOCAL IBV_ACCESS_LOCAL_WRITE

struct hsrv_con {
	struct hsrv *srv;
	struct fab_conn *fab;		/* NULL: free */
	uint16_t cid;
	bool info_seen, failed;
	struct fab_cqe recv_cqe, send_cqe;
	uint8_t info[sizeof(struct rtrs_msg_info_req)];
};

struct hsrv {
	pthread_mutex_t lock;
	pthread_t thread;
	int wake_fd;
	bool stopping;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_pd *pd;
	struct ibv_mr *own_mr, *chunks_mr;
	struct rtrs_geom geom;
	unsigned lives;
	struct hsrv_con cons[CONS];
	/* of READs: the last, the one before it; and how the next one is answered */
	struct rtrs_desc reads[2];
	uint64_t highest_addr;
	struct hsrv_con *read_con;
	enum hsrv_answer how;
	struct hsrv_attack attack;

	uint8_t info_rsp[sizeof(struct rtrs_msg_info_rsp) + sizeof(struct rtrs_sg_desc)];
	uint8_t attack_bytes[2 * HSRV_IO];
	uint8_t rsp_bytes[DEPTH][HSRV_IO];
	uint8_t chunks[DEPTH][CHUNK];
};

/* ---- the attack ---- */

static void attack_wr(struct hsrv *s, const struct hsrv_attack *a, struct ibv_send_wr *wr,
		      struct ibv_sge *sge)
{
	const struct rtrs_desc *desc = &s->reads[a->before_last];

	check(desc->len);
	*sge = (struct ibv_sge){ .addr = (uintptr_t)s->attack_bytes,
				 .length = desc->len + a->len_add, .lkey = s->own_mr->lkey };
	check(sge->length <= sizeof(s->attack_bytes));
	*wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&s->read_con->send_cqe,
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = sge,
		.num_sge = 1,
		.wr.rdma = { (a->addr ? a->addr : desc->addr) + (uint64_t)a->addr_add,
			     desc->key ^ a->key_xor },
	};
}

/* ---- requests ---- */

static const struct rnbd_dev_info disk = {
	.nsectors = HSRV_DISK / RNBD_SECTOR_SIZE,
	.max_hw_sectors = HSRV_IO / RNBD_SECTOR_SIZE,
	.physical_block_size = RNBD_SECTOR_SIZE,
	.logical_block_size = RNBD_SECTOR_SIZE,
	.max_segments = 1,
};

/* Returns whether it was a READ of the disk. */
static bool execute(const struct rtrs_req *req, uint8_t *data)
{
	const struct rnbd_sess_info info = { .ver = RNBD_PROTO_VER_MAJOR };

	switch (rnbd_msg_type(req->usr, req->usr_len)) {
	case RNBD_MSG_SESS_INFO:
		rnbd_sess_info_encode((struct rnbd_msg_sess_info *)data, RNBD_MSG_SESS_INFO_RSP, &info);
		return false;
	case RNBD_MSG_OPEN:
		rnbd_open_rsp_encode((struct rnbd_msg_open_rsp *)data, &disk);
		return false;
	case RNBD_MSG_IO:
		memset(data, HSRV_DATA, req->data_len);
		return req->has_desc;
	default:
		return false;
	}
}

static void answer(struct hsrv_con *con, const struct rtrs_req *req, unsigned buf_id, bool is_read)
{
	struct hsrv *s = con->srv;
	enum hsrv_answer how = is_read ? s->how : HSRV_GOOD;
	struct rtrs_rsp rsp = {
		.msg_id = buf_id,
		.status = how == HSRV_ERROR ? -EIO : 0,
		.req = req,
		.data = { (uintptr_t)s->rsp_bytes[buf_id], req->data_len, s->own_mr->lkey },
	};
	struct ibv_send_wr *head, *last, attack;
	struct rtrs_wr_rsp w;
	struct ibv_sge sge;

	head = rtrs_wr_response(&w, (uintptr_t)&con->send_cqe, &rsp);
	if (how >= HSRV_ATTACK_BEFORE)
		attack_wr(s, &s->attack, &attack, &sge);
	if (how == HSRV_ATTACK_BEFORE) {
		attack.next = head;
		head = &attack;
	} else if (how == HSRV_ATTACK_BEHIND) {
		for (last = head; last->next; last = last->next)
			continue;
		last->next = &attack;
	}
	if (is_read)
		s->how = HSRV_GOOD;
	fab_post_send(con->fab, head);	/* an error is told by polling */
}

static void on_request(struct hsrv_con *con, const struct ibv_wc *wc)
{
	struct hsrv *s = con->srv;
	uint32_t buf_id, off, start, len;
	uint8_t copy[RTRS_HDR_MAX];
	struct rtrs_req req;
	const char *why;
	bool is_read;

	rtrs_imm_io_req_split(&s->geom, rtrs_imm_payload(wc->imm_data), &buf_id, &off);
	check(buf_id < DEPTH);
	check(!rtrs_req_extent(&s->geom, s->chunks[buf_id], off, wc->byte_len, &start, &len, &why));
	memcpy(copy, s->chunks[buf_id] + start, len);
	check(!rtrs_req_decode(&s->geom, copy, start, len, off, wc->byte_len, &req, &why));
	if (req.has_desc)
		s->highest_addr = MAX(s->highest_addr, req.desc.addr);
	is_read = execute(&req, s->rsp_bytes[buf_id]);
	if (is_read) {
		s->reads[1] = s->reads[0];
		s->reads[0] = req.desc;
		s->read_con = con;
		if (s->how == HSRV_KEEPS_KEY)
			req.need_inval = false;
	}
	answer(con, &req, buf_id, is_read);
}

/* ---- connections ---- */

static void post_empty(struct hsrv_con *con, unsigned n)
{
	const struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe };

	while (n--)
		fab_post_recv(con->fab, &wr);
}

static void on_info(struct hsrv_con *con)
{
	struct hsrv *s = con->srv;
	const struct rtrs_region region = { (uintptr_t)s->chunks, s->chunks_mr->rkey,
					    sizeof(s->chunks) };
	struct ibv_sge sge = { (uintptr_t)s->info_rsp, sizeof(s->info_rsp), s->own_mr->lkey };
	const struct ibv_send_wr wr = { .wr_id = (uintptr_t)&con->send_cqe, .sg_list = &sge,
					.num_sge = 1, .opcode = IBV_WR_SEND };

	con->info_seen = true;
	rtrs_info_rsp_encode((struct rtrs_msg_info_rsp *)s->info_rsp, &region, 1);
	for (unsigned i = 0; i < CONS; i++) {
		if (s->cons[i].fab && !s->cons[i].failed)
			post_empty(&s->cons[i], 2 * DEPTH);
	}
	fab_post_send(con->fab, &wr);
}

static void wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct hsrv_con *con = container_of(cqe, struct hsrv_con, recv_cqe);
	struct ibv_send_wr ack;
	unsigned type;

	if (wc->status != IBV_WC_SUCCESS) {
		con->failed = true;
		return;
	}
	if (!con->cid && !con->info_seen) {
		on_info(con);
		return;
	}
	post_empty(con, 1);
	type = rtrs_imm_type(wc->imm_data);
	if (type == RTRS_IO_REQ_IMM) {
		on_request(con, wc);
	} else if (type == RTRS_HB_MSG_IMM) {
		rtrs_wr_heartbeat(&ack, (uintptr_t)&con->send_cqe, RTRS_HB_ACK_IMM);
		fab_post_send(fab, &ack);
	}
}

static void wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		container_of(cqe, struct hsrv_con, send_cqe)->failed = true;
}

static void make_memory(struct hsrv *s, struct fab_conn *fab)
{
	if (s->pd)
		return;
	check(!fab_pd_create(fab, &s->pd));
	s->own_mr = fab_reg_mr(s->pd, s, sizeof(*s), LOCAL);
	s->chunks_mr = fab_reg_mr(s->pd, s->chunks, sizeof(s->chunks), LOCAL | IBV_ACCESS_REMOTE_WRITE);
	check(s->own_mr && s->chunks_mr);
}

static void on_connect(struct hsrv *s, const struct fab_event *ev)
{
	const struct fab_qp_attr attr = { .max_send_wr = QUEUE, .max_recv_wr = QUEUE,
					  .max_send_sge = 1 };
	const struct rtrs_conn_rsp rsp = { .queue_depth = DEPTH, .max_io_size = HSRV_IO,
					   .max_hdr_size = CHUNK - HSRV_IO };
	struct hsrv_con *con = s->cons;
	struct rtrs_msg_conn_rsp m;
	struct rtrs_conn_req req;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	const char *why;

	while (con->fab)
		check(++con < s->cons + CONS);
	check(!rtrs_conn_req_decode(ev->private_data, ev->private_data_len, &req, &why));
	make_memory(s, ev->conn);
	*con = (struct hsrv_con){ .srv = s, .fab = ev->conn, .cid = req.cid };
	con->recv_cqe.done = wc_recv;
	con->send_cqe.done = wc_send;
	fab_conn_set_context(con->fab, con);
	check(!fab_create_qp(con->fab, s->pd, &attr));
	if (!con->cid) {
		s->lives++;
		sge = (struct ibv_sge){ (uintptr_t)con->info, sizeof(con->info), s->own_mr->lkey };
		wr.wr_id = (uintptr_t)&con->recv_cqe;
		check(!fab_post_recv(con->fab, &wr));
	}
	rtrs_conn_rsp_encode(&m, &rsp);
	if (fab_accept(con->fab, &m, sizeof(m))) {
		fab_conn_destroy(con->fab);
		con->fab = NULL;
	}
}

/* ---- the thread ---- */

/* Fills @pfd unless the connection has gone. */
static bool con_poll(struct hsrv_con *con, struct pollfd *pfd)
{
	struct hsrv *s = con->srv;

	if (s->stopping)
		fab_disconnect(con->fab);
	for (;;) {
		int n = fab_dispatch(con->fab, QUEUE);

		if (n == -ENOTCONN) {
			fab_conn_destroy(con->fab);
			con->fab = NULL;
			if (s->read_con == con)
				s->read_con = NULL;
			return false;
		}
		pfd->fd = fab_conn_fd(con->fab);
		if (!n && !fab_arm(con->fab, &pfd->events))
			return true;
	}
}

/* Returns what to wait for. */
static nfds_t work(struct hsrv *s, struct pollfd *fds)
{
	struct fab_event ev;
	nfds_t n = 2;

	while (fab_cm_get_event(s->cm, &ev) == 1) {
		if (ev.type == FAB_EVENT_CONNECT_REQUEST)
			on_connect(s, &ev);
		else if (ev.type == FAB_EVENT_DISCONNECTED)
			fab_disconnect(ev.conn);
	}
	fds[0] = (struct pollfd){ .fd = fab_cm_fd(s->cm), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = s->wake_fd, .events = POLLIN };
	for (unsigned i = 0; i < CONS; i++) {
		if (s->cons[i].fab)
			n += con_poll(&s->cons[i], &fds[n]);
	}
	return n;
}

static void *run(void *arg)
{
	struct pollfd fds[2 + CONS];
	struct hsrv *s = arg;
	eventfd_t count;
	nfds_t n;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		n = work(s, fds);
		if (s->stopping && n == 2)
			break;
		pthread_mutex_unlock(&s->lock);
		check(poll(fds, n, -1) >= 0 || errno == EINTR);
		if (fds[1].revents)
			eventfd_read(s->wake_fd, &count);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- from outside ---- */

struct hsrv *hsrv_start(const struct fab_addr *addr)
{
	struct hsrv *s = calloc(1, sizeof(*s));

	check(s);
	memset(s->attack_bytes, HSRV_ATTACK, sizeof(s->attack_bytes));
	s->wake_fd = eventfd(0, EFD_CLOEXEC);
	check(s->wake_fd >= 0 && !pthread_mutex_init(&s->lock, NULL));
	check(!rtrs_geom_init(&s->geom, DEPTH, HSRV_IO, CHUNK - HSRV_IO));
	check(!fab_cm_create(&(struct fab_cm_conf){ .provider = addr->provider }, &s->cm));
	check(!fab_listen(s->cm, addr, &s->listener));
	check(!pthread_create(&s->thread, NULL, run, s));
	return s;
}

void hsrv_addr(struct hsrv *s, struct fab_addr *addr)
{
	fab_listener_addr(s->listener, addr);
}

void hsrv_stop(struct hsrv *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	eventfd_write(s->wake_fd, 1);
	pthread_join(s->thread, NULL);
	if (s->pd) {
		fab_dereg_mr(s->own_mr);
		fab_dereg_mr(s->chunks_mr);
		fab_pd_destroy(s->pd);
	}
	fab_listener_destroy(s->listener);
	fab_cm_destroy(s->cm);
	close(s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void hsrv_answer_next(struct hsrv *s, enum hsrv_answer how, const struct hsrv_attack *attack)
{
	LOCK_SCOPE(&s->lock);
	s->how = how;
	s->attack = *attack;
}

void hsrv_attack_now(struct hsrv *s, const struct hsrv_attack *attack)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	LOCK_SCOPE(&s->lock);
	check(s->read_con && !s->read_con->failed);
	attack_wr(s, attack, &wr, &sge);
	check(!fab_post_send(s->read_con->fab, &wr));
	eventfd_write(s->wake_fd, 1);	/* it arms again */
}

uint64_t hsrv_highest_addr(struct hsrv *s)
{
	uint64_t addr;

	LOCK_SCOPE(&s->lock);
	addr = s->highest_addr;
	s->highest_addr = 0;
	return addr;
}

unsigned hsrv_lives(struct hsrv *s)
{
	LOCK_SCOPE(&s->lock);
	return s->lives;
}
