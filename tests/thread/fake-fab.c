/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the fake world; one lock covers it all.  Connections are polled by the client under test; the
 * server's thread executes requests.  Anything the client does wrong ends the program. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric.h"
#include "fake-fab.h"
#include "list.h"
#include "rnbd-msg.h"
#include "rtrs-imm.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "thread.h"

#define QUEUE 8192			/* completions and receives of a connection */

struct fake_cm {
	struct fab_cm base;
	int fd;
	struct list events;		/* fake_conn.ev_link */
};

struct fake_conn {
	struct fab_conn base;
	struct list ev_link, link;
	enum fab_event_type ev;
	uint16_t cid;
	int fd;
	bool up, failed, drained, armed;
	struct ibv_recv_wr rq[QUEUE];
	struct ibv_sge rsge[QUEUE];
	unsigned rq_head, rq_tail;
	struct ibv_wc cq[QUEUE];
	unsigned cq_head, cq_tail;
};

struct fake_mr {
	struct fab_mr base;
	struct list link;
	uint64_t addr, len;
	uint32_t rkey;
	int access;
};

struct fake_mw {
	struct fab_mw base;
	struct list link;
	uint32_t rkey;			/* posted last */
	struct fake_conn *conn;		/* that it was bound on; NULL: not bound */
	uint64_t addr, len;
};

struct request {
	struct list link;
	struct fake_conn *conn;
	uint32_t id, off, byte_len;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool stop;
	struct fake_conf conf;
	struct rtrs_geom geom;
	uint8_t *disk, *chunks;
	uint32_t *chunk_keys;
	struct list conns, mrs, mws, requests;
	uint32_t next_key, next_mw;
	uint8_t boot_id;
	unsigned long answers;
	unsigned largest_post;
	unsigned seed;
} w = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER };

#define conn_of(c) container_of(c, struct fake_conn, base)
#define lock() pthread_mutex_lock(&w.lock)
#define unlock() pthread_mutex_unlock(&w.lock)

/* ---- completions ---- */

static void complete(struct fake_conn *c, const struct ibv_wc *wc)
{
	check(c->cq_tail - c->cq_head < QUEUE);
	c->cq[c->cq_tail++ % QUEUE] = *wc;
	if (c->armed)
		eventfd_write(c->fd, 1);
	c->armed = false;
}

/* Consume a receive for a message of @len bytes at @data. */
static void receive(struct fake_conn *c, enum ibv_wc_opcode opcode, const void *data, uint32_t len,
		    const __be32 *imm, uint32_t inv)
{
	const struct ibv_recv_wr *r = &c->rq[c->rq_head % QUEUE];
	struct ibv_wc wc = { .wr_id = r->wr_id, .opcode = opcode, .byte_len = len };

	if (c->failed)
		return;
	check(c->rq_head != c->rq_tail);
	if (len) {
		check(r->num_sge == 1 && c->rsge[c->rq_head % QUEUE].length >= len);
		memcpy((void *)(uintptr_t)c->rsge[c->rq_head % QUEUE].addr, data, len);
	}
	c->rq_head++;
	if (imm) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = *imm;
	}
	if (inv) {
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = inv;
	}
	complete(c, &wc);
}

static void fail(struct fake_conn *c)
{
	struct request *r, *tmp;

	if (!c->up || c->failed)
		return;
	c->failed = true;
	list_for_each_safe(r, tmp, &w.requests, link) {
		if (r->conn == c) {
			list_del(&r->link);
			free(r);
		}
	}
	eventfd_write(c->fd, 1);
}

/* ---- windows ---- */

static struct fake_mw *window(uint32_t rkey)
{
	struct fake_mw *mw;

	list_for_each(mw, &w.mws, link) {
		if (mw->rkey == rkey)
			return mw;
	}
	return NULL;
}

static void bind_window(struct fake_conn *c, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct fake_mw *mw = container_of(wr->bind_mw.mw, struct fake_mw, base.ibv);

	check(!fab_bind_check(wr, info->mr ? container_of(info->mr, struct fab_mr, ibv)->pd : NULL,
			      mw->rkey));
	check(mw->base.ibv.type == IBV_MW_TYPE_1 || !mw->conn);
	mw->rkey = wr->bind_mw.rkey;
	mw->conn = info->length ? c : NULL;
	mw->addr = info->addr;
	mw->len = info->length;
}

/* By its owner, or by the server over @c. */
static void invalidate(struct fake_conn *c, uint32_t rkey)
{
	struct fake_mw *mw = window(rkey);

	check(mw && mw->conn == c && mw->base.ibv.type == IBV_MW_TYPE_2);
	mw->conn = NULL;
}

/* ---- the server ---- */

static void place(struct fake_conn *c, const struct rtrs_desc *d, const void *data, uint32_t len)
{
	struct fake_mw *mw = window(d->key);
	struct fake_mr *mr;

	if (mw) {
		check(mw->conn && (mw->conn == c || mw->base.ibv.type == IBV_MW_TYPE_1));
		check(range_ok(d->addr - mw->addr, len, mw->len));
		memcpy((void *)(uintptr_t)d->addr, data, len);
		return;
	}
	list_for_each(mr, &w.mrs, link) {
		if (mr->rkey != d->key)
			continue;
		check(mr->access & IBV_ACCESS_REMOTE_WRITE);
		check(range_ok(d->addr - mr->addr, len, mr->len));
		memcpy((void *)(uintptr_t)d->addr, data, len);
		return;
	}
	check(!"a read names a key that is not alive");
}

static int serve_io(struct fake_conn *c, const struct rtrs_req *req, const uint8_t *chunk)
{
	struct rnbd_io io;

	check(!rnbd_io_decode(req->usr, req->usr_len, req->data_len, req->dir == RTRS_DIR_READ, &io));
	if (io.op == RNBD_OP_FLUSH)
		return 0;
	check(range_ok(io.sector * 512, io.bi_size, w.conf.disk_size));
	w.answers++;
	switch (io.op) {
	case RNBD_OP_READ:
		place(c, &req->desc, w.disk + io.sector * 512, io.bi_size);
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

static int serve_user(struct fake_conn *c, const struct rtrs_req *req)
{
	struct rnbd_sess_info info;
	struct rnbd_msg_sess_info info_rsp;
	struct rnbd_msg_open_rsp open_rsp;
	struct rnbd_dev_info dev = {
		.nsectors = w.conf.disk_size / 512, .max_write_zeroes_sectors = 1 << 20,
		.physical_block_size = 4096, .logical_block_size = 512, .fua = true,
		.writeback = true,
	};

	switch (rnbd_msg_type(req->usr, req->usr_len)) {
	case RNBD_MSG_SESS_INFO:
		info = (struct rnbd_sess_info){ .ver = 2, .ext = { .valid = true,
			.features = RNBD_EXT_ALL, .boot_id = { w.boot_id } } };
		rnbd_sess_info_encode(&info_rsp, RNBD_MSG_SESS_INFO_RSP, &info);
		place(c, &req->desc, &info_rsp, sizeof(info_rsp));
		return 0;
	case RNBD_MSG_OPEN:
		rnbd_open_rsp_encode(&open_rsp, &dev);
		place(c, &req->desc, &open_rsp, sizeof(open_rsp));
		return 0;
	case RNBD_MSG_CLOSE:
		return 0;
	}
	check(!"unknown user message");
	return 0;
}

static void serve(struct request *r)
{
	uint8_t *chunk = w.chunks + (size_t)r->id * w.geom.chunk_size;
	uint8_t copy[RTRS_HDR_MAX];
	struct rtrs_msg_rkey_rsp rkey;
	struct rtrs_req req;
	const char *why;
	uint32_t start, len;
	bool inval;
	__be32 imm;
	int status;

	check(!rtrs_req_extent(&w.geom, chunk, r->off, r->byte_len, &start, &len, &why));
	memcpy(copy, chunk + start, len);
	check(!rtrs_req_decode(&w.geom, copy, start, len, r->off, r->byte_len, &req, &why));
	status = rnbd_msg_type(req.usr, req.usr_len) == RNBD_MSG_IO ?
			 serve_io(r->conn, &req, chunk) : serve_user(r->conn, &req);
	inval = req.need_inval && rand_r(&w.seed) % 2;
	if (inval) {
		invalidate(r->conn, req.desc.key);
		receive(r->conn, IBV_WC_RECV, NULL, 0, NULL, req.desc.key);
	}
	imm = rtrs_imm_io_rsp(r->id, status, inval);
	if (!w.conf.new_rkey) {
		receive(r->conn, IBV_WC_RECV_RDMA_WITH_IMM, NULL, 0, &imm, 0);
		return;
	}
	rtrs_rkey_rsp_encode(&rkey, (uint16_t)r->id, ++w.chunk_keys[r->id]);
	receive(r->conn, IBV_WC_RECV, &rkey, sizeof(rkey), &imm, 0);
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
	lock();
	while (!w.stop) {
		struct request *r;

		if (list_empty(&w.requests)) {
			pthread_cond_wait(&w.work, &w.lock);
			continue;
		}
		r = pick_request();
		list_del(&r->link);
		serve(r);
		free(r);
		unlock();		/* let others in between */
		lock();
	}
	unlock();
	return NULL;
}

/* ---- posts ---- */

static void post_info_req(struct fake_conn *c)
{
	struct rtrs_msg_info_rsp *rsp = calloc(1, rtrs_info_rsp_len(w.conf.queue_depth));
	struct rtrs_region *regions = calloc(w.conf.queue_depth, sizeof(*regions));

	check(rsp && regions);
	for (unsigned i = 0; i < w.conf.queue_depth; i++)
		regions[i] = (struct rtrs_region){ (uintptr_t)w.chunks + (size_t)i * w.geom.chunk_size,
						   w.chunk_keys[i], w.geom.chunk_size };
	rtrs_info_rsp_encode(rsp, regions, w.conf.queue_depth);
	receive(c, IBV_WC_RECV, rsp, (uint32_t)rtrs_info_rsp_len(w.conf.queue_depth), NULL, 0);
	free(regions);
	free(rsp);
}

static void post_request(struct fake_conn *c, const struct ibv_send_wr *wr)
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

static int fake_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct fake_conn *c = conn_of(conn);
	unsigned n = 0;

	lock();
	for (; wr; wr = wr->next, n++) {
		struct ibv_wc wc = { .wr_id = wr->wr_id, .opcode = IBV_WC_RDMA_WRITE };

		if (c->failed)
			wc.status = IBV_WC_WR_FLUSH_ERR;
		else if (wr->opcode == IBV_WR_BIND_MW)
			bind_window(c, wr);
		else if (wr->opcode == IBV_WR_LOCAL_INV)
			invalidate(c, wr->invalidate_rkey);
		else if (wr->opcode == IBV_WR_SEND)
			post_info_req(c);
		else if (wr->num_sge)
			post_request(c, wr);
		if (c->failed || (wr->send_flags & IBV_SEND_SIGNALED))
			complete(c, &wc);
	}
	w.largest_post = MAX(w.largest_post, n);
	unlock();
	return 0;
}

static int fake_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct fake_conn *c = conn_of(conn);

	lock();
	for (; wr; wr = wr->next) {
		check(c->rq_tail - c->rq_head < QUEUE);
		if (wr->num_sge)
			c->rsge[c->rq_tail % QUEUE] = wr->sg_list[0];
		c->rq[c->rq_tail++ % QUEUE] = *wr;
	}
	unlock();
	return 0;
}

/* ---- poll ---- */

static int fake_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct fake_conn *c = conn_of(conn);
	eventfd_t ignored;
	int got = 0;

	eventfd_read(c->fd, &ignored);
	lock();
	c->armed = false;
	while (got < n && c->cq_head != c->cq_tail)
		wc[got++] = c->cq[c->cq_head++ % QUEUE];
	while (c->failed && got < n && c->rq_head != c->rq_tail)
		wc[got++] = (struct ibv_wc){ .wr_id = c->rq[c->rq_head++ % QUEUE].wr_id,
					     .status = IBV_WC_WR_FLUSH_ERR };
	if (c->failed && !got)
		c->drained = true;
	unlock();
	return c->drained ? -ENOTCONN : got;
}

static int fake_arm(struct fab_conn *conn, short *events)
{
	struct fake_conn *c = conn_of(conn);
	int r;

	lock();
	r = c->cq_head != c->cq_tail || c->failed;
	c->armed = !r;
	unlock();
	*events = POLLIN;
	return r;
}

static int fake_need_rearm(const struct fab_conn *conn)
{
	return 0;
}

static int fake_conn_fd(const struct fab_conn *conn)
{
	return conn_of(conn)->fd;
}

static void fake_disconnect(struct fab_conn *conn, const char *cause)
{
	lock();
	fail(conn_of(conn));
	unlock();
}

static const char *fake_cause(const struct fab_conn *conn)
{
	return "cut";
}

/* ---- connections ---- */

static void event(struct fake_conn *c, enum fab_event_type ev)
{
	struct fake_cm *cm = container_of(c->base.cm, struct fake_cm, base);

	c->ev = ev;
	list_add_tail(&cm->events, &c->ev_link);
	eventfd_write(cm->fd, 1);
}

static int fake_cm_create(struct fab_cm **out);

static void fake_cm_destroy(struct fab_cm *base)
{
	struct fake_cm *cm = container_of(base, struct fake_cm, base);

	check(list_empty(&cm->events));
	close(cm->fd);
	free(cm);
}

static int fake_cm_fd(const struct fab_cm *base)
{
	return container_of(base, struct fake_cm, base)->fd;
}

static int fake_get_event(struct fab_cm *base, struct fab_event *ev)
{
	struct fake_cm *cm = container_of(base, struct fake_cm, base);
	struct rtrs_conn_rsp rsp = {
		.queue_depth = (uint16_t)w.conf.queue_depth, .max_io_size = w.conf.max_io_size,
		.max_hdr_size = 4096, .new_rkey = w.conf.new_rkey,
	};
	struct fake_conn *c;
	eventfd_t ignored;

	if (list_empty(&cm->events)) {
		eventfd_read(cm->fd, &ignored);
		return 0;
	}
	c = list_entry(cm->events.next, struct fake_conn, ev_link);
	list_del(&c->ev_link);
	*ev = (struct fab_event){ .type = c->ev, .conn = &c->base };
	if (c->ev == FAB_EVENT_ESTABLISHED) {
		rtrs_conn_rsp_encode((struct rtrs_msg_conn_rsp *)ev->private_data, &rsp);
		ev->private_data_len = sizeof(struct rtrs_msg_conn_rsp);
		lock();
		c->up = true;
		unlock();
	}
	return 1;
}

static int fake_conn_create(struct fab_cm *cm, struct fab_conn **conn);

static void fake_conn_destroy(struct fab_conn *conn)
{
	struct fake_conn *c = conn_of(conn);
	struct fake_mw *mw;

	check(!c->up || c->drained);
	lock();
	list_for_each(mw, &w.mws, link)
		check(mw->conn != c);
	list_del(&c->link);
	list_del(&c->ev_link);
	unlock();
	close(c->fd);
	free(c);
}

static int fake_resolve(struct fab_conn *conn, const struct fab_addr *src,
			const struct fab_addr *dst)
{
	conn->local = conn->peer = *dst;
	event(conn_of(conn), FAB_EVENT_ROUTE_RESOLVED);
	return 0;
}

static int fake_query(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = (struct fab_device_attr){ .max_qp_wr = QUEUE, .max_sge = 2, .local_dma_lkey = true,
					  .rereg_mr = true, .max_mw = QUEUE,
					  .mw_type_1 = w.conf.type_1, .mw_type_2b = w.conf.type_2 };
	return 0;
}

static int fake_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	return 0;
}

static int fake_connect(struct fab_conn *conn, const void *data, size_t len)
{
	event(conn_of(conn), FAB_EVENT_ESTABLISHED);
	return 0;
}

/* ---- memory ---- */

static int fake_pd_create(struct fab_conn *conn, struct fab_pd **pd)
{
	*pd = calloc(1, sizeof(**pd));
	check(*pd);
	(*pd)->ops = conn->ops;
	return 0;
}

static void fake_pd_destroy(struct fab_pd *pd)
{
	free(pd);
}

static bool fake_dma_lkey(const struct fab_pd *pd, uint32_t *lkey)
{
	*lkey = 1;
	return true;
}

static int fake_rereg(struct ibv_mr *ibv, void *addr, size_t len, uint64_t iova, int access)
{
	struct fake_mr *mr = container_of(ibv, struct fake_mr, base.ibv);

	lock();
	mr->addr = (uintptr_t)addr;
	mr->len = len;
	mr->access = access;
	mr->rkey = len ? ++w.next_key : 0;
	unlock();
	ibv->lkey = ibv->rkey = mr->rkey;
	ibv->addr = addr;
	ibv->length = len;
	return 0;
}

static struct ibv_mr *fake_reg(struct fab_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	struct fake_mr *mr = calloc(1, sizeof(*mr));

	check(mr);
	mr->base.pd = pd;
	lock();
	list_add_tail(&w.mrs, &mr->link);
	unlock();
	fake_rereg(&mr->base.ibv, addr, len, iova, access);
	return &mr->base.ibv;
}

static void fake_dereg(struct ibv_mr *ibv)
{
	struct fake_mr *mr = container_of(ibv, struct fake_mr, base.ibv);

	lock();
	list_del(&mr->link);
	unlock();
	free(mr);
}

static struct ibv_mw *fake_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *mw = calloc(1, sizeof(*mw));

	check(mw && (type == IBV_MW_TYPE_1 ? w.conf.type_1 : w.conf.type_2));
	mw->base.pd = pd;
	mw->base.ibv.type = type;
	lock();
	/* Far from the keys of regions. */
	mw->base.ibv.rkey = mw->rkey = (0x800000 + w.next_mw++ % 0x10000) << 8;
	list_add_tail(&w.mws, &mw->link);
	unlock();
	return &mw->base.ibv;
}

static int fake_dealloc_mw(struct ibv_mw *ibv)
{
	struct fake_mw *mw = container_of(ibv, struct fake_mw, base.ibv);

	lock();
	list_del(&mw->link);
	unlock();
	free(mw);
	return 0;
}

static const struct fab_provider fake = {
	.name = "fake",
	.cm_create = fake_cm_create, .cm_destroy = fake_cm_destroy, .cm_fd = fake_cm_fd,
	.cm_get_event = fake_get_event,
	.conn_create = fake_conn_create, .conn_destroy = fake_conn_destroy,
	.resolve = fake_resolve, .query_device = fake_query, .create_qp = fake_create_qp,
	.connect = fake_connect,
	.pd_create = fake_pd_create, .pd_destroy = fake_pd_destroy,
	.pd_local_dma_lkey = fake_dma_lkey,
	.reg_mr = fake_reg, .rereg_mr = fake_rereg, .dereg_mr = fake_dereg,
	.alloc_mw = fake_alloc_mw, .dealloc_mw = fake_dealloc_mw,
	.post_send = fake_post_send, .post_recv = fake_post_recv, .poll = fake_poll,
	.conn_fd = fake_conn_fd, .arm = fake_arm, .need_rearm = fake_need_rearm,
	.disconnect = fake_disconnect, .conn_cause = fake_cause,
};

static int fake_cm_create(struct fab_cm **out)
{
	struct fake_cm *cm = calloc(1, sizeof(*cm));

	check(cm);
	cm->base.ops = &fake;
	cm->fd = eventfd(0, EFD_NONBLOCK);
	list_init(&cm->events);
	*out = &cm->base;
	return 0;
}

static int fake_conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	struct fake_conn *c = calloc(1, sizeof(*c));

	check(c);
	c->base.ops = &fake;
	c->base.cm = cm;
	c->fd = eventfd(0, EFD_NONBLOCK);
	list_init(&c->ev_link);
	lock();
	list_add_tail(&w.conns, &c->link);
	unlock();
	*conn = &c->base;
	return 0;
}

/* ---- the test's side ---- */

void fake_start(const struct fake_conf *conf)
{
	w.conf = *conf;
	list_init(&w.conns);
	list_init(&w.mrs);
	list_init(&w.mws);
	list_init(&w.requests);
	check(!rtrs_geom_init(&w.geom, conf->queue_depth, conf->max_io_size, 4096));
	w.disk = calloc(1, conf->disk_size);
	w.chunks = calloc(conf->queue_depth, w.geom.chunk_size);
	w.chunk_keys = calloc(conf->queue_depth, sizeof(*w.chunk_keys));
	check(w.disk && w.chunks && w.chunk_keys);
	for (unsigned i = 0; i < conf->queue_depth; i++)
		w.chunk_keys[i] = i << 8;
	w.stop = false;
	if (!fab_provider_find("fake"))
		fab_provider_register(&fake);
	check(!pthread_create(&w.thread, NULL, server, NULL));
}

void fake_stop(void)
{
	lock();
	w.stop = true;
	pthread_cond_signal(&w.work);
	unlock();
	pthread_join(w.thread, NULL);
	check(list_empty(&w.conns) && list_empty(&w.mrs) && list_empty(&w.requests));
	check(list_empty(&w.mws));
	free(w.disk);
	free(w.chunks);
	free(w.chunk_keys);
}

void fake_addr(struct fab_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->provider = &fake;
	addr->ss.ss_family = AF_INET;
	addr->len = sizeof(struct sockaddr_storage);
}

void fake_cut(void)
{
	struct fake_conn *c;

	lock();
	list_for_each(c, &w.conns, link)
		fail(c);
	unlock();
}

void fake_answer(struct fab_conn *conn, unsigned id)
{
	__be32 imm = rtrs_imm_io_rsp(id, 0, false);

	lock();
	receive(conn_of(conn), IBV_WC_RECV_RDMA_WITH_IMM, NULL, 0, &imm, 0);
	unlock();
}

unsigned long fake_answers(void)
{
	unsigned long n;

	lock();
	n = w.answers;
	unlock();
	return n;
}

unsigned fake_largest_post(void)
{
	unsigned n;

	lock();
	n = w.largest_post;
	unlock();
	return n;
}

void fake_reboot(void)
{
	lock();
	w.boot_id++;
	unlock();
}

unsigned fake_live_keys(void)
{
	struct fake_mr *mr;
	struct fake_mw *mw;
	unsigned n = 0;

	lock();
	list_for_each(mw, &w.mws, link)
		n += mw->conn != NULL;
	list_for_each(mr, &w.mrs, link)
		n += mr->len && (mr->access & IBV_ACCESS_REMOTE_WRITE);
	unlock();
	return n;
}
