/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD's part of the server, of an export, of a session and of a request of RTRS. */
#ifndef SRV_RNBD_STATE_H
#define SRV_RNBD_STATE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "conf-allow.h"
#include "counter.h"
#include "export-io.h"
#include "export.h"
#include "list.h"
#include "rnbd-msg.h"
#include "srv-chunk.h"
#include "srv-dev.h"
#include "srv-limit.h"
#include "srv-ops.h"
#include "srv-pool.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

#define SRV_IDENT_BOOT_LEN 8
#define SRV_OPEN_TIMEOUT 5000		/* ms; the longest wait of an OPEN for a closing handle */
#define SRV_SIZE_TIMEOUT 1000		/* ms; the longest wait of a request for a size from the
					 * storage */

struct exports;

/* srv.user */
struct srv_rnbd {
	struct srv *srv;
	struct exports *exports;

	/* constant; srv-ident.c, srv_export_may_realtime() */
	uint8_t boot_id[SRV_IDENT_BOOT_LEN];
	uint64_t host_id;
	bool host_lasts;		/* over reboots */
	uint32_t instance;
	bool may_realtime;

	/* control thread */
	struct list open_waiters;	/* struct srv_req: OPENs that wait (srv-open.c) */
	struct list size_waiters;	/* struct srv_size_waiter */
	struct loop_timer open_timer, size_timer;
	struct list limits;		/* struct srv_limit: of each export, also of those that
					 * are removed and in use */
	uint64_t export_ids;		/* the last srv_export.id */
};

/* RNBD's part of @srv. */
static inline struct srv_rnbd *srv_rnbd(const struct srv *srv)
{
	return srv->user;
}

/* The counters, the limits, the rules and the priority of an export (export.user).  Exports with
 * the same name and the same store have them together: one may be listed, and the others are
 * removed and still in use. */
struct srv_export {
	uint64_t id;			/* another one than all others of this server had */
	unsigned exports;		/* that have it; control thread */
	struct srv_limit limit;
	struct allow_list allow, read_only;	/* srv-allow.h, for all that opens from now on;
						 * control thread */
	_Atomic(uint16_t) prio;		/* srv_export_prio() */
	struct io_stat base;		/* at the last reset */
	/* What the last srv_stat_age_look() has found: the age of the oldest request whose IO is
	 * not answered by the storage, or waits for the limits; 0: none.  Control thread. */
	uint64_t oldest_ns;
	/* [srv.nthreads]; each in cache lines of its own */
	struct srv_export_thread {
		_Alignas(64) struct io_stat stat;
	} threads[];
};

/* RNBD's part of @ex, from export_users.export_comes() to export_goes(). */
static inline struct srv_export *srv_export_of(const struct export *ex)
{
	return ex->user;
}

/* srv_sess.user */
struct srv_rnbd_sess {
	struct srv_dev_table devs;		/* see srv-dev.h */
	/* set on the control thread, read by any */
	atomic_uint features;		/* RNBD_EXT_* of the client */
	atomic_uint ver;		/* of RNBD, the lower of both ends; 0: not told yet */
	/* Control thread.  The client has our extension: after the loss of the last path, too, the
	 * client sends unanswered requests again under the same buf_id, or settles each. */
	bool resends;
	/* Control thread: when the client first asked to take an export over from the server that
	 * it lost, since its last SESS_INFO; 0: it has not. */
	uint64_t take_over_ms;
};

/* RNBD's part of @sess. */
static inline struct srv_rnbd_sess *srv_rnbd_sess(const struct srv_sess *sess)
{
	return sess->user;
}

/* True if the client of @sess has @feature, one of RNBD_EXT_*.  Any thread. */
static inline bool srv_rnbd_has(const struct srv_sess *sess, uint32_t feature)
{
	return atomic_load_explicit(&srv_rnbd_sess(sess)->features, memory_order_relaxed) & feature;
}

/* The version of RNBD that @sess speaks; 0: the client has not told a version yet.  Any thread. */
static inline unsigned srv_rnbd_ver(const struct srv_sess *sess)
{
	return atomic_load_explicit(&srv_rnbd_sess(sess)->ver, memory_order_relaxed);
}

/* A wait for an answer about an export (srv-size.c). */
struct srv_size_waiter {
	enum export_question question;
	struct srv_path *path;		/* whose failure ends the wait; NULL: none */
	bool spares_openers;		/* leave a smaller size in ex->found while clients have the
					 * export open */
	void (*then)(struct srv_size_waiter *w);
	/* private */
	struct list link;
	struct export *ex;
	unsigned turn;
	uint64_t deadline_ms;
};

/* srv_ops.req_size */
struct srv_rnbd_req {
	struct srv_req base;		/* first */
	/* IO; thread of the connection */
	struct srv_dev *dev;		/* referenced while the storage works */
	struct srv_limit_wait limit;	/* for the limits of the export */
	struct srv_drr_item round;	/* for its turn; srv-drr.h */
	struct srv_pool_waiter wait;	/* for private memory */
	struct srv_buf *buf;		/* private memory; NULL: the chunk */
	struct export_io io;
	/* a waiting request; control thread */
	uint64_t deadline_ms;		/* of an OPEN */
	struct srv_size_waiter size;
};

/* RNBD's part of @req. */
static inline struct srv_rnbd_req *srv_rnbd_req(struct srv_req *req)
{
	return container_of(req, struct srv_rnbd_req, base);
}

/* ---- answers of control messages; control thread ---- */

/* True if the client asked for an answer of at least @len bytes. */
static inline bool srv_result_wanted(const struct srv_req *req, size_t len)
{
	return req->rtrs.has_desc && req->rtrs.data_len >= len;
}

/* Put @rsp, the answer, at the start of the request's chunk, and zeroes behind, up to the length
 * that the client gets. */
static inline void srv_result_put(struct srv_req *req, const void *rsp, size_t len)
{
	uint8_t *chunk = srv_chunk(&req->path->chunks, req->buf_id);

	if (len)
		memcpy(chunk, rsp, len);
	memset(chunk + len, 0, req->rtrs.data_len - len);
}

/* The request that waits by @w. */
static inline struct srv_req *srv_sized_req(struct srv_size_waiter *w)
{
	return &container_of(w, struct srv_rnbd_req, size)->base;
}

/* ---- srv-dev-io.c: RNBD's IO message to an operation of the storage; thread of the request's
 * connection ---- */

/* Checks of device, mode and range, private memory (doc/protocol.md 8.4, 8.5; doc/decisions.md
 * D8). */

/* True if @op changes the data of an export. */
static inline bool srv_dev_io_modifies(enum rnbd_io_op op)
{
	return op == RNBD_OP_WRITE || op == RNBD_OP_DISCARD || op == RNBD_OP_WRITE_ZEROES;
}

/* May a handle opened as @mode do @io on @ex?  0; -EPERM: @io would modify, and export or handle
 * is read-only; -EIO: beyond the end.  Turns @io, an empty WRITE with a flush, into a FLUSH.
 * Pure. */
static inline int srv_dev_io_check(const struct export *ex, enum rnbd_access_mode mode,
				   struct rnbd_io *io)
{
	if (srv_dev_io_modifies(io->op) && (mode == RNBD_ACCESS_RO || ex->spec.readonly))
		return -EPERM;
	if (io->op == RNBD_OP_FLUSH)	/* the sector means nothing (doc/traps.md 17) */
		return 0;
	if (!range_ok(io->sector, io->bi_size >> RNBD_SECTOR_SHIFT,
		      export_size(ex) >> RNBD_SECTOR_SHIFT))
		return -EIO;
	if (!io->bi_size && srv_dev_io_modifies(io->op) &&
	    (io->flags & (RNBD_F_PREFLUSH | RNBD_F_FUA)))
		io->op = RNBD_OP_FLUSH;
	return 0;
}

/* Decode the message of @req, an IO, as rnbd_io_decode() does. */
int srv_dev_io_decode(const struct srv_req *req, struct rnbd_io *io);
/* Carry out the IO of @base, whose turn has come.  Ends in srv_req_finish(). */
void srv_dev_io_start(struct srv_req *base);
/* Carry out or end the IO of @base, whose wait for the limits of the export has ended.  Stage
 * SRV_REQ_LIMIT.  Ends in srv_req_finish(). */
void srv_dev_io_let_go(struct srv_req *base);
/* End the IO on @con that waits for limits: @con is being cut.  Thread of @con. */
void srv_dev_io_con_cut(struct srv_con *con);
/* Ask the storage for the size of the export of @req, then go on in srv_dev_io_sized().  Stage
 * SRV_REQ_SIZE; control thread. */
void srv_dev_io_ask(struct srv_req *req);
/* Carry out the IO of @base by the present size of the export.  Stage SRV_REQ_SIZED.  Ends in
 * srv_req_finish(). */
void srv_dev_io_sized(struct srv_req *base);

/* ---- srv-size.c: the present sizes of exports, and what their paths name; control thread ---- */

/* Files and devices change while exported (doc/decisions.md D17).  An export that nobody has open,
 * and whose path names other storage, is opened again (export-retry.h). */

/* Begin with no request waiting. */
void srv_size_init(struct srv_rnbd *rnbd);
/* Learn what @ex answers to @w->question now or later.  True: export_size(), or export.named, has
 * the answer, or the storage does not answer.  False: @w->then(@w) follows when one of the two is
 * so, or @w->path fails.  @ex may be off the list of exports then. */
bool srv_size_ask(struct srv_rnbd *rnbd, struct srv_size_waiter *w, struct export *ex);
/* Have @req wait for the answer of @ex to @question, as srv_size_ask() says. */
bool srv_size_ask_for(struct srv_req *req, struct export *ex,
		      enum export_question question,
		      void (*then)(struct srv_size_waiter *w));
/* True if the storage of @ex has answered @w, which waited. */
bool srv_size_is_known(const struct srv_size_waiter *w);
/* End the waits of @path, which is failing; each goes on. */
void srv_size_path_failed(struct srv_path *path);

/* ---- srv-ident.c: the identity of this server, for RNBD's extension ---- */

/* The host, the boot of the host, the process (man/rtrs-protocol.pod; doc/decisions.md D13).  Main
 * thread, at start; reads files, cannot fail: each function says what happens instead. */

/* An id that stays the same until the host's memory is lost, and differs from the id of any other
 * host.  If the kernel tells no boot id, the id is random: then a restart of the server counts as
 * a reboot. */
void srv_ident_boot(uint8_t id[SRV_IDENT_BOOT_LEN]);

/* An id of this host that stays the same over reboots (/etc/machine-id).  Without such a file, an
 * id of the host's boot, and *@lasts is false. */
uint64_t srv_ident_host(bool *lasts);

/* An id of this process: random, never 0. */
uint32_t srv_ident_instance(void);

/* ---- srv-rnbd.c: RNBD as the protocol above RTRS (doc/protocol.md 8); control thread ---- */

extern const struct srv_ops srv_rnbd_ops;

/* Begin RNBD with @exports on @srv, whose threads are known, and set srv->user.  0 or -ENOMEM;
 * srv_rnbd_destroy() follows in both cases, when no session is left. */
int srv_rnbd_create(struct srv *srv, struct exports *exports);
/* Free RNBD's part of @srv. */
void srv_rnbd_destroy(struct srv *srv);

#endif
