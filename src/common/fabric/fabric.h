/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: reliable connections that speak verbs.
 *
 * Data types are those of <infiniband/verbs.h>: ibv_send_wr, ibv_recv_wr, ibv_sge, ibv_wc, ibv_mr
 * and the opcode, status and access enums.  Handles are ours.  Providers: tcp (always), verbs
 * (rdma-core), and sim for tests.  A connection is polled, as a CQ is; no provider owns a loop, or
 * a thread that a connection needs.  The static inline functions are defined in fab-provider.h.
 *
 * THE SUBSET.  Send opcodes SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM;
 * BIND_MW and LOCAL_INV, if the device has windows.  No RDMA READ, no atomics: RTRS uses none.
 *
 * THE PROMISES.  Each has a test in the conformance suite (tests/fabric), named by its letter.
 *  a. Send completions come in posting order, receive completions in arrival order; between sends
 *     and receives no order holds.
 *  b. An unsignaled work request completes only when it fails.  Callers signal the requests whose
 *     completion they need, never to make room: the fabric reclaims its queue by itself.
 *  c. After the first failure every posted request completes with IBV_WC_WR_FLUSH_ERR, signaled or
 *     not (the failing request may have a status of its own).  Then fab_poll() returns -ENOTCONN
 *     ("drained"), and so does each later call.  A partial post fails the connection.  A device
 *     that is gone, is broken or flushes nothing for a while loses completions: drained then
 *     stands for these, too.
 *  d. The bytes of an RDMA_WRITE are visible before the completion of an immediate or send posted
 *     behind the write.  A window bound in a chain is usable by the next request of the chain.
 *  e. A send or immediate that meets no posted receive is never delivered: tcp and sim fail the
 *     connection at once, verbs retries (RNR).
 *  f. Nothing completes inside a post; completions come only from fab_poll().
 *  g. A provider goes on receiving while sends are blocked, so two peers never block each other.
 *  h. Post and poll may run on two threads at once; posts are serialised inside; two polls of a
 *     connection must not overlap.
 *  i. Remote access is checked for key, liveness, right and range for each message.  A violation
 *     fails the connection and changes no byte outside the range of the key.  A zero-length
 *     RDMA_WRITE is not checked (as on a NIC).
 *  k. No byte of a peer is placed under an old key after the return of fab_rereg_mr() or
 *     fab_dereg_mr().  The same holds after the polled completion of a LOCAL_INV, of a BIND_MW that
 *     revokes a window of type 1, or of a receive with SEND_WITH_INV.  (A window of rxe may still
 *     place a packet checked before.)  A connection in the middle of such a placement fails.
 *     Over verbs the key of a region that is freed behind the last connection of its pd may outlive
 *     the call: a later connection of the same pd could use the key until the device lets go.
 *  l. A send completion (or flush) says that the request's local buffers are no longer read.
 *  m. A window opens its range under its key to the connections that fab_alloc_mw() names: from
 *     its bind on, until the window is invalidated, bound again or deallocated.  A bind or
 *     invalidate against the rules fails the connection: the post returns 0, and the request
 *     completes with an error or as flushed.
 *  n. Between fab_hold_mr() and fab_release_mr() no byte of a peer is placed under the key, and a
 *     write that has not begun is placed afterwards, as if it had come then.
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
struct fab_tls;

/* ---- providers and addresses (fab-addr.c) ---- */

#define FAB_ADDRS_MAX 16			/* addresses of one name that are taken */
#define FAB_ADDR_STRLEN 128		/* of fab_addr_format() and fab_addr_url() */

struct fab_addr {
	const struct fab_provider *provider;
	struct sockaddr_storage ss;
	socklen_t len;			/* 0: none given */
	/* Of an end of an AF_UNIX connection without a name: its process and user (SO_PEERCRED). */
	pid_t pid;
	uid_t uid;
};

/* The provider called @name ("tcp"), or NULL.  Any thread. */
const struct fab_provider *fab_provider_find(const char *name);
/* The name of @p, as in front of "://": "tcp", "rdma". */
const char *fab_provider_name(const struct fab_provider *p);

/* True if connections of @p may have TLS. */
bool fab_provider_has_tls(const struct fab_provider *p);

/* Add @p (the simulation's) to the providers of fab_provider_find(); before any thread starts. */
void fab_provider_register(const struct fab_provider *p);

/* Split and resolve "HOST", "HOST:PORT", "[V6]" or "[V6]:PORT", or with "NAME://" in front, where
 * NAME replaces @p, the provider; or "unix:PATH", an absolute path, of tcp.  May block in name
 * resolution.
 *
 * Returns 0 with the first usable address, or -errno with the reason in @err (never empty, without
 * @text):
 *  -EINVAL		malformed
 *  -EPROTONOSUPPORT	unknown or unbuilt transport
 *  -ENOENT		unknown host */
int fab_addr_parse(const char *text, const struct fab_provider *p, uint16_t default_port,
		   struct fab_addr *addr, char *err, size_t errlen);
/* The same for all addresses of the name, each once, in the resolver's order, @max at most: @all
 * has @max, at least one.  Returns their number, or -errno as fab_addr_parse(). */
int fab_addr_parse_all(const char *text, const struct fab_provider *p, uint16_t default_port,
		       struct fab_addr *all, unsigned max, char *err, size_t errlen);
/* The same for a host alone, as the resolver takes it; NULL: the two addresses of loopback.
 * Returns their number, or -ENOENT with the resolver's reason in @why. */
int fab_addr_resolve(const char *host, const struct fab_provider *p, uint16_t port,
		     struct fab_addr *all, unsigned max, char *why, size_t len);
/* Like fab_addr_parse(), and never blocks: of a name, and of an address with a scope, @addr has the
 * provider alone.  With a @default_port port 0 is malformed. */
int fab_addr_parse_text(const char *text, const struct fab_provider *p, uint16_t default_port,
			struct fab_addr *addr, char *err, size_t errlen);
/* Format @addr without its transport: "192.0.2.1:1234", "[::1]:1234", "unix:/run/a.sock",
 * "unix:pid=42,uid=0".  Always terminates @buf; returns @buf. */
const char *fab_addr_format(const struct fab_addr *addr, char *buf, size_t len);
/* Like fab_addr_format(), without the port. */
const char *fab_addr_format_host(const struct fab_addr *addr, char *buf, size_t len);
/* Format @addr for fab_addr_parse(): "tcp://192.0.2.1:1234", "unix:/run/a.sock". */
const char *fab_addr_url(const struct fab_addr *addr, char *buf, size_t len);
/* The transport of @addr, for people: "tcp", "rdma", or "unix" for tcp over a unix socket. */
const char *fab_addr_transport(const struct fab_addr *addr);
/* True if @text, for fab_addr_parse(), has the form "unix:PATH". */
bool fab_addr_text_is_unix(const char *text);
/* True if @text, for fab_addr_parse(), names the transport of @p or none. */
bool fab_addr_text_agrees(const char *text, const struct fab_provider *p);
/* True if @addr is an AF_UNIX address. */
static inline bool fab_addr_is_unix(const struct fab_addr *addr)
{
	return addr->len && addr->ss.ss_family == AF_UNIX;
}
/* If @addr, the peer of the socket @fd, is AF_UNIX, name the peer by its user and its process; the
 * name that the peer gave its socket is forgotten. */
void fab_addr_unix_peer(int fd, struct fab_addr *addr);
/* The port of @addr; 0: no port. */
uint16_t fab_addr_port(const struct fab_addr *addr);
/* Set the port of @addr, if it has ports. */
void fab_addr_set_port(struct fab_addr *addr, uint16_t port);
/* True if @a and @b have the same address, port and transport, or both none. */
bool fab_addr_same(const struct fab_addr *a, const struct fab_addr *b);
/* True if @a and @b have the same host address; ports and transports are ignored (doc/protocol.md
 * 1.6).  Of AF_UNIX: the same path, or, without a name, the same user. */
bool fab_addr_same_host(const struct fab_addr *a, const struct fab_addr *b);
/* True if a host may have both addresses at will: fab_addr_same_host(), or the same IPv6 network of
 * 64 bits. */
bool fab_addr_same_net(const struct fab_addr *a, const struct fab_addr *b);
/* The number of the net of @addr: of IP, or of a peer of AF_UNIX, whose user is its net.  Two
 * addresses have the same number if fab_addr_same_net() says so, and in one more case: IPv4 as it
 * is, and written as IPv6.  UINT64_MAX is no net's. */
uint64_t fab_addr_net(const struct fab_addr *addr);

/* ---- users of this machine (fab-names.c) ---- */

#define FAB_USERS_MAX 8

struct fab_users {
	unsigned n;			/* 0: root, and the user of this process */
	uid_t uid[FAB_USERS_MAX];
};

/* Find a user by name or number.  Returns 0 or -EINVAL.  May ask the user database. */
int fab_user_parse(const char *text, uid_t *uid);
/* Parse "USER[,USER]...", at most FAB_USERS_MAX.  Returns 0 or -EINVAL.  May ask the user
 * database. */
int fab_users_parse(const char *text, struct fab_users *users);
/* True if @uid is in @users. */
bool fab_users_have(const struct fab_users *users, uid_t uid);
/* Format @users: "0 or 1000".  Returns @buf. */
const char *fab_users_format(const struct fab_users *users, char *buf, size_t len);

/* ---- connection manager ---- */

/* Longest private data: of fab_connect() (with the IP port space, doc/protocol.md 1.3), of
 * fab_reject(), of fab_accept() and so of any event. */
#define FAB_CONNECT_DATA_MAX 56
#define FAB_REJECT_DATA_MAX 148
#define FAB_PRIVATE_DATA_MAX 196

enum fab_event_type {
	FAB_EVENT_ROUTE_RESOLVED,	/* active: call fab_pd_create, fab_create_qp now */
	FAB_EVENT_CONNECT_REQUEST,	/* passive: private data of the peer's fab_connect */
	FAB_EVENT_ESTABLISHED,		/* active: private data of the peer's fab_accept;
					 * passive: none, and need not be waited for */
	FAB_EVENT_REJECTED,		/* active: private data of the peer's fab_reject */
	FAB_EVENT_UNREACHABLE,		/* active: status has the reason (-ECONNREFUSED, -ETIMEDOUT,
					 * -EPROTO: not our protocol, -EPROTONOSUPPORT: another
					 * version, -EUSERS: too many in set-up, -EOPNOTSUPP:
					 * an RDMA device without RDMA_WRITE_WITH_IMM, ...),
					 * fab_conn_cause() in words */
	FAB_EVENT_DISCONNECTED,		/* after ESTABLISHED, if the provider sees the end outside
					 * of fab_poll; answer with fab_disconnect.  status -ENODEV:
					 * the device is gone; poll then, because no other event may
					 * wake the poller */
	FAB_EVENT_LISTENER_GONE,	/* the listener's device is gone: destroy the listener.
					 * fab_listen() may succeed again when the device is back */
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
	/* True if @peer may connect; NULL: every peer.  The provider refuses other peers as soon as
	 * their address is known, as fab_reject() does with @refusal (at most FAB_REJECT_DATA_MAX).
	 * Nothing is kept for a refused peer, and no event comes.  Runs on the cm's thread; calls
	 * only address functions of the fabric. */
	bool (*admit)(void *arg, const struct fab_addr *peer);
	/* The passive side has closed a connection of @peer that sent something, and no good
	 * CONNECT: @why says so in words.  @tls: for TLS, the peer's or ours.  For a log and its
	 * counters, which are the callee's to bound; NULL: the provider logs a line.  As
	 * admit(). */
	void (*refused)(void *arg, const struct fab_addr *peer, bool tls, const char *why);
	void *admit_arg;		/* of both */
	const void *refusal;
	/* The private data of a reject, as @refusal, for an unproven peer (unproven.h) that others
	 * push out before TLS has spoken to it; NULL: none is sent. */
	const void *pushed_out;
	size_t refusal_len;		/* of both */
	/* The active side is about to send @data, the @len bytes of fab_connect() on @conn, and
	 * knows by now what protects @conn (fab_conn_binding()): may change @data.  Returns NULL,
	 * or the reason not to send it, static text: fab_connect() fails with -EACCES, or
	 * UNREACHABLE follows with it.  Runs on the cm's thread; calls only functions that report
	 * on @conn.  A connection that begins again in plain is sealed again.  NULL: nothing to
	 * do. */
	const char *(*seal)(struct fab_conn *conn, void *data, size_t len);
	/* The users that may listen at an AF_UNIX address (SO_PEERCRED).  A connect to a listener
	 * of another user is UNREACHABLE with -ECONNABORTED: nothing is read from and sent to that
	 * user. */
	struct fab_users servers;
	/* How connections are protected (fab-tls.h), which outlives the cm; NULL: not at all.  For
	 * tcp and unix sockets; a cm of another provider refuses FAB_TLS_REQUIRE with
	 * -EPROTONOSUPPORT, unless fab_tls.spares_rdma. */
	const struct fab_tls *tls;
	/* Over TCP a peer that acknowledges nothing for so long is dead; 0: 30 s.  While nothing is
	 * sent, probes are (SO_KEEPALIVE).  A connection that was accepted ends by itself then,
	 * also if its peer has closed the window for so long (tcp(7), TCP_USER_TIMEOUT): a client
	 * that does not read.  A server does not read while its storage stands still, so the
	 * active side asks fab_conn_unheard(). */
	unsigned silence_ms;
};

/* Make an event channel for connections and listeners.  A single thread at a time calls fab_cm_*,
 * fab_listen, fab_resolve, fab_connect, fab_accept and fab_reject of a cm.  The provider drops
 * peers that connect and send nothing.  @conf is copied. */
int fab_cm_create(const struct fab_cm_conf *conf, struct fab_cm **cm);
/* Set .silence_ms of connections to come; 0: the default.  @cm has no connection. */
void fab_cm_set_silence(struct fab_cm *cm, unsigned silence_ms);
/* Destroy @cm, whose connections, their protection domains and listeners are destroyed. */
void fab_cm_destroy(struct fab_cm *cm);
/* The descriptor that is readable (level) when fab_cm_get_event() may have work, time-outs
 * included. */
int fab_cm_fd(const struct fab_cm *cm);
/* Take the next event: returns 1 and fills @ev, 0 without an event now, -errno when the channel is
 * broken. */
int fab_cm_get_event(struct fab_cm *cm, struct fab_event *ev);

/* Listen on @addr; port 0 picks a port (see fab_listener_addr).  -EADDRINUSE, -EADDRNOTAVAIL,
 * -EOPNOTSUPP: an RDMA device without RDMA_WRITE_WITH_IMM, ... */
int fab_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **l);
/* The address of @l, with the port that was picked. */
void fab_listener_addr(const struct fab_listener *l, struct fab_addr *addr);
/* The attributes of the device of @l's connections; -ENODEV while the device is not known, as with
 * an address that several devices may have. */
int fab_listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr);
/* Stop listening and free @l; NULL: do nothing. */
void fab_listener_destroy(struct fab_listener *l);

/* ---- connection set-up ---- */

#define FAB_DEVICE_NAME 64

/* Abilities that a device may lack, as bits. */
enum fab_cap {
	/* Windows of this type work; tried, if the device's own flags are not enough. */
	FAB_CAP_MW_TYPE_1 = 1 << IBV_MW_TYPE_1,
	FAB_CAP_MW_TYPE_2B = 1 << IBV_MW_TYPE_2,
	FAB_CAP_MW_ZERO_BASED = 8,	/* IBV_ACCESS_ZERO_BASED of windows */
	FAB_CAP_DMA_LKEY = 16,		/* fab_pd_local_dma_lkey() works */
	/* fab_rereg_mr() works, and regions of length 0, and of SIZE_MAX from NULL on: memory is
	 * not touched. */
	FAB_CAP_REREG_MR = 32,
	FAB_CAP_SUSPEND_MR = 64,	/* fab_suspend_mr() and fab_hold_mr() work */
};
/* The bit of windows of @type, an enum ibv_mw_type. */
#define FAB_CAP_MW(type) (1u << (type))

struct fab_device_attr {
	uint32_t max_qp_wr;		/* per queue */
	uint32_t max_sge;		/* of a send; of a receive at most FAB_RECV_SGE_MAX */
	unsigned caps;			/* of enum fab_cap */
	uint32_t max_mw;
	uint32_t vendor_id, vendor_part_id;	/* of hardware; for tables of quirks (frwr.h) */
	char name[FAB_DEVICE_NAME];	/* for people; "": no RDMA device */
	uint8_t port;			/* of the device; 0: not known */
};

struct fab_qp_attr {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
};

/* Make an active connection.  @context comes back from fab_conn_context(). */
int fab_conn_create(struct fab_cm *cm, void *context, struct fab_conn **conn);
/* Replace the context of @conn. */
void fab_conn_set_context(struct fab_conn *conn, void *context);
/* The context of @conn. */
static inline void *fab_conn_context(const struct fab_conn *conn);
/* Free @conn: never connected, rejected, unreachable, or drained.  Allowed in any state of the
 * set-up, which is then aborted.  Does not wait for a device that takes long to let go of a drained
 * connection; neither do fab_dereg_mr(), fab_dealloc_mw(), fab_pd_destroy() and fab_cm_destroy()
 * behind the last connection of the pd.  No post or poll may be running.  No event of @conn comes
 * afterwards. */
void fab_conn_destroy(struct fab_conn *conn);

/* Find the way to @dst, from @src if not NULL.  Reports ROUTE_RESOLVED or UNREACHABLE. */
int fab_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst);
/* The attributes of the device of @conn. */
int fab_query_device(const struct fab_conn *conn, struct fab_device_attr *attr);
/* Make the queues of @conn in @pd, of a connection of the same cm.  Once for a connection.  -EINVAL
 * when @attr is beyond the device, -ENOMEM. */
int fab_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
/* Roughly the memory that @conn takes with queues of @attr, for limits.  Any thread. */
size_t fab_qp_memory(const struct fab_conn *conn, const struct fab_qp_attr *attr);
/* Connect; reports ESTABLISHED, REJECTED or UNREACHABLE.  -EINVAL when @len is above
 * FAB_CONNECT_DATA_MAX. */
int fab_connect(struct fab_conn *conn, const void *private_data, size_t len);
/* Accept @conn.  From the return on @conn may be posted to and polled, on another thread, too.  The
 * other thread may destroy @conn, so ignore the ESTABLISHED of a @conn that was handed over.  On
 * error @conn is still the caller's, to destroy. */
int fab_accept(struct fab_conn *conn, const void *private_data, size_t len);
/* Refuse and free @conn. */
void fab_reject(struct fab_conn *conn, const void *private_data, size_t len);
/* The addresses of both ends of @conn; either pointer may be NULL. */
void fab_conn_addrs(const struct fab_conn *conn, struct fab_addr *local, struct fab_addr *peer);

/* True if the peer of @conn, which is connected, has acknowledged nothing for
 * fab_cm_conf.silence_ms although it was sent again.  A peer that says its window is closed has
 * acknowledged.  False over other transports than TCP, which notice by themselves. */
bool fab_conn_unheard(const struct fab_conn *conn);

/* ---- who the peer has proven to be ---- */

/* Bytes of an identity with its end: a kind, "psk:" or "cert:", and a name. */
#define FAB_IDENTITY_LEN 136
#define FAB_CIPHER_LEN 48

struct fab_identity {
	/* "psk:NAME", by a key that the peer has (secrets.h); or "cert:NAME", the common name
	 * in the peer's certificate, which was verified.  NAME has 1 to 128 characters without
	 * spaces, ':' and control characters.  "": the peer has proven nothing, or its certificate
	 * has no such name. */
	char name[FAB_IDENTITY_LEN];
	char cipher[FAB_CIPHER_LEN];	/* "TLS1.3 AES-128-GCM"; "": in plain */
	uint64_t key;			/* psk.serial, 0: none */
	int64_t key_since_s;		/* psk.since_s */
};

/* Tell in @id who the peer of @conn has proven to be: all empty on a connection without TLS.
 * Constant from CONNECT_REQUEST or ESTABLISHED on.  The set-up's thread. */
void fab_conn_identity(const struct fab_conn *conn, struct fab_identity *id);

/* What the network between the ends of a connection takes, in bytes of a packet of IP with its
 * headers, or of a packet's data over RDMA.  0: not known, or no network (AF_UNIX). */
struct fab_mtu {
	uint32_t path;			/* the MTU of the way to the peer, as this end knows it */
	uint32_t sent;			/* what this end sends at most: less than @path if the peer
					 * has asked for less */
};

/* Tell in @mtu what the way to the peer of @conn takes; all 0 unless @conn is connected.  Any
 * thread, before fab_conn_destroy(). */
void fab_conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu);
/* The same of the socket @fd.  Any thread. */
void fab_mtu_of_socket(int fd, struct fab_mtu *mtu);

/* False: the certificate of the peer of @conn was verified, and would not pass by the certificates
 * that the end has by now (secrets-set.h).  As fab_conn_identity(). */
bool fab_conn_trusted(const struct fab_conn *conn);

#define FAB_BINDING_LEN 32

/* Fill @out with bytes that both ends of @conn know and that no other connection has: of TLS (an
 * exporter, RFC 5705).  False, and zeroes: @conn is in plain.  As fab_conn_identity(), and in
 * seal() of struct fab_cm_conf. */
bool fab_conn_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN]);

/* ---- protection domain and memory ---- */

/* Make a protection domain on the device of @conn, known from ROUTE_RESOLVED or CONNECT_REQUEST on.
 * Each path has one pd.  -EBUSY: the device has not let go of earlier connections for a while. */
int fab_pd_create(struct fab_conn *conn, struct fab_pd **pd);
/* Destroy @pd, whose regions, windows and connections are destroyed. */
void fab_pd_destroy(struct fab_pd *pd);
/* Sets @lkey to a key good for any local memory as a send source (not to receive into).  False:
 * none; register memory instead. */
bool fab_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey);

/* Zeroed memory for regions of @pd, or of another pd of the provider; whole pages, without cost
 * until touched or registered.  Give the memory to fab_free() when no region holds it any more; the
 * memory may outlive @pd.  Any thread.  NULL with errno.  Where regions can be held, memory is in
 * the smallest pages, whatever the system prefers: what is touched is little, and a part can be
 * given back. */
void *fab_alloc(struct fab_pd *pd, size_t length);
/* Free memory of fab_alloc(), with the same @length. */
void fab_free(void *mem, size_t length);
/* Give the pages that lie wholly in a part of such memory back to the system: their bytes become
 * zero, and cost nothing until touched again.  No other thread, peer or device uses them. */
void fab_give_back(void *mem, size_t length);

/* Register [@addr, @addr + @length).  @access: IBV_ACCESS_LOCAL_WRITE | _REMOTE_WRITE |
 * _REMOTE_READ | _MW_BIND.  @length 0 makes an empty region, for fab_rereg_mr() to fill.  Any
 * thread.  NULL with errno. */
struct ibv_mr *fab_reg_mr(struct fab_pd *pd, void *addr, size_t length, int access);
/* Register as fab_reg_mr(), and name the first byte @iova: for peers, in elements with the lkey,
 * and in binds of windows.  So a peer does not learn where memory lies.  @iova has the same offset
 * in its page as @addr.  A device without such names keeps the name @addr: see fab_mr_iova(). */
struct ibv_mr *fab_reg_mr_iova(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access);
/* The name of the first byte of @mr: its address, unless registered with another name. */
static inline uint64_t fab_mr_iova(const struct ibv_mr *mr);
/* Give @mr another range and other rights under a fresh rkey.  Promise k for the old key.  Any
 * thread, completion handlers too; a single call at a time for @mr.  Costs a few atomic operations
 * while no placement runs under the old key, else waits for polls of the pd's connections to
 * return.  -ENOTSUP without FAB_CAP_REREG_MR, -EBUSY while a window is bound in @mr. */
static inline int fab_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access);
/* Call fab_rereg_mr(), and name the first byte @iova, any value, because no pages are translated
 * here.  A provider without such names keeps the name @addr. */
static inline int fab_rereg_mr_iova(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova,
				    int access);
/* Empty @mr, like fab_rereg_mr() to length 0: no peer can reach any byte through @mr, whose key is
 * dead. */
static inline int fab_revoke_mr(struct ibv_mr *mr);
/* Close the key of @mr to peers; fab_resume_mr() opens the same key again.  Until then a peer's
 * write is a write under a dead key, and local use of @mr is forbidden.  Promise k holds when the
 * call returns.  A single call at a time for @mr; suspending a closed @mr does nothing.  Costs as
 * fab_rereg_mr().  -ENOTSUP without FAB_CAP_SUSPEND_MR, -EBUSY while a window is bound in
 * @mr. */
static inline int fab_suspend_mr(struct ibv_mr *mr);
/* Open the key of @mr again; an open @mr stays as is.  Calls and errors as fab_suspend_mr();
 * -EINVAL when @mr has length 0. */
static inline int fab_resume_mr(struct ibv_mr *mr);
/* Hold back peers' writes under the key of @mr (promise n): the thread that polls a connection with
 * such a write waits until fab_release_mr().  Call that soon, on this thread, and wait for no other
 * thread before.  Holds one region of a pd at a time; waits for the former.  0; -EBUSY: @mr is
 * closed, or a peer has begun to write under its key since the key was opened; -ENOTSUP without
 * FAB_CAP_SUSPEND_MR.  Any thread.  Writes without bytes are not held back. */
static inline int fab_hold_mr(struct ibv_mr *mr);
/* Let peers write to @mr, which is held. */
static inline void fab_release_mr(struct ibv_mr *mr);
/* Free @mr, in which no window is bound.  Promise k. */
void fab_dereg_mr(struct ibv_mr *mr);
/* True if @mr is of @pd, has all rights of @access and covers @len bytes from the byte named
 * @addr. */
static inline bool fab_mr_covers(const struct ibv_mr *mr, const struct fab_pd *pd, uint64_t addr,
				 uint64_t len, int access);

/* ---- memory windows: keys that work requests give and take ---- */

#define FAB_MW_LEN_MAX (1ull << 31)

/* A window, bound to nothing.  Any thread.  NULL with errno; EOPNOTSUPP: no windows of @type.
 *
 * IBV_WR_BIND_MW binds a window to bind_info.length bytes at bind_info.addr of bind_info.mr, which
 * has IBV_ACCESS_MW_BIND, and LOCAL_WRITE if mw_access_flags has REMOTE_WRITE.  The region needs no
 * remote right: its memory is then reached through windows only.  bind_mw.rkey becomes the key.
 *
 *	IBV_MW_TYPE_2	is good on the connection that carried the bind, until LOCAL_INV there or
 *			SEND_WITH_INV of its peer.  Against the rules: a bind of a bound window, or
 *			to 0 bytes; an invalidate of a free window.  The key: any with the upper
 *			24 bits of ibv_mw.rkey that differs from the last.
 *	IBV_MW_TYPE_1	is good on all connections of the pd, until bound again on any connection.
 *			A bind to 0 bytes (mr is any region of the pd, not NULL) revokes.  The key
 *			is ibv_inc_rkey(ibv_mw.rkey).  LOCAL_INV, SEND_WITH_INV: against the rules.
 *
 * The name of a byte is the same in a window as in the window's region; with IBV_ACCESS_ZERO_BASED
 * in mw_access_flags its offset in the window (FAB_CAP_MW_ZERO_BASED; else malformed).
 *
 * ibv_mw.rkey is the last key that was bound.  After a successful post the caller stores the key in
 * ibv_mw.rkey, before the next bind can be posted; the fabric only reads ibv_mw.rkey, in a post.
 * Whether a flushed bind or invalidate was carried out is unknown: deallocate the window.
 *
 * Post no LOCAL_INV of a window while the peer may be invalidating that window: was asked to, and
 * has not answered.  Only the device sees such a race, and rxe's kernel panics.  Allocate windows
 * after the queues of the connections that will use the windows: the kernel destroys the objects of
 * a killed process newest first, and rxe waits 50 s for a queue pair with a window. */
struct ibv_mw *fab_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type);
/* Free @mw, bound or not, before the connection of its bind is destroyed.  No request with @mw is
 * posted, or its connection has drained.  Returns 0, or -errno: @mw still exists.  After an error
 * no write begins under its key any more.  Bytes that have arrived may still be placed (a packet,
 * on rxe), until the region is deregistered or the connections of @mw have drained. */
int fab_dealloc_mw(struct ibv_mw *mw);

/* ---- IO ---- */

/* A completion entry, embedded in its owner; wr_id of every work request is a struct fab_cqe *. */
struct fab_cqe {
	/* On the polling thread.  When wc->status is not IBV_WC_SUCCESS only wr_id and status are
	 * valid.  May post; may not poll or destroy @conn. */
	void (*done)(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
};

/* Largest message, most elements of a posted receive's list. */
#define FAB_MSG_MAX (1u << 30)
#define FAB_RECV_SGE_MAX 4

/* Post a chain.  Any thread.  Work requests and SGE lists are not changed and may live on the
 * stack.  Buffers, and every fab_cqe named by wr_id, must live until their completion or flush.
 * The buffer of an unsignaled request must live until promise l holds for a later signaled request,
 * or drained.
 *
 * IBV_SEND_INLINE is a hint, for a message of some hundred bytes at most, whose elements name
 * addresses of this process.  verbs then copies the bytes in the post, if the device's queue has
 * room, and ignores their lkeys.  Other providers ignore the hint.  How long buffers must live is
 * the same everywhere.
 *
 * On a failed connection posts return 0, and the requests flush, until the connection is drained;
 * from then on posts return -ENOTCONN and take nothing.  Any other error fails the connection and
 * may have taken a part of the chain: only drained says that all of the chain is free again.
 *  -ENOMEM	the queue is full (more than max_send_wr or max_recv_wr not yet done)
 *  -EINVAL	malformed, a local key that does not cover its element, not yet connected
 *  -EOPNOTSUPP	an opcode the device does not have; or a bind or invalidate that the device
 *		refuses, or does not carry out as said above, although offered */
static inline int fab_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* Post a chain of receives, with the rules of fab_post_send(). */
static inline int fab_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);
/* False: no local buffer of any posted send is read any more, as promise l says of one send.  The
 * only thread that posts on @conn.  True without FAB_CAP_SUSPEND_MR. */
static inline bool fab_sends_left(const struct fab_conn *conn);

/* Take up to @n completions.  Returns their number, or -ENOTCONN when drained.  Makes progress:
 * reads and writes the socket on tcp.  A call that returns @n may have left more behind.  After a
 * call that returned less, call fab_arm() before the next fab_poll(): tcp does not ask the kernel
 * for bytes that cannot be there.  A busy poller arms, then polls.  A poll behind fab_arm(),
 * whatever that returned, and a poll behind one that returned @n, see all that came before the
 * poll: so a caller that takes edges loses none. */
static inline int fab_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
/* Poll and call done() for each completion, at most about @budget.  Returns as fab_poll(), and
 * -ENOTCONN only if no completion was taken. */
static inline int fab_dispatch(struct fab_conn *conn, int budget);

/* The descriptor to wait on; constant from fab_create_qp() on. */
static inline int fab_conn_fd(const struct fab_conn *conn);
/* Call before sleeping.  Returns 0 with the poll(2) events to wait for on the descriptor, or 1 when
 * work waits: call fab_poll() again, which takes the work, so that a caller that goes on while one
 * of both finds something ends.  A failed connection may drain without an event: poll it each
 * second or so until drained.  Events are levels: a caller that takes edges arms and polls once
 * more after a POLLRDHUP, because a poll may stop before the end.  Polling thread. */
static inline int fab_arm(struct fab_conn *conn, short *events);
/* True if fab_arm() makes system calls when nothing is to be polled: do other work first.
 * Constant. */
static inline bool fab_arm_is_dear(const struct fab_conn *conn);
#define FAB_REARM_EVENTS 0x1		/* tcp: POLLOUT is needed, or the socket is broken */
#define FAB_REARM_DONE 0x2		/* a send completion waits to be polled; a caller that
					 * waits for the peer's answer may poll with the answer */
/* Not 0, FAB_REARM_*, if the events of the last fab_arm() are too few since a post.  The posting
 * thread then wakes the sleeper to arm again.  Any thread. */
static inline int fab_need_rearm(const struct fab_conn *conn);

/* Start to fail @conn: the provider tells the peer, every posted request flushes, then drained.
 * Idempotent.  Any thread. */
void fab_disconnect(struct fab_conn *conn);
/* The first cause of failure in words, "" without a failure; valid until destroy.  Any thread. */
const char *fab_conn_cause(const struct fab_conn *conn);

#include "fab-provider.h"

#endif
