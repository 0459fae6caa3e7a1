/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the sim provider. */
#ifndef SIM_FAB_PRIV_H
#define SIM_FAB_PRIV_H

#include "sim-fabric.h"

#define SIM_MAX_SGE 4
#define SIM_MAX_QP_WR 16384
#define SIM_MAX_MW 65536
#define SIM_DMA_LKEY 0xFFFFFF00u	/* no slot of the key table */

struct sim_pd {
	struct fab_pd base;
	struct sim_host *host;
};

struct sim_cm {
	struct fab_cm base;
	struct sim_host *host;
	unsigned epoch;
	struct list events;		/* struct sim_cm_event */
	struct list listeners;
	unsigned nconns;
};

struct sim_cm_event {
	struct list link;
	struct fab_event ev;
};

struct sim_listener {
	struct fab_listener base;
	struct list link;		/* of the cm */
	struct list all;
	struct sim_cm *cm;
	bool gone;			/* with its device */
};

enum sim_conn_state {
	SIM_NEW,
	SIM_RESOLVED,
	SIM_CONNECTING,			/* active: request sent */
	SIM_REQUESTED,			/* passive: not accepted yet */
	SIM_UP,
	SIM_FAILED,
};

/* A posted send. */
struct sim_send {
	struct list link;
	uint64_t seq;
	struct ibv_send_wr wr;		/* sg_list points to sge */
	struct ibv_sge sge[SIM_MAX_SGE];
	uint32_t len;			/* of the payload */
	bool done;			/* acknowledged, waits for those before it */
	const char *bad;		/* a bind that breaks a rule, found at the post */
};

struct sim_recv {
	struct list link;
	struct ibv_recv_wr wr;
	struct ibv_sge sge[SIM_MAX_SGE];
};

struct sim_cq_entry {
	struct list link;
	struct ibv_wc wc;
};

/* What protects an end of a connection. */
struct sim_channel {
	uint64_t tls;			/* number of the session of TLS; 0: in plain */
	unsigned nth;			/* of the relay's connections, from 1 on; 0: nobody reads */
};

struct sim_conn {
	struct fab_conn base;
	struct list all;
	uint64_t id, peer_id;		/* peer_id 0: not known (yet) */
	struct sim_host *host, *peer_host;
	char identity[FAB_IDENTITY_LEN];	/* of the peer, when it connected */
	uint64_t key;
	struct sim_channel channel;
	unsigned wire;			/* which address of the server's */
	unsigned epoch;
	enum sim_conn_state state;
	bool must_drain;		/* the user may have posted to an open connection */
	bool drained;			/* told so */
	bool internal;			/* CONNECT_REQUEST not fetched: the user does not know it */
	struct sim_listener *listener;
	struct sim_pd *pd;
	struct fab_qp_attr attr;
	struct list sq, rq, cq;
	unsigned nsq, nrq;
	struct sim_event tx, timer, flush;
	struct sim_send *tx_next;	/* first not fully sent */
	uint32_t tx_off;
	uint64_t seq;
	struct sim_flow flow;
	struct sim_recv *rx;		/* a SEND is being placed here */
	unsigned rx_closings;		/* of its key, when a write began */
	bool flushed;
	bool armed, readable;		/* as a completion channel: one event per arm */
	bool exhausted;			/* fab_poll() finds nothing before fab_arm() */
};

enum sim_wire_type {
	SIM_WIRE_REQ,			/* connect request */
	SIM_WIRE_REP,			/* accepted */
	SIM_WIRE_RTU,			/* the passive side may know that it is open */
	SIM_WIRE_REJ,			/* refused by the program */
	SIM_WIRE_REFUSED,		/* nobody listens */
	SIM_WIRE_DATA,
	SIM_WIRE_ACK,
	SIM_WIRE_NAK,
	SIM_WIRE_DISC,
};

/* What goes over a link. */
struct sim_wire {
	struct sim_msg msg;
	enum sim_wire_type type;
	uint64_t src, dst;		/* connection ids; dst 0: a listener by address */
	struct fab_addr src_addr, dst_addr;
	struct sim_channel channel;	/* REQ: of the passive end */
	uint64_t seq;			/* DATA, ACK, NAK */
	enum ibv_wc_status status;	/* NAK */
	enum ibv_wr_opcode opcode;
	__be32 imm;
	uint32_t inv_rkey, rkey;
	uint64_t raddr;
	uint32_t total, off;		/* DATA: of the whole message, where this piece begins */
	uint32_t len;			/* bytes of data[] */
	uint8_t data[];
};

static inline struct sim_conn *to_conn(const struct fab_conn *c)
{
	return container_of(c, struct sim_conn, base);
}

static inline struct sim_cm *to_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct sim_cm, base);
}

static inline bool sim_conn_is_ghost(const struct sim_conn *c)
{
	return sim_is_ghost(c->host, c->epoch);
}

/* ---- sim-mem.c ---- */
int sim_pd_create(struct fab_conn *conn, struct fab_pd **pd);
void sim_pd_destroy(struct fab_pd *pd);
struct ibv_mr *sim_reg_mr(struct fab_pd *pd, void *addr, size_t length, uint64_t iova, int access);
int sim_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova, int access);
int sim_suspend_mr(struct ibv_mr *mr, bool closed);
int sim_hold_mr(struct ibv_mr *mr);
void sim_release_mr(struct ibv_mr *mr);
void sim_dereg_mr(struct ibv_mr *mr);

/* May @conn's device touch [addr, addr + len) under @lkey?  Static text why not, or NULL. */
const char *sim_lkey_check(const struct sim_conn *c, const struct ibv_sge *sge, int access);
/* The same for its peer under @rkey. */
const char *sim_rkey_check(const struct sim_conn *c, uint32_t rkey, uint64_t addr, uint64_t len);
/* A piece is about to be placed under @rkey, which was checked. */
void sim_key_written(uint32_t rkey);
/* How often the region of a key was suspended. */
unsigned sim_key_closings(uint32_t rkey);
/* The memory that is called @addr under @key, which was checked; SIM_DMA_LKEY calls it as we do. */
void *sim_key_mem(uint32_t key, uint64_t addr);
/* Windows.  Static text why not, or NULL.  A bind when it is posted, and when it is its turn. */
struct ibv_mw *sim_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type);
int sim_dealloc_mw(struct ibv_mw *mw);
/* sim_break_windows(). */
bool sim_mw_refused(const struct sim_conn *c, const struct ibv_send_wr *wr);
const char *sim_mw_post(const struct sim_conn *c, const struct ibv_send_wr *wr);
const char *sim_mw_bind(const struct sim_conn *c, const struct ibv_send_wr *wr);
const char *sim_mw_invalidate(const struct sim_conn *c, uint32_t rkey);
/* Is a window bound on @c? */
bool sim_mw_on(const struct sim_conn *c);

/* ---- sim-qp.c ---- */
int sim_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
int sim_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
int sim_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);
bool sim_sends_left(const struct fab_conn *conn);
int sim_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
int sim_arm(struct fab_conn *conn, short *events);
int sim_need_rearm(const struct fab_conn *conn);
void sim_qp_init(struct sim_conn *c);
void sim_qp_fini(struct sim_conn *c);
/* The device is gone, and with it what was posted. */
void sim_qp_vanish(struct sim_conn *c);
/* A piece, an acknowledgement or a refusal arrived. */
void sim_qp_data(struct sim_conn *c, const struct sim_wire *w);
void sim_qp_ack(struct sim_conn *c, const struct sim_wire *w);
void sim_qp_nak(struct sim_conn *c, const struct sim_wire *w);

/* ---- sim-cm.c ---- */
extern struct list sim_all_conns;	/* sim_conn.all */
struct sim_conn *sim_conn_new(struct sim_cm *cm);
/* First cause wins.  @tell: send the peer a disconnect. */
void sim_conn_fail(struct sim_conn *c, bool tell, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Who listens on @h at @addr, or NULL. */
struct sim_listener *sim_listener_find(const struct sim_host *h, const struct fab_addr *addr);
/* Report @type for @c to its user, with the private data of @w unless NULL. */
struct sim_cm_event *sim_cm_event(struct sim_conn *c, enum fab_event_type type, int status,
				  const struct sim_wire *w);

/* ---- sim-channel.c ---- */
/* Protect @c, whose peer's host is known, and its peer, which gets @peer.  False: the ends do not
 * agree. */
bool sim_channel_make(struct sim_conn *c, struct sim_channel *peer);
/* @len bytes of messages of @c are on their way. */
void sim_channel_read(const struct sim_conn *c, uint32_t len);
/* fab_conn_binding(). */
bool sim_channel_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN]);

/* ---- sim-wire.c ---- */
/* A message of @c to its peer with room for @len bytes. */
struct sim_wire *sim_wire_new(const struct sim_conn *c, enum sim_wire_type type, uint32_t len);
/* The same with private data and the addresses. */
struct sim_wire *sim_wire_private(struct sim_conn *c, enum sim_wire_type type, const void *data,
				  size_t len);
/* Takes @w.  What a connection of a killed process says is lost. */
void sim_wire_send(struct sim_conn *c, struct sim_wire *w);
/* The peer learns that nobody is here any more. */
void sim_wire_disconnect(struct sim_conn *c);

#endif
