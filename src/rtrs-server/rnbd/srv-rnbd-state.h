/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD's part of the server, of a session and of a request of RTRS. */
#ifndef SRV_RNBD_STATE_H
#define SRV_RNBD_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "export-io.h"
#include "srv-dev.h"
#include "srv-ident.h"
#include "srv-limit.h"
#include "srv-pool.h"
#include "srv-state.h"
#include "srv-req.h"
#include "srv-sess.h"
#include "srv-size.h"
#include "util.h"

#define SRV_OPEN_TIMEOUT 5000		/* ms; the longest wait of an OPEN for a closing handle */
#define SRV_SIZE_TIMEOUT 1000		/* ms; the longest wait of a request for a size from the
					 * storage */

struct exports;

/* srv.user */
struct srv_rnbd {
	struct srv *srv;
	struct exports *exports;

	/* constant; srv-ident.h and srv-prio.h */
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
	uint64_t export_ids;		/* the last srv_export_stat.id */
};

/* RNBD's part of @srv. */
static inline struct srv_rnbd *srv_rnbd(const struct srv *srv)
{
	return srv->user;
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

/* srv_ops.req_size */
struct srv_rnbd_req {
	struct srv_req base;		/* first */
	/* IO; thread of the connection */
	struct srv_dev *dev;		/* referenced while the storage works */
	struct srv_limit_wait limit;	/* for the limits of the export */
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

#endif
