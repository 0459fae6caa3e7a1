/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's path made by hand, on any fabric and in any time: every step of its life, and any
 * value in any field.  No reconnect, no scheduling, no mercy; by itself it answers heartbeats and
 * keeps its receives posted, nothing else.
 *
 * One thread.  What waits calls hpump(), which is the program's: tests/hostile/kit.c polls sockets,
 * tests/sim/raw-clt.c steps virtual time.  A function that cannot go on calls die(), which is the
 * program's, too. */
#ifndef HPATH_H
#define HPATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "rnbd-msg.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "util.h"

/* ---- of the program ---- */

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Let things happen for at most until @deadline_ms; false when it has passed. */
bool hpump(uint64_t deadline_ms);
/* Of whatever the server is to do next. */
uint64_t hdeadline(void);

#define expect(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			die("%s:%d: not true: %s", __FILE__, __LINE__, #cond);                     \
	} while (0)

#define expect_eq(a, b)                                                                            \
	do {                                                                                       \
		long long ea_ = (long long)(a), eb_ = (long long)(b);                              \
		if (ea_ != eb_)                                                                    \
			die("%s:%d: %s is %lld, expected: %s = %lld", __FILE__, __LINE__, #a, ea_, \
			    #b, eb_);                                                              \
	} while (0)

/* Outcomes beside 0 and negative errnos of an answer. */
#define HCLOSED 1			/* the path was closed without an answer */
#define HANY 2				/* in a table: answered or closed, but never silence */

void expect_outcome(int got, int want);

#define HWAIT(cond)                                                                                \
	do {                                                                                       \
		uint64_t deadline_ = hdeadline();                                                  \
		while (!(cond)) {                                                                  \
			if (!hpump(deadline_))                                                     \
				die("%s:%d: waited in vain for: %s", __FILE__, __LINE__, #cond);   \
		}                                                                                  \
	} while (0)

/* ---- paths (hpath.c) ---- */

#define HCONS_MAX 8
#define HANSWERS 65536
#define HRECVS 4096			/* of a connection */
#define HRESULT_LEN (1u << 20)
#define HINFO_LEN (1u << 20)

enum hstate { H_NONE, H_RESOLVED, H_UP, H_REFUSED, H_UNREACHABLE, H_CLOSED };

struct hpath;

struct hcon {
	struct hpath *path;
	struct fab_conn *conn;
	enum hstate state;
	int status;			/* H_REFUSED: negative errno; H_UNREACHABLE: of the event */
	unsigned recvs_posted, recvs_met;	/* in turn: which of HRECVS one is */
	unsigned ninv;			/* SEND_WITH_INV that came since the last answer */
};

struct hanswer {
	unsigned posted;		/* requests that wait for it, or have it */
	unsigned n;
	/* of the last one: */
	unsigned cid, type;		/* RTRS_IO_RSP_IMM, RTRS_IO_RSP_W_INV_IMM */
	int status;
	bool after_inv;			/* a SEND_WITH_INV came before it */
	uint32_t old_rkey;		/* of the chunk, until this answer */
};

struct hpath {
	uint8_t sess_uuid[RTRS_UUID_LEN], paths_uuid[RTRS_UUID_LEN];
	uint16_t cid_num, recon_cnt;
	bool first_conn;
	uint8_t lineage;		/* RTRS_CONN_REQ_LINEAGE: paths_uuid is of one */
	char name[RTRS_NAME_MAX];
	struct fab_cm *cm;
	struct fab_addr src, dst;	/* @src: where it connects from; none: any */
	struct hcon cons[HCONS_MAX];
	struct fab_pd *pd;
	struct rtrs_conn_rsp rsp;	/* new_rkey: answers bring the key of the next request */
	struct rtrs_geom geom;		/* from the same */
	struct rtrs_rbuf *rbufs;	/* from INFO_RSP, then as keys come */
	int access;			/* of @mr, beside what it needs */
	struct ibv_mr *mr;
	uint8_t *mem;			/* INFO_RSP, staging of what is sent, result area, keys */
	size_t staged;			/* comes round: what is sent must be out by then */
	uint8_t *result;		/* [HRESULT_LEN] */
	struct rtrs_msg_rkey_rsp *keys;	/* [HCONS_MAX][HRECVS]: what receives are filled with */
	uint8_t *info_buf;		/* [HINFO_LEN] */
	bool info_done;
	bool hears;			/* CONN_REQ and INFO_REQ ask for the reason of a refusal:
					 * not as a kernel */
	unsigned refusal;		/* enum rtrs_refusal: what was told */
	/* authentication, which is the program's: */
	enum rtrs_auth auth;		/* of the next CONN_REQ; PROVES: the program seals it */
	uint8_t auth_version;		/* ASKS */
	bool listens;			/* a SEND is no INFO_RSP, but is told here */
	uint32_t said;			/* its bytes in @info_buf; 0: none has come */
	bool mute;			/* leave heartbeats unanswered */
	bool idle;			/* take nothing that comes */
	unsigned hb_msgs, hb_acks;
	struct hanswer *answers;	/* [HANSWERS], by msg_id */
	struct rnbd_dev_info dev;	/* of hpath_open() */
};

/* To @dst, with fresh memory; two connections.  uuids and name are the caller's to set. */
void hpath_init(struct hpath *p, struct fab_cm *cm, const struct fab_addr *dst);
/* An event of one of its connections (hpath-wc.c). */
void hpath_event(const struct fab_event *ev);
/* Take some of what is there on a connection that is up; true when there was something. */
bool hpath_poll(struct hcon *con);

/* Connect as @cid with any private data.  0, or the negative errno of the reject; an unreachable
 * server ends the case. */
int hpath_connect_with(struct hpath *p, unsigned cid, const void *pdata, size_t len);
/* The same with a valid CONN_REQ, which the caller may have changed in @p before. */
int hpath_connect(struct hpath *p, unsigned cid);
/* Begin, and do not wait: the outcome comes in cons[cid].state. */
void hpath_connect_start(struct hpath *p, unsigned cid, const void *pdata, size_t len);
int hpath_connect_end(struct hpath *p, unsigned cid);
void hpath_conn_req(const struct hpath *p, unsigned cid, struct rtrs_msg_conn_req *m);
/* All connections, each of which must be accepted. */
void hpath_connect_all(struct hpath *p);

/* SEND @len bytes on @cid. */
void hpath_send(struct hpath *p, unsigned cid, const void *bytes, size_t len);
/* Post the receive of INFO_RSP and SEND a valid INFO_REQ.  0 when the path is up (receives are then
 * posted), or HCLOSED. */
int hpath_info(struct hpath *p);
void hpath_post_info_recv(struct hpath *p);
int hpath_wait_info(struct hpath *p);
/* Connections and INFO. */
void hpath_up(struct hpath *p);

/* A work request that is not posted yet. */
struct hwrite {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

/* RDMA_WRITE(_WITH_IMM) of any bytes to any place under any key. */
void hwrite_fill(struct hwrite *w, struct hpath *p, unsigned cid, const void *bytes, size_t len,
		 uint64_t addr, uint32_t rkey, bool with_imm, uint32_t imm);
void hpath_write(struct hpath *p, unsigned cid, const void *bytes, size_t len, uint64_t addr,
		 uint32_t rkey, bool with_imm, uint32_t imm);

/* Every request posted with chunk @msg_id is answered: the last one's status, or HCLOSED. */
int hpath_wait_answer(struct hpath *p, uint32_t msg_id);
/* Every connection of the path is closed by the server. */
void hpath_wait_closed(struct hpath *p);
bool hpath_any_closed(const struct hpath *p);
/* Disconnect as a good client does, and wait for the end. */
void hpath_close(struct hpath *p);
/* The same, and what it was is forgotten but for its identity: hpath_up() may follow. */
void hpath_reset(struct hpath *p);
/* That, and its memory is freed. */
void hpath_fini(struct hpath *p);

/* ---- requests (hreq.c) ---- */

/* What to put in place of the right value. */
enum hset {
	HSET_IMM_TYPE = 1 << 0,
	HSET_BUF_ID = 1 << 1,		/* in the immediate; the bytes go to the request's buf_id */
	HSET_OFF = 1 << 2,		/* in the immediate */
	HSET_TYPE = 1 << 3,
	HSET_USR_LEN = 1 << 4,
	HSET_SG_CNT = 1 << 5,
	HSET_FLAGS = 1 << 6,
	HSET_DESC_LEN = 1 << 7,
	HSET_DESC_KEY = 1 << 8,
	HSET_DESC_ADDR = 1 << 9,
	HSET_RKEY = 1 << 10,		/* of the write; xor-ed to the right one */
	HSET_ADDR = 1 << 11,		/* of the write; added to the right one */
	HSET_WRITE_LEN = 1 << 12,	/* bytes really written: cut, or filled with zeroes */
};

struct hedit {
	unsigned set;
	uint32_t imm_type, buf_id, off;
	uint16_t type, usr_len, sg_cnt, flags;
	uint32_t desc_len, desc_key;
	uint64_t desc_addr;
	uint32_t rkey;
	uint64_t addr;
	uint32_t write_len;
};

struct hreq {
	unsigned cid;
	uint32_t buf_id;
	bool is_read, no_desc, need_inval;
	uint32_t data_len;
	uint32_t result_at;		/* a READ's data goes so far into hpath.result */
	const void *usr;
	uint32_t usr_len;
	const void *data;		/* of a WRITE; NULL: a pattern */
	struct hedit edit;
};

void hreq_fill(struct hwrite *w, struct hpath *p, const struct hreq *r);
void hreq_post(struct hpath *p, const struct hreq *r);
/* Post and wait for the outcome. */
int hreq_do(struct hpath *p, const struct hreq *r);

int hpath_sess_info(struct hpath *p);
/* Fills p->dev on success. */
int hpath_open(struct hpath *p, const char *export_name, enum rnbd_access_mode mode);
/* One valid IO on @cid with chunk @buf_id; a READ's data is in p->result. */
int hpath_io(struct hpath *p, unsigned cid, uint32_t buf_id, const struct rnbd_io *io,
	     const void *data);

#endif
