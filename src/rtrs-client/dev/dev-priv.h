/* SPDX-License-Identifier: BSD-3-Clause */
/* Between client*.c and dev*.c: control, on the service thread, and dev-io.c, on any thread. */
#ifndef DEV_PRIV_H
#define DEV_PRIV_H

#include "clt-epoch.h"
#include "range.h"
#include "dev-fsm.h"
#include "dev-stat.h"
#include "dev.h"
#include "rnbd-proto.h"

#define DEV_AWAY (1u << DEV_LOST | 1u << DEV_FAILED)
#define DEV_IN_USE (1u << DEV_OPEN | DEV_AWAY)

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
	atomic_uint state;		/* enum dev_state; dev-life.c moves it */
	/* Epochs of the session (dev-settle.c): the latest in which a write was sent that was given
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
	void (*answered)(struct dev *dev, int r);	/* of dev_settle() or dev_reopen() */
	int error;			/* 0 or -errno of the last answer */
	struct loop_msg given_up_msg;
	uint64_t lost_since_ms;
	struct dev_stat stat_base;	/* at the last reset */

	struct dev_stat_shard stat[DEV_STAT_SHARDS];
};

/* Is @dev in one of @states, bits 1u << state?  Any thread; the state may change at any time. */
static inline bool dev_is_in(const struct dev *dev, unsigned states)
{
	return 1u << atomic_load(&dev->state) & states;
}

/* Something that was given up may still be in the server's storage: nothing is sent. */
static inline bool dev_unsettled(const struct dev *dev)
{
	return atomic_load_explicit(&dev->given_up_epoch, memory_order_acquire) >=
	       atomic_load_explicit(&dev->settled_epoch, memory_order_relaxed);
}

/* ---- client-tell.c ---- */

/* The session is up for the first time, or again. */
void client_tell_up(struct client *clt);
/* The first attempt failed with @err.  Later failures are told to nobody. */
void client_tell_failed(struct client *clt, int err, const char *cause);
/* The session or a device was lost or has come back, or may be lost. */
void client_tell_away(struct client *clt);
/* The session is to end. */
void client_tell_closing(struct client *clt);
/* If the session is to end, go on as soon as its devices are gone: close the session, then tell
 * that all is closed.  Not before the last device, which may still learn that its path is
 * closed. */
void client_tell_closed(struct client *clt);

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

/* dev_ctl_send() of an OPEN of @ctl->dev. */
void dev_ctl_open(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl));
/* dev_ctl_send() of a CLOSE, in this epoch only, of what the server calls @id. */
void dev_ctl_close(struct dev_ctl *ctl, uint32_t id, void (*done)(struct dev_ctl *ctl));

/* ---- dev-io.c ---- */

/* Ask what @span bytes from @off on are, whole sectors; the answer comes to @answer, @room bytes.
 * Blocks; any thread.  0; -EOPNOTSUPP: the server does not know; or -errno. */
int dev_io_extents(struct dev *dev, void *answer, uint32_t room, uint32_t span, uint64_t off);

/* ---- dev-greet.c: SESS_INFO ---- */

/* Ask the server for its identity and its features. */
void dev_greet(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl));
/* Decode the answer: the server's identity and features, in @ext.  0 or -errno. */
int dev_greet_who(const struct dev_ctl *ctl, struct rnbd_ext *ext);
/* dev_greet_who(), and the client uses the server's features from now on. */
int dev_greet_answer(struct dev_ctl *ctl, struct rnbd_ext *ext);
/* @ext is the server of this epoch.  If the server's host is another one, or went through a reboot,
 * or does not say so, each device with unflushed writes counts a loss. */
void dev_greet_believe(struct client *clt, const struct rnbd_ext *ext);
/* May an OPEN of @dev hide that a sync has failed, so that SESS_INFO has to follow
 * (dev-handshake.c)? */
bool dev_greet_behind_open(const struct dev *dev);

/* ---- dev.c ---- */

void dev_init(struct client *clt);

/* ---- dev-answer.c ---- */

/* Take the answer to an OPEN: geometry the first time, else id and size.  0: requests may go;
 * CLT_AGAIN: @dev is open on the server and has to be settled; or -errno: -EMEDIUMTYPE for a device
 * that keeps fewer promises than before, -ESTALE for another file. */
int dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first);
/* The server says that @dev, which is open, has @size bytes now.  0; -EMEDIUMTYPE: it had more, and
 * goes on with as many for those who have it open (doc/decisions.md D17). */
int dev_answer_size(struct dev *dev, uint64_t size);

/* ---- dev-look.c ---- */

void dev_look_init(struct dev *dev);
/* @req wants @dev, which is open.  True: it gets it when the server has told its size: 0, or as
 * dev_answer_size().  False: it cannot be asked now. */
bool dev_look(struct dev *dev, struct dev_open_req *req);

/* ---- dev-settle.c ---- */

void dev_settle_init(struct dev *dev);
void dev_settle_fini(struct dev *dev);
/* Close @dev: the server answers when the storage is done with all requests to @dev.  Then
 * @answered runs with 0; -ECONNABORTED: the path was lost before; or another error. */
void dev_settle(struct dev *dev, void (*answered)(struct dev *dev, int status));

/* ---- dev-reopen.c ---- */

/* Open @dev, which was open before.  Then @answered runs with the result of dev_reopen_answer(), or
 * of the SESS_INFO behind the OPEN. */
void dev_reopen(struct dev *dev, void (*answered)(struct dev *dev, int r));
/* Take the answer to an OPEN after the first.  Returns the result of dev_answer(), or
 * -ECONNABORTED. */
int dev_reopen_answer(struct dev_ctl *ctl);

/* ---- dev-life.c ---- */

void dev_life_init(struct client *clt);
/* Take the row of @event.  @dev may be gone when this returns. */
void dev_life_event(struct dev *dev, enum dev_event event);
/* The event that @r is, the result of dev_reopen_answer(). */
void dev_life_answer(struct dev *dev, int r);

/* ---- dev-handshake.c ---- */

/* clt_sess_ops.opening */
void dev_handshake_start(struct clt_sess *sess);

#endif
