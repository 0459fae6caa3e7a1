/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: reliable connections that speak verbs.
 *
 * Data is that of <infiniband/verbs.h>: ibv_send_wr, ibv_recv_wr, ibv_sge, ibv_wc, ibv_mr and the
 * opcode, status and access enums.  Handles are ours.  Providers: tcp (always), verbs (rdma-core),
 * and sim for tests.  A connection is polled, as a CQ is; no provider owns a thread or a loop.  The
 * static inline functions are defined in fab-io.h.
 *
 * THE SUBSET.  Send opcodes SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM,
 * and where the device has windows BIND_MW and LOCAL_INV.  No RDMA READ, no atomics: RTRS uses
 * none.
 *
 * THE PROMISES.  Each has a test in the conformance suite (tests/fabric), named by its letter.  a.
 * Send completions come in posting order, receive completions in arrival order; there is no order
 * between the two.  b. An unsignaled work request completes only when it fails.  Callers signal
 * what they want to hear of and never to make room: the fabric reclaims its queue by itself.  c.
 * After the first failure everything posted completes with IBV_WC_WR_FLUSH_ERR (the failing one may
 * tell its own status), signaled or not; then, once, fab_poll() returns -ENOTCONN ("drained") and
 * goes on to.  A partial post fails the connection.  A device that is gone, or broken, takes
 * completions with it: then drained stands for those, too.  d. The bytes of an RDMA_WRITE are
 * visible before the completion of an immediate or send posted behind it.  A window that is bound
 * in a chain is usable by the next request of that chain.  e. A send or immediate that meets no
 * posted receive is never delivered: tcp and sim fail the connection at once, verbs retries (RNR).
 * f. Nothing completes inside a post; completions come only from fab_poll().  g. A provider goes on
 * receiving while it cannot send, so two peers never block each other.  h. Post and poll may run on
 * two threads at once; posts are serialised inside; two polls of one connection must not run at
 * once.  i. Remote access is checked for key, liveness, right and range for each message; a
 * violation fails the connection and changes nothing outside the range the key gives.  A
 * zero-length RDMA_WRITE is not checked (as on a NIC).  k. When fab_rereg_mr() or fab_dereg_mr()
 * returns, no peer's byte is placed under the old key any more; as well when the completion is
 * polled of a LOCAL_INV, of a BIND_MW that takes a window of type 1 away, or of the receive that a
 * SEND_WITH_INV met.  (A window of rxe: but for a packet that was checked before.)  A connection in
 * the middle of such a placement fails.  l. A send completion (or flush) of a request says that its
 * local buffers are no longer read.  m. A window opens its range under its key from its bind on, to
 * the connections it is good for, until it is invalidated, bound anew or deallocated (see
 * fab_alloc_mw() below).  A bind or invalidate against the rules fails the connection: the post
 * returns 0, and the request completes with an error or as flushed.
 *
 * ERRORS are 0 or negative errno.  On error from a post the connection has failed: do not retry.
 * fab_post_recv() is possible from fab_create_qp() on, fab_post_send() and a useful fab_poll() when
 * connected: after fab_accept() or ESTABLISHED.
 *
 * LIFE.  active:  fab_conn_create, fab_resolve, ROUTE_RESOLVED, fab_create_qp, [post_recv],
 *                 fab_connect, ESTABLISHED | REJECTED | UNREACHABLE
 *        passive: CONNECT_REQUEST (gives a conn), fab_create_qp, [post_recv], fab_accept,
 *                 ESTABLISHED   |   fab_reject (the conn is gone)
 *        both:    ... fab_disconnect, poll until -ENOTCONN, fab_conn_destroy. */
#ifndef FABRIC_H
#define FABRIC_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

struct fab_provider;
struct fab_cm;
struct fab_listener;
struct fab_conn;
struct fab_pd;
struct fab_device_attr;

/* ---- providers and addresses (fab-addr.c) ---- */

#define FAB_ADDR_STRLEN 128		/* of fab_addr_format() and fab_addr_url() */

struct fab_addr {
	const struct fab_provider *provider;
	struct sockaddr_storage ss;
	socklen_t len;			/* 0: none given */
	/* Of the end of an AF_UNIX connection that has no name: whose it is (SO_PEERCRED). */
	pid_t pid;
	uid_t uid;
};

/* Provider by name ("tcp"), or NULL.  Any thread. */
const struct fab_provider *fab_provider_find(const char *name);
/* The name in front of "://": "tcp", "rdma". */
const char *fab_provider_name(const struct fab_provider *p);

/* Add @p to those that can be found (the simulation's); before any thread starts. */
void fab_provider_register(const struct fab_provider *p);

/* Split and resolve "HOST", "HOST:PORT", "[V6]", "[V6]:PORT", optionally with "NAME://" in front
 * (then @p is ignored, else it is the provider); or "unix:PATH", which is tcp's and absolute.
 * May block in name resolution.
 * Returns 0 with the first usable address, or -errno with the reason in @err (never empty, without
 * @text): -EINVAL malformed, -EPROTONOSUPPORT unknown or unbuilt transport, -ENOENT unknown
 * host. */
int fab_addr_parse(const char *text, const struct fab_provider *p, uint16_t default_port,
		   struct fab_addr *addr, char *err, size_t errlen);
/* Like fab_addr_parse(), for an address to connect to: port 0 is malformed. */
int fab_addr_parse_peer(const char *text, const struct fab_provider *p, uint16_t default_port,
			struct fab_addr *addr, char *err, size_t errlen);
/* "192.0.2.1:1234", "[::1]:1234", "unix:/run/a.sock", "unix:pid=42,uid=0"; no transport.  Always
 * terminates @buf; returns @buf. */
const char *fab_addr_format(const struct fab_addr *addr, char *buf, size_t len);
/* Like fab_addr_format(), without the port. */
const char *fab_addr_format_host(const struct fab_addr *addr, char *buf, size_t len);
/* Format @addr for fab_addr_parse(): "tcp://192.0.2.1:1234", "unix:/run/a.sock". */
const char *fab_addr_url(const struct fab_addr *addr, char *buf, size_t len);
/* The transport of @addr, for people: "tcp", "rdma", or "unix" for tcp over a unix socket. */
const char *fab_addr_transport(const struct fab_addr *addr);
/* Has @text, for fab_addr_parse(), the form "unix:PATH"? */
bool fab_addr_text_is_unix(const char *text);
/* Does @text, for fab_addr_parse(), name no transport, or that of @p? */
bool fab_addr_text_agrees(const char *text, const struct fab_provider *p);
static inline bool fab_addr_is_unix(const struct fab_addr *addr)
{
	return addr->len && addr->ss.ss_family == AF_UNIX;
}
/* 0 where there is none. */
uint16_t fab_addr_port(const struct fab_addr *addr);
/* Do @a and @b have the same address, port and transport, or both none? */
bool fab_addr_same(const struct fab_addr *a, const struct fab_addr *b);
/* Same host address; ports and transports are not looked at (doc/protocol.md 1.6).  Of AF_UNIX: the
 * same path, or, of ends without a name, the same user. */
bool fab_addr_same_host(const struct fab_addr *a, const struct fab_addr *b);
/* Addresses that one host may have at will: as above, or of one IPv6 network of 64 bits. */
bool fab_addr_same_net(const struct fab_addr *a, const struct fab_addr *b);

/* ---- users of this machine (fab-users.c) ---- */

#define FAB_USERS_MAX 8

struct fab_users {
	unsigned n;			/* 0: root, and the one who runs this process */
	uid_t uid[FAB_USERS_MAX];
};

/* A user by name or number.  0 or -EINVAL.  May ask the user database, as the next one. */
int fab_user_parse(const char *text, uid_t *uid);
/* "USER[,USER]...", at most FAB_USERS_MAX.  0 or -EINVAL. */
int fab_users_parse(const char *text, struct fab_users *users);
/* Is @uid one of @users? */
bool fab_users_have(const struct fab_users *users, uid_t uid);
/* "0 or 1000"; returns @buf. */
const char *fab_users_format(const struct fab_users *users, char *buf, size_t len);

/* ---- connection manager ---- */

/* Longest private data: of fab_connect() (with the IP port space, doc/protocol.md 1.3), of
 * fab_reject(), of fab_accept() and so of any event. */
#define FAB_CONNECT_DATA_MAX 56
#define FAB_REJECT_DATA_MAX 148
#define FAB_PRIVATE_DATA_MAX 196

enum fab_event_type {
	FAB_EVENT_ROUTE_RESOLVED,	/* active: now fab_pd_create, fab_create_qp */
	FAB_EVENT_CONNECT_REQUEST,	/* passive: private data of the peer's fab_connect */
	FAB_EVENT_ESTABLISHED,		/* active: private data of the peer's fab_accept;
					 * passive: none, and nothing that must be waited for */
	FAB_EVENT_REJECTED,		/* active: private data of the peer's fab_reject */
	FAB_EVENT_UNREACHABLE,		/* active: status says why (-ECONNREFUSED, -ETIMEDOUT,
					 * -EPROTO: not our protocol, -EPROTONOSUPPORT: not our
					 * version of it, ...), fab_conn_cause() in words */
	FAB_EVENT_DISCONNECTED,		/* after ESTABLISHED, where the provider sees it outside of
					 * fab_poll; answer with fab_disconnect.  status -ENODEV:
					 * the device is gone; poll then, nothing else may wake the
					 * poller */
	FAB_EVENT_LISTENER_GONE,	/* the device of listener is: destroy it.  fab_listen() may
					 * succeed again when the device is back */
};

struct fab_event {
	enum fab_event_type type;
	int status;
	struct fab_conn *conn;
	struct fab_listener *listener;	/* CONNECT_REQUEST, LISTENER_GONE */
	uint8_t private_data[FAB_PRIVATE_DATA_MAX];
	size_t private_data_len;
};

struct fab_cm_conf {
	const struct fab_provider *provider;
	/* Whom to let in; NULL: everybody.  A connection from a @peer for which it returns false is
	 * refused as soon as that address is known, as fab_reject() does with @refusal (at most
	 * FAB_REJECT_DATA_MAX); nothing is kept for it, and it is not reported.  Runs on the cm's
	 * thread and calls nothing of the fabric but addresses. */
	bool (*admit)(void *arg, const struct fab_addr *peer);
	void *admit_arg;
	const void *refusal;
	size_t refusal_len;
	/* Who may listen at an AF_UNIX address that is connected to (SO_PEERCRED).  Of others
	 * nothing is read and nothing is sent to them: UNREACHABLE with -ECONNABORTED. */
	struct fab_users servers;
};

/* An event channel with the connections and listeners that report to it.  A single thread at a time
 * calls fab_cm_*, fab_listen, fab_resolve, fab_connect, fab_accept and fab_reject of a cm.  The
 * provider drops strangers that connect and say nothing.  @conf is copied. */
int fab_cm_create(const struct fab_cm_conf *conf, struct fab_cm **cm);
/* All its connections, their protection domains and its listeners must be destroyed. */
void fab_cm_destroy(struct fab_cm *cm);
/* Readable (level) whenever fab_cm_get_event() may have something to do, time-outs included. */
int fab_cm_fd(const struct fab_cm *cm);
/* Returns 1 and fills @ev, 0 when there is nothing now, -errno when the channel is broken. */
int fab_cm_get_event(struct fab_cm *cm, struct fab_event *ev);

/* Listen on @addr; port 0 picks one (see fab_listener_addr).  -EADDRINUSE, -EADDRNOTAVAIL, ... */
int fab_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **l);
void fab_listener_addr(const struct fab_listener *l, struct fab_addr *addr);
/* The device that connections of @l will come through; -ENODEV while that is not known, as with an
 * address that several may have. */
int fab_listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr);
/* Stop listening. NULL: nothing. */
void fab_listener_destroy(struct fab_listener *l);

/* ---- connection set-up ---- */

#define FAB_DEVICE_NAME 64

struct fab_device_attr {
	uint32_t max_qp_wr;		/* per queue */
	uint32_t max_sge;		/* of a send; of a receive at most FAB_RECV_SGE_MAX */
	bool local_dma_lkey;		/* fab_pd_local_dma_lkey() works */
	bool rereg_mr;			/* fab_rereg_mr() works, and regions of length 0, and
					 * of SIZE_MAX from NULL on: memory is not looked at */
	bool suspend_mr;		/* fab_suspend_mr() works */
	bool mw_type_1, mw_type_2b;	/* one was tried, where that is a question */
	bool mw_zero_based;		/* IBV_ACCESS_ZERO_BASED of windows */
	uint32_t max_mw;
	uint32_t vendor_id, vendor_part_id;	/* of hardware; for tables of quirks (frwr.h) */
	char name[FAB_DEVICE_NAME];	/* for people; "" where it is no RDMA device */
	uint8_t port;			/* of the device; 0: not known */
};

struct fab_qp_attr {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
};

/* A new active connection.  @context comes back from fab_conn_context(). */
int fab_conn_create(struct fab_cm *cm, void *context, struct fab_conn **conn);
void fab_conn_set_context(struct fab_conn *conn, void *context);
static inline void *fab_conn_context(const struct fab_conn *conn);
/* Free @conn: never connected, rejected, unreachable, or drained; allowed in any set-up state (it
 * is then aborted).  No post or poll may be running.  No event for it comes afterwards. */
void fab_conn_destroy(struct fab_conn *conn);

/* @src may be NULL.  Reports ROUTE_RESOLVED or UNREACHABLE. */
int fab_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst);
int fab_query_device(const struct fab_conn *conn, struct fab_device_attr *attr);
/* Queues for @conn in @pd.  -EINVAL when @attr is beyond the device, -ENOMEM. */
int fab_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
/* How much memory @conn will take with such queues, about; for limits.  Any thread. */
size_t fab_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr);
/* -EINVAL when @len is above FAB_CONNECT_DATA_MAX. */
int fab_connect(struct fab_conn *conn, const void *private_data, size_t len);
/* From the return of fab_accept() on @conn may be posted to and polled, by one other thread too.
 * That thread may destroy it, so ESTABLISHED of a passive conn that was handed over is not for
 * looking at.  On error @conn is still the caller's, to destroy. */
int fab_accept(struct fab_conn *conn, const void *private_data, size_t len);
/* Refuse and free @conn. */
void fab_reject(struct fab_conn *conn, const void *private_data, size_t len);
void fab_conn_addrs(const struct fab_conn *conn, struct fab_addr *local, struct fab_addr *peer);

/* ---- protection domain and memory ---- */

/* On the device of @conn (known from ROUTE_RESOLVED, CONNECT_REQUEST).  Each path has one pd. */
int fab_pd_create(struct fab_conn *conn, struct fab_pd **pd);
/* All memory regions, windows and connections of it must be gone. */
void fab_pd_destroy(struct fab_pd *pd);
/* An lkey that is good for any local memory as a send source (not to receive into).  False:
 * register instead. */
bool fab_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey);

/* Zeroed memory for regions of @pd, or of another pd of its provider; whole pages, which cost
 * nothing until touched or registered.  fab_free() takes the same length, when no region has the
 * memory any more, which may outlive @pd.  Any thread.  NULL with errno. */
void *fab_alloc(struct fab_pd *pd, size_t length);
/* Free memory of fab_alloc(), with the same @length. */
void fab_free(void *mem, size_t length);

/* @access: IBV_ACCESS_LOCAL_WRITE | _REMOTE_WRITE | _REMOTE_READ | _MW_BIND.  @length 0 registers
 * nothing that can be reached: a region to be filled by fab_rereg_mr().  Any thread.  NULL with
 * errno. */
struct ibv_mr *fab_reg_mr(struct fab_pd *pd, void *addr, size_t length, int access);
/* As fab_reg_mr(), and the first byte is called @iova: by peers, in elements with the lkey, and in
 * binds of windows.  So a peer need not be told where memory lies.  @iova lies in its page as @addr
 * does in its own.  A device that cannot do that calls the byte @addr: see fab_mr_iova(). */
struct ibv_mr *fab_reg_mr_iova(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access);
/* The name of the first byte of @mr: its address if nothing else was said. */
static inline uint64_t fab_mr_iova(const struct ibv_mr *mr);
/* Give @mr another range and other rights under a fresh rkey.  Promise k for the old key.  Any
 * thread, completion handlers too; one at a time for one @mr.  Costs a few atomic operations while
 * nothing is placed under the old key, else it waits for polls of the pd's connections to return.
 * -ENOTSUP without fab_device_attr.rereg_mr, -EBUSY while a window is bound in @mr. */
static inline int fab_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access);
/* As fab_rereg_mr(), and the first byte is called @iova: any, because pages translate nothing here.
 *  A provider that cannot do that calls the byte @addr. */
static inline int fab_rereg_mr_iova(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova,
				    int access);
/* Like fab_rereg_mr() to length 0: no peer can reach any byte through @mr, whose key is dead. */
static inline int fab_revoke_mr(struct ibv_mr *mr);
/* Close the key of @mr to peers, and open the same key again.  While it is closed a peer's write is
 * one under a dead key, and promise k holds when fab_suspend_mr() returns; locally @mr may not be
 * used either.  One at a time for one @mr; a suspend of a closed one, a resume of an open one do
 * nothing.  Costs as fab_rereg_mr().  -ENOTSUP without fab_device_attr.suspend_mr, -EBUSY while a
 * window is bound in @mr; and of a resume -EINVAL when @mr has length 0. */
static inline int fab_suspend_mr(struct ibv_mr *mr);
static inline int fab_resume_mr(struct ibv_mr *mr);
/* No window is bound in it. */
void fab_dereg_mr(struct ibv_mr *mr);
/* @mr is of @pd, has all of @access and covers the range, which begins at what @mr calls @addr. */
static inline bool fab_mr_covers(const struct ibv_mr *mr, const struct fab_pd *pd, uint64_t addr,
				 uint64_t len, int access);

/* ---- memory windows: keys that work requests give and take ---- */

#define FAB_MW_LEN_MAX (1ull << 31)

/* A window, bound to nothing.  Any thread.  NULL with errno; EOPNOTSUPP: there are none of @type.
 *
 * IBV_WR_BIND_MW binds it to bind_info.length bytes at bind_info.addr of bind_info.mr, which has
 * IBV_ACCESS_MW_BIND, and LOCAL_WRITE if mw_access_flags has REMOTE_WRITE.  The region needs no
 * remote right: its memory is then reached through windows only.  bind_mw.rkey becomes the key.
 *
 *	IBV_MW_TYPE_2	is good on the connection that carried the bind, until LOCAL_INV there or
 *			SEND_WITH_INV of its peer.  Against the rules: a bind of a bound one, or
 *			to 0 bytes; an invalidate of a free one.  Any key with the upper 24 bits
 *			of ibv_mw.rkey that differs from the last.
 *	IBV_MW_TYPE_1	is good on all connections of the pd, until bound anew on any of them: to
 *			0 bytes (mr is any region of the pd, not NULL) to revoke it.  The key is
 *			ibv_inc_rkey(ibv_mw.rkey).  LOCAL_INV, SEND_WITH_INV: against the rules.
 *
 * The peer calls a byte of a window as the window's region calls it; with IBV_ACCESS_ZERO_BASED in
 * mw_access_flags by its place in the window (fab_device_attr.mw_zero_based; else malformed).
 *
 * ibv_mw.rkey is the last key that was bound.  The caller stores it there when the post was taken,
 * before anybody can post the next bind; the fabric reads it in a post and does not change it.
 * Whether a flushed bind or invalidate has been done is not known: deallocate the window.
 *
 * No LOCAL_INV of what the peer may be invalidating now (it was asked to and has not answered).
 * Such a race only the device sees, and rxe's kernel panics.  Allocate windows after the queues of
 * the connections that will use them: the kernel takes the objects of a killed process away newest
 * first, and rxe waits 50 s for a queue pair that has a window. */
struct ibv_mw *fab_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type);
/* Bound or not; no request with it is posted, or its connection has drained.  Before the connection
 * it is bound on is destroyed.  Returns 0 or -errno: then it still exists.  Nobody begins to write
 * under its key any more, but what has arrived may still be placed (a packet, on rxe), until its
 * region is deregistered or the connections that it was good on have drained. */
int fab_dealloc_mw(struct ibv_mw *mw);

/* ---- IO ---- */

/* Embedded in its owner; wr_id of every work request is a struct fab_cqe *. */
struct fab_cqe {
	/* On the polling thread.  When wc->status is not IBV_WC_SUCCESS only wr_id and status are
	 * valid.  May post; may not poll or destroy @conn. */
	void (*done)(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
};

/* Largest message, most elements of a posted receive's list. */
#define FAB_MSG_MAX (1u << 30)
#define FAB_RECV_SGE_MAX 4

/* Post a chain.  Any thread.  Work requests and SGE lists may live on the stack, are not changed;
 * buffers, and every fab_cqe named by wr_id, live until their completion or flush. A buffer of an
 * unsignaled request lives until promise l is known from a later signaled one, or drained.
 *
 * IBV_SEND_INLINE is a wish, for a message of some hundred bytes at most, whose elements name
 * addresses of this process: verbs copies the bytes in the post if there is room for them in the
 * device's queue, and does not look at their lkeys then.  Elsewhere it changes nothing, and nowhere
 * how long buffers live.
 *
 * On a failed connection posts return 0 and flush until it is drained; from then on they return
 * -ENOTCONN and take nothing.  Any other error fails the connection and may have taken a part of
 * the chain: only drained tells that all of it is free again.
 *  -ENOMEM	the queue is full (more than max_send_wr or max_recv_wr not yet done)
 *  -EINVAL	malformed, a local key that does not cover its element, not yet connected
 *  -EOPNOTSUPP	an opcode the device does not have; or a bind or invalidate that it refuses or
 *		does not do as is said above, whatever it offers */
static inline int fab_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
static inline int fab_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);

/* Take up to @n completions.  Returns how many, or -ENOTCONN when drained.  Makes progress: reads
 * and writes the socket on tcp.  A call that returns @n may have left more behind.  After one that
 * returned less fab_arm() is to be called before the next, because tcp does not ask the kernel for
 * what cannot be there: a busy poller arms, then polls. */
static inline int fab_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
/* Poll and call done() for each completion, at most about @budget.  As fab_poll(); -ENOTCONN only
 * when there was nothing to call. */
static inline int fab_dispatch(struct fab_conn *conn, int budget);

/* Descriptor to wait on; constant from fab_create_qp() on. */
static inline int fab_conn_fd(const struct fab_conn *conn);
/* Before sleeping: returns 0 with the poll(2) events to wait for on the descriptor, or 1 when
 * there is work already and fab_poll() is to be called again.  Events are levels: who takes
 * edges arms and polls once more after a POLLRDHUP, because a poll may stop before the end.
 * Polling thread. */
static inline int fab_arm(struct fab_conn *conn, short *events);
/* fab_arm() makes system calls if there is nothing to poll: other work comes first.  Constant. */
static inline bool fab_arm_is_dear(const struct fab_conn *conn);
/* Not 0 when what the last fab_arm() answered has become too little because of a post.  The thread
 * that posted then wakes the sleeper to arm again.  Any thread. */
#define FAB_REARM_EVENTS 0x1		/* tcp: POLLOUT is needed, or the socket is broken */
#define FAB_REARM_DONE 0x2		/* a send completion waits to be polled; who waits for the
					 * peer's answer anyway may leave it there until then */
static inline int fab_need_rearm(const struct fab_conn *conn);

/* Start to fail @conn: the peer is told, everything posted will flush, then drained.  Idempotent.
 * Any thread. */
void fab_disconnect(struct fab_conn *conn);
/* First cause of failure in words, "" while there is none; valid until destroy.  Any thread. */
const char *fab_conn_cause(const struct fab_conn *conn);

#include "fab-provider.h"
#include "fab-io.h"

#endif
