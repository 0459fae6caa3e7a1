/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one path of a test's own.  One thread; an actor of its host polls it.  It ends when the test
 * says so; a lost connection is noted and told, never repaired. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "raw-clt.h"
#include "sim-test.h"

#define WAIT_MS 60000

static struct list clts = LIST_INIT(clts);

_Static_assert(RAW_BUFS * RAW_DATA <= HRESULT_LEN, "room for the data of every chunk");

/* ---- of hpath.h ---- */

void die(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_test_failed(__FILE__, __LINE__, text);
}

uint64_t hdeadline(void)
{
	return sim_now_us() / 1000 + WAIT_MS;
}

bool hpump(uint64_t deadline_ms)
{
	return sim_step(deadline_ms * 1000);
}

/* ---- the actor ---- */

static void con_poll(struct hcon *con)
{
	short events;

	while (con->state == H_UP) {
		if (!hpath_poll(con) && fab_arm(con->conn, &events) == 0)
			break;
	}
}

static void raw_run(struct sim_actor *a)
{
	struct raw_clt *c = container_of(a, struct raw_clt, actor);
	struct fab_event ev;

	while (fab_cm_get_event(c->path.cm, &ev) == 1)
		hpath_event(&ev);
	for (unsigned i = 0; i < RAW_CONS; i++)
		con_poll(&c->path.cons[i]);
}

static bool raw_ready(struct sim_actor *a)
{
	struct raw_clt *c = container_of(a, struct raw_clt, actor);

	if (sim_fd_ready(fab_cm_fd(c->path.cm)))
		return true;
	for (unsigned i = 0; i < RAW_CONS; i++) {
		const struct hcon *con = &c->path.cons[i];

		if (con->state == H_UP && sim_fd_ready(fab_conn_fd(con->conn)))
			return true;
	}
	return false;
}

/* ---- life ---- */

void raw_clt_init(struct raw_clt *c, const char *host, uint8_t path, uint8_t sess, unsigned ncons)
{
	struct sim_host *h = sim_host_find(host);
	struct sim_place before = sim_enter(h, h->epoch);
	struct fab_addr to = sim_addr("srv", RTRS_PORT);
	struct fab_cm *cm;

	assert(ncons <= RAW_CONS);
	memset(c->windows, 0, sizeof(c->windows));
	c->features = 0;
	c->tag = 0;
	c->device_id = 0;
	CHECK(fab_cm_create(&(struct fab_cm_conf){ .provider = &fab_sim }, &cm) == 0);
	hpath_init(&c->path, cm, &to);
	c->path.cid_num = (uint16_t)ncons;
	c->path.access = IBV_ACCESS_MW_BIND;
	memset(c->path.sess_uuid, path, RTRS_UUID_LEN);
	memset(c->path.paths_uuid, sess, RTRS_UUID_LEN);
	c->data = (uint8_t (*)[RAW_DATA])c->path.result;
	c->actor = (struct sim_actor){ .ready = raw_ready, .run = raw_run };
	sim_actor_add(&c->actor);
	sim_leave(before);
	list_add_head(&clts, &c->link);
}

/* ORDER: windows go when the connections have drained and before they are destroyed. */
void raw_clt_hang_up(struct raw_clt *c)
{
	hpath_close(&c->path);
	for (unsigned i = 0; i < RAW_BUFS; i++) {
		CHECK(fab_dealloc_mw(c->windows[i]) == 0);
		c->windows[i] = NULL;
	}
	hpath_reset(&c->path);
}

void raw_clt_fini(struct raw_clt *c)
{
	raw_clt_hang_up(c);
	hpath_fini(&c->path);
	fab_cm_destroy(c->path.cm);
	sim_actor_del(&c->actor);
	list_del(&c->link);
}

void raw_clts_fini(void)
{
	struct raw_clt *c, *tmp;

	list_for_each_safe(c, tmp, &clts, link)
		raw_clt_fini(c);
}

int raw_clt_connect(struct raw_clt *c, unsigned cid)
{
	int status = hpath_connect(&c->path, cid);

	CHECK(c->path.rsp.queue_depth <= RAW_BUFS);
	return status;
}

bool raw_clt_lost(struct raw_clt *c)
{
	return hpath_any_closed(&c->path);
}

int raw_clt_info(struct raw_clt *c, const char *name)
{
	snprintf(c->path.name, sizeof(c->path.name), "%s", name);
	return hpath_info(&c->path) == HCLOSED ? -ECONNRESET : 0;
}

/* ---- requests ---- */

static void fill_bind(struct raw_clt *c, unsigned buf, uint32_t len, struct ibv_send_wr *bind)
{
	struct ibv_mw *mw = c->windows[buf];

	if (!mw)
		mw = c->windows[buf] = fab_alloc_mw(c->path.pd, IBV_MW_TYPE_2);
	CHECK(mw && !sim_mw_bound(mw));
	*bind = (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = { .mr = c->path.mr, .addr = (uintptr_t)c->data[buf],
				       .length = len, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
		},
	};
}

void raw_clt_submit(struct raw_clt *c, unsigned cid, unsigned buf, enum rtrs_dir dir,
		    const void *usr, uint16_t usr_len, uint32_t data_len, bool need_inval)
{
	struct hreq req = {
		.cid = cid, .buf_id = buf, .is_read = dir == RTRS_DIR_READ,
		.need_inval = need_inval,
		.data_len = data_len, .result_at = buf * RAW_DATA, .data = c->data[buf],
		.usr = usr, .usr_len = usr_len,
	};
	struct ibv_send_wr bind;
	struct hwrite w;

	if (need_inval) {
		fill_bind(c, buf, data_len, &bind);
		req.edit.set = HSET_DESC_KEY;
		req.edit.desc_key = bind.bind_mw.rkey;
	}
	memset(&c->path.answers[buf], 0, sizeof(c->path.answers[buf]));
	hreq_fill(&w, &c->path, &req);
	bind.next = &w.wr;
	CHECK(fab_post_send(c->path.cons[cid].conn, need_inval ? &bind : &w.wr) == 0);
	if (need_inval)
		c->windows[buf]->rkey = bind.bind_mw.rkey;
}

struct wait {
	struct raw_clt *c;
	unsigned buf;
};

static bool answered(void *arg)
{
	const struct wait *w = arg;

	return w->c->path.answers[w->buf].n || raw_clt_lost(w->c);
}

bool raw_clt_wait(struct raw_clt *c, unsigned buf, uint64_t ms)
{
	struct wait w = { .c = c, .buf = buf };

	sim_run_until(answered, &w, ms);
	CHECK(c->path.answers[buf].n <= 1);
	return c->path.answers[buf].n;
}

void raw_clt_io_start(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op,
		      uint64_t sector, uint32_t len, bool need_inval)
{
	struct rnbd_io io = { .device_id = c->device_id, .op = op, .sector = sector,
			      .bi_size = len, .tag = c->tag };
	enum rtrs_dir dir = op == RNBD_OP_READ || op == RNBD_OP_FLUSH ? RTRS_DIR_READ :
									RTRS_DIR_WRITE;
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	raw_clt_submit(c, cid, buf, dir, &m, sizeof(m),
		       op == RNBD_OP_READ || op == RNBD_OP_WRITE ? len : 0, need_inval);
}

int raw_clt_io(struct raw_clt *c, unsigned cid, unsigned buf, enum rnbd_io_op op, uint64_t sector,
	       uint32_t len, bool need_inval)
{
	raw_clt_io_start(c, cid, buf, op, sector, len, need_inval);
	if (!raw_clt_wait(c, buf, WAIT_MS))
		return -ECONNRESET;
	return c->path.answers[buf].status;
}

int raw_clt_opened(struct raw_clt *c, uint64_t ms)
{
	struct rnbd_dev_info dev;

	if (!raw_clt_wait(c, 0, ms))
		return -ECONNRESET;
	if (c->path.answers[0].status)
		return c->path.answers[0].status;
	CHECK(rnbd_open_rsp_decode(c->data[0], sizeof(struct rnbd_msg_open_rsp), &dev) == 0);
	c->device_id = dev.device_id;
	return 0;
}

int raw_clt_open(struct raw_clt *c, const char *name, enum rnbd_access_mode mode)
{
	struct rnbd_sess_info info = {
		.ver = RNBD_PROTO_VER_MAJOR,
		.ext = { .valid = c->features, .features = c->features },
	};
	struct rnbd_msg_sess_info sess;
	struct rnbd_msg_open open;
	int status = 0;

	for (unsigned i = 0; i < c->path.cid_num && !status; i++)
		status = raw_clt_connect(c, i);
	if (!status)
		status = raw_clt_info(c, name);
	if (status)
		return status;
	rnbd_sess_info_encode(&sess, RNBD_MSG_SESS_INFO, &info);
	raw_clt_submit(c, 0, 0, RTRS_DIR_READ, &sess, sizeof(sess), sizeof(sess), false);
	if (!raw_clt_wait(c, 0, WAIT_MS))
		return -ECONNRESET;
	CHECK(rnbd_open_encode(&open, "disk0", mode) == 0);
	raw_clt_submit(c, 0, 0, RTRS_DIR_READ, &open, sizeof(open),
		       sizeof(struct rnbd_msg_open_rsp), false);
	return raw_clt_opened(c, WAIT_MS);
}
