/* SPDX-License-Identifier: BSD-3-Clause */
/* Between client.c and dev*.c: control, on the service thread, and dev-io.c, on any thread. */
#ifndef DEV_PRIV_H
#define DEV_PRIV_H

#include "clt-epoch.h"
#include "range.h"
#include "dev-stat.h"
#include "dev.h"
#include "rnbd-proto.h"

enum dev_state {
	DEV_OPENING,		/* OPEN is on its way for the first time */
	DEV_OPEN,
	DEV_LOST,			/* the session came back and the device did not: IO waits */
	DEV_FAILED,		/* and io_timeout is over: IO fails */
	DEV_CLOSING,		/* no reference left */
};

/* A user message and its answer. */
struct dev_ctl {
	struct clt_op op;
	struct loop_msg step_msg;
	struct list link;		/* clt->ctl_line */
	struct client *clt;
	struct dev *dev;		/* NULL: SESS_INFO, LIST */
	uint32_t feature;		/* RNBD_EXT_*: the server is only asked if it has it, else
					 * -EOPNOTSUPP; 0: none */
	void *into;			/* where the answer goes; NULL: rsp */
	unsigned epoch;			/* of the session, when it was sent */
	void (*done)(struct dev_ctl *ctl);	/* NULL: it is not under way */
	size_t len;
	union {
		struct rnbd_msg_sess_info info;
		struct rnbd_msg_open open;
		struct rnbd_msg_close close;
		struct rnbd_msg_list list;
	} msg;
	union {
		struct rnbd_msg_sess_info info;
		struct rnbd_msg_open_rsp open;
	} rsp;
};

struct dev {
	struct client *clt;
	char name[RNBD_NAME_MAX];
	enum rnbd_access_mode mode;
	struct rnbd_dev_info info;	/* constant once opened, but for the next three */
	atomic_uint id;
	atomic_ullong size;		/* bytes */
	atomic_uint max_zeroes;		/* sectors of a WRITE_ZEROES; 0: the server has none, and
					 * Linux 6.1 would take it for a READ (doc/traps.md 22) */
	_Atomic(enum dev_state) state;
	/* Epochs of the session (dev-reopen.c): the latest in which a write was sent that was given
	 * up, and the one that found everything sent in earlier ones done. */
	atomic_uint given_up_epoch, settled_epoch;
	struct range_lock ranges;

	struct dev_loss loss;

	/* service thread */
	struct list link;		/* clt->devs */
	unsigned refs;
	struct list opens;		/* dev_open_req.link, waiting for the OPEN in flight */
	atomic_uint dropped;		/* references, since clt->drop_msg ran */
	struct dev_ctl ctl;		/* its OPEN or CLOSE */
	struct dev_ctl look;			/* dev-look.c, as the next two */
	struct list lookers, looking;	/* dev_open_req.link: for the look to come, and for that in
					 * flight */
	unsigned tried_epoch, open_epoch;	/* of the session: asked for, and got, by OPEN */
	void (*settled)(struct dev *dev, int status);
	struct loop_msg given_up_msg;
	uint64_t lost_since_ms;
	struct dev_stat stat_base;	/* at the last reset */

	struct dev_stat_shard stat[DEV_STAT_SHARDS];
};

/* Something that was given up may still be in the server's storage: nothing is sent. */
static inline bool dev_unsettled(const struct dev *dev)
{
	return atomic_load_explicit(&dev->given_up_epoch, memory_order_acquire) >=
	       atomic_load_explicit(&dev->settled_epoch, memory_order_relaxed);
}

/* ---- client.c ---- */

/* The session is to end, and something that it waits for has: go on, or tell that it is over.  Not
 * before the last device, which may still learn that its path is closed. */
void client_check_closed(struct client *clt);

/* The session or a device was lost or has come back, or may be lost: who waits for that is told. */
void client_check_away(struct client *clt);

/* ---- dev-ctl.c: user messages ---- */

void dev_ctl_init(struct dev_ctl *ctl, struct client *clt, struct dev *dev);
/* A server has 512 receives on connection 0, for heartbeats, too (doc/traps.md 38); that many
 * messages at a time and no more are sent, the others stand in line. */
#define DEV_CTL_MAX 64

/* Send the first @len bytes of @ctl->msg; @done when it ended, with @ctl->op.status.  @answer:
 * bytes of the reply, 0 for none.  A message in flight on a path that is lost ends with
 * -ECONNABORTED. */
void dev_ctl_send(struct dev_ctl *ctl, size_t len, uint32_t answer, enum clt_op_kind kind,
		   void (*done)(struct dev_ctl *ctl));

/* ---- dev-io.c ---- */

/* Begin to ask what the @op->span bytes from @off on are, whole sectors.  The answer comes to
 * @answer, @room bytes.  Then as after dev_io_start(); -EOPNOTSUPP: the server does not know. */
void dev_io_extents_start(struct dev_io *op, struct dev *dev, void *answer, uint32_t room,
			  uint64_t off, void (*fn)(struct clt_waiter *w));

/* ---- dev.c: devices ---- */

void dev_init(struct client *clt);
/* Do what the state of @dev asks for, unless something is in flight for it. */
void dev_pump(struct dev *dev);
void dev_send_open(struct dev *dev, enum clt_op_kind kind,
			void (*done)(struct dev_ctl *ctl));
/* The answer to an OPEN: geometry the first time, else id and size.  0: dev_ready() may follow;
 * CLT_AGAIN: @dev is open on the server and has to be settled; or -errno: -EMEDIUMTYPE when it is
 * not what it was. */
int dev_opened(struct dev *dev, struct dev_ctl *ctl, bool first);
/* Let requests to @dev, unless it is CLOSING. */
void dev_ready(struct dev *dev);

/* ---- dev-look.c ---- */

void dev_look_init(struct dev *dev);
/* The server says that @dev, which is open, has @size bytes now.  0; -EMEDIUMTYPE: it had more, and
 * goes on with as many for those who have it open (doc/decisions.md D17). */
int dev_look_size(struct dev *dev, uint64_t size);
/* @req wants @dev, which is open.  True: it gets it when the server has told its size: 0, or as
 * dev_look_size().  False: it cannot be asked now. */
bool dev_look(struct dev *dev, struct dev_open_req *req);

/* ---- dev-reopen.c ---- */

void dev_reopen_init(struct client *clt);
void dev_reopen_init_dev(struct dev *dev);
/* Close @dev, just opened: the server answers when nothing of it is in the storage any more.  Then
 * @settled is called with 0, and it is to be opened again; -ECONNABORTED: the path was lost before;
 * or another error. */
void dev_reopen_settle(struct dev *dev, void (*settled)(struct dev *dev, int status));
/* clt_sess_ops.opening: session info, then every device, then clt_epoch_opened(). */
void dev_reopen_opening(struct clt_sess *sess);
/* clt_sess_ops.joining: session info, which has to be that of the server that the session is up
 * with. */
void dev_reopen_joining(struct clt_sess *sess);

#endif
