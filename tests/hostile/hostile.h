/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that can do every step of a path's life by hand and put any value in any field.  No
 * reconnect, no scheduling, no mercy; by itself it answers heartbeats and nothing else.
 *
 * Each case runs in a process of its own, so that what it leaves open vanishes with it; a kit
 * function that cannot go on prints the reason and ends that process with status 1.  One thread.
 * Two programs use it: hostile (main.c), where after each case a well-behaved client must be served
 * and the server must hold no more descriptors than before; and tests/server/test-server.c, where
 * each case has a server of its own. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "rnbd-msg.h"
#include "rtrs-msg.h"
#include "rtrs-req.h"
#include "util.h"

/* ---- the run (main.c, kit.c) ---- */

struct hrun {
	struct fab_addr server;
	uint64_t timeout_ms;		/* for any one thing that the server is to do */
	const char *log;		/* the server's, to be looked into, or NULL */
	const char *invalidate;		/* how the server runs: "always", "copy", "never" */
	const char *held_fs;		/* the socket of held-fs, whose disk is export "held", or NULL */
	const char *held_file;		/* what it stores in */
};

extern struct hrun hrun;

#define HSKIPPED 77			/* exit status of a case */

/* Does the run go over tcp? */
bool over_tcp(void);
/* End a case that this transport cannot have. */
void skip(void) __attribute__((noreturn));
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

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

/* A group of cases: rows of @size bytes that begin with `const char *name`. */
struct hgroup {
	const char *name;
	const void *rows;
	size_t n, size;
	void (*run)(const void *row);	/* in the case's process; returns when all was as expected */
	bool slow;			/* takes tens of seconds; runs with --slow, all at once */
};

#define HGROUP(name_, table_, run_) { .name = name_, .rows = table_, .n = ARRAY_SIZE(table_),     \
				      .size = sizeof((table_)[0]), .run = run_ }

extern const struct hgroup conn_cases, order_cases, info_cases, req_cases, rnbd_cases, dev_cases,
	tcp_cases, vanish_cases, comeback_cases, meanwhile_cases, attack_cases, slow_cases;

/* Outcomes beside 0 and negative errnos of an answer. */
#define HCLOSED 1			/* the path was closed without an answer */
#define HANY 2				/* in a table: answered or closed, but never silence */

const char *outcome_name(int outcome);
void expect_outcome(int got, int want);

/* ---- paths by hand (kit.c) ---- */

#define HCONS_MAX 8
#define HANSWERS 65536
#define HRECVS 4096			/* of a connection */
#define HRESULT_LEN (1u << 20)

enum hstate { H_NONE, H_RESOLVED, H_UP, H_REFUSED, H_UNREACHABLE, H_CLOSED };

struct hpath;

struct hcon {
	struct hpath *path;
	struct fab_conn *conn;
	enum hstate state;
	int status;			/* H_REFUSED: negative errno; H_UNREACHABLE: of the event */
	uint8_t pdata[FAB_PRIVATE_DATA_MAX];
	size_t pdata_len;
	unsigned recvs_posted, recvs_met;	/* in turn: which of HRECVS one is */
};

struct hanswer {
	unsigned posted;		/* requests that wait for it, or have it */
	unsigned n;
	int status;
	uint32_t old_rkey;		/* of the chunk, until this answer */
};

struct hpath {
	uint8_t sess_uuid[RTRS_UUID_LEN], paths_uuid[RTRS_UUID_LEN];
	uint16_t cid_num, recon_cnt;
	char name[RTRS_NAME_MAX];
	struct fab_addr src;		/* where it connects from; none: any */
	struct hcon cons[HCONS_MAX];
	struct fab_pd *pd;
	struct rtrs_geom geom;		/* from connection 0 */
	bool new_rkey;			/* so is this: answers bring the key of the chunk's next request */
	struct rtrs_rbuf *rbufs;	/* from INFO_RSP, then as keys come */
	struct ibv_mr *mr;
	uint8_t *mem;			/* INFO_RSP, staging of what is sent, the result area, the keys */
	size_t staged;			/* comes round: what is sent must be out after STAGING_LEN bytes */
	uint8_t *result;		/* [HRESULT_LEN] */
	struct rtrs_msg_rkey_rsp *keys;	/* [HCONS_MAX][HRECVS]: what receives are filled with */
	uint8_t *info_buf;
	bool info_done;
	bool mute;			/* leave heartbeats unanswered */
	bool idle;			/* take nothing that comes */
	unsigned hb_msgs, hb_acks;
	struct hanswer answers[HANSWERS];	/* by msg_id */
	struct rnbd_dev_info dev;	/* of hpath_open() */
};

/* In a child of a case's process: begin anew, the connections are the parent's. */
void kit_forget(void);
/* Fresh uuids and a fresh name; two connections.  Never freed. */
struct hpath *hpath_new(void);

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

/* Let things happen for at most until @deadline_ms; false when it has passed. */
bool hpump(uint64_t deadline_ms);
/* hpump() returns when there is something to read from @fd, too; -1: from none. */
void hpump_also(int fd);
uint64_t hdeadline(void);
uint64_t hnow_ms(void);

#define HWAIT(cond)                                                                                \
	do {                                                                                       \
		uint64_t deadline_ = hdeadline();                                                  \
		while (!(cond)) {                                                                  \
			if (!hpump(deadline_))                                                     \
				die("%s:%d: waited in vain for: %s", __FILE__, __LINE__, #cond);   \
		}                                                                                  \
	} while (0)

/* ---- requests (hreq.c) ---- */

/* What to put in place of the right value. */
enum hset {
	HSET_IMM_TYPE = 1 << 0,
	HSET_BUF_ID = 1 << 1,		/* in the immediate only; the bytes go to buf_id of the request */
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
/* Up, SESS_INFO and OPEN; ends the case unless all is answered with 0. */
struct hpath *hpath_ready(const char *export_name, enum rnbd_access_mode mode);

/* ---- what the server logs (hlog.c) ---- */

/* How many lines have @text; 0 where the log is not to be looked into. */
unsigned hlog_count(const char *text);
/* Wait until they are more than @before, which must be by one. */
void hlog_expect_one(const char *text, unsigned before);

/* ---- the well-behaved client (good.c) ---- */

/* A whole life with data written, flushed, read back and compared on export "good". */
void good_client(void);
/* The IO part of it on a path that is up. */
void good_io(struct hpath *p);

#endif
