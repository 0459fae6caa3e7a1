/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths by hand.  Owns the connection manager and all paths of one case; one thread; ends with the
 * process.  What the server does not do in time, or what the fabric refuses, ends the case. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "hostile.h"
#include "rtrs-imm.h"
#include "rtrs-wr.h"

#define INFO_LEN (1u << 20)
#define STAGING_LEN (8u << 20)
#define KEYS_LEN (HCONS_MAX * HRECVS * sizeof(struct rtrs_msg_rkey_rsp))
#define MEM_LEN (INFO_LEN + STAGING_LEN + HRESULT_LEN + KEYS_LEN)
#define PATHS_MAX 160
#define CON0_RECVS 1024

static struct fab_cm *cm;
static struct hpath *paths[PATHS_MAX];
static unsigned npaths;
static int also_fd = -1;

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("    ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	_exit(1);
}

bool over_tcp(void)
{
	return hrun.server.provider == fab_provider_find("tcp");
}

void skip(void)
{
	_exit(HSKIPPED);
}

uint64_t hnow_ms(void)
{
	return clock_now_ms();
}

uint64_t hdeadline(void)
{
	return hnow_ms() + hrun.timeout_ms;
}

const char *outcome_name(int outcome)
{
	static char text[64];

	if (outcome == HCLOSED)
		return "path closed";
	if (outcome == HANY)
		return "an answer or the end of the path";
	snprintf(text, sizeof(text), "%s (%d)", outcome ? strerror(-outcome) : "success", outcome);
	return text;
}

void expect_outcome(int got, int want)
{
	char text[64];

	if (got == want || want == HANY)
		return;
	snprintf(text, sizeof(text), "%s", outcome_name(got));
	die("%s, expected: %s", text, outcome_name(want));
}

/* ---- events and completions ---- */

static void con_event(const struct fab_event *ev)
{
	struct hcon *con = fab_conn_context(ev->conn);
	struct rtrs_conn_rsp rsp;
	const char *why;

	con->pdata_len = ev->private_data_len;
	memcpy(con->pdata, ev->private_data, ev->private_data_len);
	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		con->state = H_RESOLVED;
		break;
	case FAB_EVENT_ESTABLISHED:
		con->state = H_UP;
		break;
	case FAB_EVENT_REJECTED:
		con->state = H_REFUSED;
		if (rtrs_conn_rsp_decode(con->pdata, con->pdata_len, true, &rsp, &why))
			die("rejected with %zu bytes: %s", con->pdata_len, why);
		con->status = rsp.status;
		break;
	case FAB_EVENT_UNREACHABLE:
		con->state = H_UNREACHABLE;
		con->status = ev->status;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(ev->conn);
		break;
	default:
		die("event %d for a client", ev->type);
	}
}

static struct rtrs_msg_rkey_rsp *key_recv(struct hpath *p, unsigned cid, unsigned turn)
{
	return &p->keys[cid * HRECVS + turn % HRECVS];
}

static void post_recvs(struct hpath *p, unsigned cid, unsigned n)
{
	struct hcon *con = &p->cons[cid];

	while (n--) {
		struct ibv_sge sge = { (uintptr_t)key_recv(p, cid, con->recvs_posted++),
				       sizeof(struct rtrs_msg_rkey_rsp), p->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uintptr_t)con, .sg_list = &sge,
					  .num_sge = p->new_rkey ? 1 : 0 };

		if (fab_post_recv(con->conn, &wr))
			return;		/* the connection has failed: polling tells */
	}
}

static void heartbeat(struct hpath *p, unsigned cid)
{
	struct ibv_send_wr wr;

	rtrs_wr_heartbeat(&wr, (uintptr_t)&p->cons[cid], RTRS_HB_ACK_IMM);
	if (!p->mute)
		fab_post_send(p->cons[cid].conn, &wr);
}

static void answer_arrived(struct hpath *p, uint32_t payload, const struct rtrs_msg_rkey_rsp *key)
{
	struct hanswer *answer;
	uint32_t msg_id;
	const char *why;
	int status;

	rtrs_imm_io_rsp_split(payload, &msg_id, &status);
	if (msg_id >= HANSWERS)
		die("an answer to message %u", msg_id);
	answer = &p->answers[msg_id];
	answer->n++;
	answer->status = status;
	if (!!key != p->new_rkey || msg_id >= p->geom.queue_depth)
		die("an answer to message %u with%s a key", msg_id, key ? "" : "out");
	answer->old_rkey = p->rbufs[msg_id].rkey;
	if (key && rtrs_rkey_rsp_decode(key, sizeof(*key), &p->geom, msg_id,
					&p->rbufs[msg_id].rkey, &why))
		die("RKEY_RSP: %s", why);
}

/* @key: what came with it, or NULL. */
static void con_immediate(struct hpath *p, unsigned cid, __be32 imm,
			  const struct rtrs_msg_rkey_rsp *key)
{
	switch (rtrs_imm_type(imm)) {
	case RTRS_IO_RSP_IMM:
	case RTRS_IO_RSP_W_INV_IMM:
		answer_arrived(p, rtrs_imm_payload(imm), key);
		break;
	case RTRS_HB_MSG_IMM:
		p->hb_msgs++;
		heartbeat(p, cid);
		break;
	case RTRS_HB_ACK_IMM:
		p->hb_acks++;
		break;
	default:
		die("immediate %#x from the server", be32toh(imm));
	}
	post_recvs(p, cid, 1);
}

static void info_arrived(struct hpath *p, uint32_t len)
{
	const char *why;

	if (p->info_done)
		die("a second SEND from the server");
	if (rtrs_info_rsp_decode(p->info_buf, len, &p->geom, p->rbufs, &why))
		die("INFO_RSP: %s", why);
	p->info_done = true;
	for (unsigned cid = 0; cid < p->cid_num && cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP)
			post_recvs(p, cid, cid ? 2 * p->geom.queue_depth : CON0_RECVS);
	}
}

static void con_completion(struct hpath *p, unsigned cid, const struct ibv_wc *wc)
{
	const struct rtrs_msg_rkey_rsp *key;

	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		key = key_recv(p, cid, p->cons[cid].recvs_met++);
		if (wc->opcode != IBV_WC_RECV)
			key = NULL;
		else if (wc->byte_len != sizeof(*key))
			die("%u bytes with an immediate", wc->byte_len);
		con_immediate(p, cid, wc->imm_data, key);
	} else if (wc->opcode == IBV_WC_RECV) {
		info_arrived(p, wc->byte_len);
	}
}

static bool con_poll(struct hpath *p, unsigned cid)
{
	struct hcon *con = &p->cons[cid];
	struct ibv_wc wc[16];
	int n = fab_poll(con->conn, wc, ARRAY_SIZE(wc));

	if (n == -ENOTCONN) {
		con->state = H_CLOSED;
		return true;
	}
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			con_completion(p, cid, &wc[i]);
	}
	return n > 0;
}

static bool work(struct pollfd *fds, unsigned *nfds)
{
	bool progress = false;
	struct fab_event ev;

	while (fab_cm_get_event(cm, &ev) == 1) {
		con_event(&ev);
		progress = true;
	}
	fds[0] = (struct pollfd){ .fd = fab_cm_fd(cm), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = also_fd, .events = POLLIN };
	*nfds = 2;
	for (unsigned i = 0; i < npaths * HCONS_MAX; i++) {
		struct hcon *con = &paths[i / HCONS_MAX]->cons[i % HCONS_MAX];
		struct pollfd *pfd = &fds[*nfds];

		if (con->state != H_UP || con->path->idle)
			continue;
		progress |= con_poll(con->path, i % HCONS_MAX);
		if (con->state != H_UP)
			continue;
		pfd->fd = fab_conn_fd(con->conn);
		progress |= fab_arm(con->conn, &pfd->events) == 1;
		++*nfds;
	}
	return progress;
}

void hpump_also(int fd)
{
	also_fd = fd;
}

bool hpump(uint64_t deadline_ms)
{
	static struct pollfd fds[2 + PATHS_MAX * HCONS_MAX];
	uint64_t now = hnow_ms();
	unsigned nfds;

	if (work(fds, &nfds))
		return true;
	if (now >= deadline_ms)
		return false;
	poll(fds, nfds, (int)MIN(deadline_ms - now, (uint64_t)1000));
	return true;
}

/* ---- set-up ---- */

static void random_bytes(void *p, size_t len)
{
	expect(getrandom(p, len, 0) == (ssize_t)len);
}

void kit_forget(void)
{
	cm = NULL;
	npaths = 0;
}

struct hpath *hpath_new(void)
{
	struct hpath *p = calloc(1, sizeof(*p));

	expect(p && npaths < PATHS_MAX);
	if (!cm)
		expect(!fab_cm_create(&(struct fab_cm_conf){ .provider = hrun.server.provider }, &cm));
	random_bytes(p->sess_uuid, RTRS_UUID_LEN);
	random_bytes(p->paths_uuid, RTRS_UUID_LEN);
	snprintf(p->name, sizeof(p->name), "hostile-%d-%u", (int)getpid(), npaths);
	p->cid_num = 2;
	p->recon_cnt = 1;
	p->mem = malloc(MEM_LEN);
	expect(p->mem);
	p->info_buf = p->mem;
	p->result = p->mem + INFO_LEN + STAGING_LEN;
	p->keys = (void *)(p->result + HRESULT_LEN);
	for (unsigned i = 0; i < HCONS_MAX; i++)
		p->cons[i].path = p;
	paths[npaths++] = p;
	return p;
}

void hpath_conn_req(const struct hpath *p, unsigned cid, struct rtrs_msg_conn_req *m)
{
	struct rtrs_conn_req req = { .cid = (uint16_t)cid, .cid_num = p->cid_num,
				     .recon_cnt = p->recon_cnt, .first_conn = true };

	memcpy(req.sess_uuid, p->sess_uuid, RTRS_UUID_LEN);
	memcpy(req.paths_uuid, p->paths_uuid, RTRS_UUID_LEN);
	rtrs_conn_req_encode(m, &req);
}

void hpath_connect_start(struct hpath *p, unsigned cid, const void *pdata, size_t len)
{
	const struct fab_qp_attr attr = { .max_send_wr = 1024, .max_recv_wr = HRECVS,
					  .max_send_sge = 1 };
	struct hcon *con = &p->cons[cid];

	expect(cid < HCONS_MAX && !con->conn);
	con->state = H_NONE;
	expect(!fab_conn_create(cm, con, &con->conn));
	expect(!fab_resolve(con->conn, &p->src, &hrun.server));
	HWAIT(con->state != H_NONE);
	if (con->state != H_RESOLVED)
		die("the server's address cannot be resolved: %s", strerror(-con->status));
	if (!p->pd) {
		expect(!fab_pd_create(con->conn, &p->pd));
		p->mr = fab_reg_mr(p->pd, p->mem, MEM_LEN,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		expect(p->mr);
	}
	expect(!fab_create_qp(con->conn, p->pd, &attr));
	expect(!fab_connect(con->conn, pdata, len));
}

/* What connection 0 is told holds for the path. */
static void take_geometry(struct hpath *p, const struct hcon *con)
{
	struct rtrs_conn_rsp rsp;
	const char *why;

	if (rtrs_conn_rsp_decode(con->pdata, con->pdata_len, false, &rsp, &why))
		die("accepted with %zu bytes: %s", con->pdata_len, why);
	expect(!rsp.status);
	p->new_rkey = rsp.new_rkey;
	expect(!rtrs_geom_init(&p->geom, rsp.queue_depth, rsp.max_io_size, rsp.max_hdr_size));
	p->rbufs = calloc(rsp.queue_depth, sizeof(*p->rbufs));
	expect(p->rbufs && rtrs_info_rsp_len(rsp.queue_depth) <= INFO_LEN);
}

int hpath_connect_end(struct hpath *p, unsigned cid)
{
	struct hcon *con = &p->cons[cid];

	HWAIT(con->state != H_RESOLVED);
	if (con->state == H_UNREACHABLE)
		die("no answer to a connection request: %s", strerror(-con->status));
	if (con->state == H_REFUSED) {
		fab_conn_destroy(con->conn);
		con->conn = NULL;
		return con->status;
	}
	if (!p->rbufs)
		take_geometry(p, con);
	return 0;
}

int hpath_connect_with(struct hpath *p, unsigned cid, const void *pdata, size_t len)
{
	hpath_connect_start(p, cid, pdata, len);
	return hpath_connect_end(p, cid);
}

int hpath_connect(struct hpath *p, unsigned cid)
{
	struct rtrs_msg_conn_req m;

	hpath_conn_req(p, cid, &m);
	return hpath_connect_with(p, cid, &m, sizeof(m));
}

void hpath_connect_all(struct hpath *p)
{
	for (unsigned cid = 0; cid < p->cid_num; cid++)
		expect_outcome(hpath_connect(p, cid), 0);
}

/* ---- posting ---- */

static struct ibv_sge stage(struct hpath *p, const void *bytes, size_t len)
{
	uint8_t *to;

	expect(len <= STAGING_LEN);
	if (p->staged + len > STAGING_LEN)
		p->staged = 0;
	to = p->mem + INFO_LEN + p->staged;
	if (len)
		memcpy(to, bytes, len);
	p->staged += len;
	return (struct ibv_sge){ (uintptr_t)to, (uint32_t)len, p->mr->lkey };
}

void hpath_send(struct hpath *p, unsigned cid, const void *bytes, size_t len)
{
	struct ibv_sge sge = stage(p, bytes, len);
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&p->cons[cid], .opcode = IBV_WR_SEND,
				  .sg_list = &sge, .num_sge = len ? 1 : 0 };

	/* An error says that the connection has failed, which polling will tell. */
	fab_post_send(p->cons[cid].conn, &wr);
}

void hwrite_fill(struct hwrite *w, struct hpath *p, unsigned cid, const void *bytes, size_t len,
		 uint64_t addr, uint32_t rkey, bool with_imm, uint32_t imm)
{
	w->sge = stage(p, bytes, len);
	w->wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&p->cons[cid],
		.opcode = with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.sg_list = &w->sge,
		.num_sge = len ? 1 : 0,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};
	if (with_imm)
		w->wr.imm_data = htobe32(imm);
}

void hpath_write(struct hpath *p, unsigned cid, const void *bytes, size_t len, uint64_t addr,
		 uint32_t rkey, bool with_imm, uint32_t imm)
{
	struct hwrite w;

	hwrite_fill(&w, p, cid, bytes, len, addr, rkey, with_imm, imm);
	fab_post_send(p->cons[cid].conn, &w.wr);
}

/* ---- INFO ---- */

void hpath_post_info_recv(struct hpath *p)
{
	struct ibv_sge sge = { (uintptr_t)p->info_buf,
			       (uint32_t)rtrs_info_rsp_len(p->geom.queue_depth), p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&p->cons[0], .sg_list = &sge, .num_sge = 1 };

	expect(!fab_post_recv(p->cons[0].conn, &wr));
}

bool hpath_any_closed(const struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_CLOSED)
			return true;
	}
	return false;
}

int hpath_wait_info(struct hpath *p)
{
	HWAIT(p->info_done || hpath_any_closed(p));
	return p->info_done ? 0 : HCLOSED;
}

int hpath_info(struct hpath *p)
{
	struct rtrs_msg_info_req m;

	rtrs_info_req_encode(&m, p->name);
	hpath_post_info_recv(p);
	hpath_send(p, 0, &m, sizeof(m));
	return hpath_wait_info(p);
}

void hpath_up(struct hpath *p)
{
	hpath_connect_all(p);
	expect_outcome(hpath_info(p), 0);
}

/* ---- outcomes ---- */

int hpath_wait_answer(struct hpath *p, uint32_t msg_id)
{
	const struct hanswer *a = &p->answers[msg_id];

	HWAIT(a->n >= a->posted || hpath_any_closed(p));
	return a->n >= a->posted ? a->status : HCLOSED;
}

static bool all_closed(const struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP || p->cons[cid].state == H_RESOLVED)
			return false;
	}
	return true;
}

void hpath_wait_closed(struct hpath *p)
{
	HWAIT(all_closed(p));
}

void hpath_close(struct hpath *p)
{
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP)
			fab_disconnect(p->cons[cid].conn);
	}
	hpath_wait_closed(p);
}

void hpath_reset(struct hpath *p)
{
	hpath_close(p);
	for (unsigned cid = 0; cid < HCONS_MAX; cid++) {
		if (p->cons[cid].conn)
			fab_conn_destroy(p->cons[cid].conn);
		p->cons[cid] = (struct hcon){ .path = p };
	}
	memset(p->answers, 0, sizeof(p->answers));
	p->info_done = false;
	p->recon_cnt++;
}
