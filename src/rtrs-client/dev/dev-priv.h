/* SPDX-License-Identifier: BSD-3-Clause */
/* Between client*.c and dev*.c: control, on the service thread, and dev-io.c, on any thread. */
#ifndef DEV_PRIV_H
#define DEV_PRIV_H

#include <errno.h>
#include <string.h>

#include "client-kept.h"
#include "clock.h"
#include "clt-sess.h"
#include "dev-fsm.h"
#include "dev.h"
#include "range.h"
#include "rnbd-proto.h"

#define DEV_AWAY (1u << DEV_LOST | 1u << DEV_FAILED)
#define DEV_IN_USE (1u << DEV_OPEN | DEV_AWAY)
#define DEV_OUTDATED (1u << DEV_REPLACED | 1u << DEV_STALE)

/* A user message and its answer. */
struct dev_ctl {
	struct clt_op op;
	struct loop_msg step_msg;
	struct list link;		/* clt->ctl_line */
	struct client *clt;
	struct dev *dev;		/* NULL: SESS_INFO, LIST */
	uint32_t feature;		/* RNBD_EXT_*: a server without the feature is not
					 * asked: -EOPNOTSUPP; 0: none */
	void *into;			/* the place of the answer; NULL: rsp */
	unsigned epoch;			/* of the session, when the message was sent */
	void (*done)(struct dev_ctl *ctl);	/* NULL: no message is under way */
	size_t len;
	union {
		struct rnbd_msg_sess_info info;
		struct rnbd_msg_open open;
		struct rnbd_msg_close close;
		struct rnbd_msg_list list;
		struct rnbd_msg_probe probe;
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
	struct rnbd_dev_info info;	/* constant once opened, but for the next three, and for
					 * export_id, which belongs to the service thread */
	atomic_uint id;
	atomic_ullong size;		/* bytes */
	atomic_uint max_zeroes;		/* sectors of a WRITE_ZEROES; 0: the server has none, and
					 * Linux 6.1 would take one for a READ (doc/traps.md 22) */
	atomic_uint state;		/* enum dev_state; dev-life.c moves it */
	/* Epochs of the session (dev_settle()): the latest whose write was given up, and the epoch
	 * in which the storage was done with all requests of earlier epochs. */
	atomic_uint given_up_epoch, settled_epoch;
	/* The epoch in which the server answered that it had closed the device; 0: none. */
	atomic_uint taken_epoch;
	struct range_lock ranges;

	struct dev_loss loss;
	struct client_kept *kept;	/* constant; what of it outlives the process; NULL:
					 * nothing */

	/* service thread */
	struct list link;		/* clt->devs */
	unsigned refs;
	struct list opens;		/* dev_open_req.link, waiting for the OPEN in flight */
	atomic_uint dropped;		/* references, since clt->drop_msg ran */
	struct dev_ctl ctl;		/* its message under way: OPEN, SESS_INFO or CLOSE */
	struct dev_ctl look;		/* of dev_look(), as the next two */
	struct list lookers, looking;	/* dev_open_req.link: requests for the next look, and
					 * for the look in flight */
	int64_t look_said;		/* by dev_look_is_news() */
	unsigned tried_epoch, open_epoch;	/* of the session: asked for, and got, by OPEN */
	void (*answered)(struct dev *dev, int r);	/* of dev_settle() */
	int error;			/* 0 or -errno of the last answer */
	enum rnbd_refusal refusal;	/* of the last OPEN that failed */
	enum {
		DEV_FILE_KEPT,		/* the server has to have the file that it had */
		DEV_FILE_ANY,		/* client_accept(): whichever the next OPEN finds */
	} file;
	struct loop_msg given_up_msg;
	uint64_t lost_since_ms;
	struct dev_stat stat_base;	/* at the last reset */
	uint64_t oldest_ns;		/* dev_stat_ages() */

	struct dev_stat stat[DEV_STAT_SHARDS];
};

/* Of a line of the log about @dev; @id as in LOG_FIELDS(). */
#define DEV_FIELDS(dev, id)                                                                        \
	LOG_FIELDS(id, .session = (dev)->clt->sess.name, .export = (dev)->name)

/* Is @dev in one of @states, bits 1u << state?  Any thread; the state may change at any time. */
static inline bool dev_is_in(const struct dev *dev, unsigned states)
{
	return 1u << atomic_load(&dev->state) & states;
}

/* True if @what, which a look at @dev has found, differs from what the look before has found: a
 * front end may look again and again.  The bytes that the export has lost, DEV_LOOK_CLOSED, or the
 * -errno of the look; 0: all is well. */
#define DEV_LOOK_CLOSED INT64_MIN
static inline bool dev_look_is_news(struct dev *dev, int64_t what)
{
	bool is_news = dev->look_said != what;

	dev->look_said = what;
	return is_news;
}

/* True if the server has another file under the name of @dev, which is not used. */
static inline bool dev_has_other_file(const struct dev *dev)
{
	return dev_is_in(dev, DEV_AWAY) && dev->error == -ESTALE;
}

/* True if a request that was given up may still be in the server's storage: the client sends no
 * other request.  Any thread. */
static inline bool dev_unsettled(const struct dev *dev)
{
	return atomic_load_explicit(&dev->given_up_epoch, memory_order_acquire) >=
	       atomic_load_explicit(&dev->settled_epoch, memory_order_relaxed);
}

/* ---- client-tell.c ---- */

/* Tell that the session is up, for the first time or again. */
void client_tell_up(struct client *clt);
/* Tell that the first attempt failed with @err because of @cause.  Later failures are not told. */
void client_tell_failed(struct client *clt, int err, const char *cause);
/* Tell whether the session or a device is away; call when this may have changed. */
void client_tell_away(struct client *clt);
/* If the session is to end and its last device is gone, close the session, then tell that the
 * session is closed.  The last device comes first, because the device may still learn that its path
 * is closed. */
void client_tell_closed(struct client *clt);

/* ---- dev-ctl.c: user messages ---- */

/* Initialize @ctl for messages of @clt about @dev, which may be NULL. */
void dev_ctl_init(struct dev_ctl *ctl, struct client *clt, struct dev *dev);
/* The client sends at most so many messages at a time, and further messages stand in line: a server
 * has 512 receives on connection 0, for heartbeats, too (doc/traps.md 38). */
#define DEV_CTL_MAX 64

/* Of each message @done finds the result in @ctl->op.status.  A message in flight on a path that is
 * lost ends with -ECONNABORTED. */

/* Send a PROBE with @len bytes in @data, to the server or from there. */
void dev_ctl_probe(struct dev_ctl *ctl, enum rtrs_dir dir, void *data, uint32_t len,
		   enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl));
/* Send an OPEN of @ctl->dev. */
void dev_ctl_open(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl));
/* Send a CLOSE of @id, the server's number of the device; in this epoch only. */
void dev_ctl_close(struct dev_ctl *ctl, uint32_t id, void (*done)(struct dev_ctl *ctl));

/* ---- dev-ctl.c: SESS_INFO ---- */

/* Ask the server for its identity and its features. */
void dev_greet(struct dev_ctl *ctl, enum clt_op_kind kind, void (*done)(struct dev_ctl *ctl));
/* Decode the answer to @ctl into @ext: the server's identity and features.  0 or -errno. */
int dev_greet_who(const struct dev_ctl *ctl, struct rnbd_ext *ext);
/* Use the features of the server that says @ext from now on. */
void dev_greet_use(struct client *clt, const struct rnbd_ext *ext);
/* dev_greet_who(), and dev_greet_use(). */
int dev_greet_answer(struct dev_ctl *ctl, struct rnbd_ext *ext);
/* Take @ext for the server of this epoch.  Each device with unflushed writes counts a loss, unless
 * the server says that its host is the same and had no reboot. */
void dev_greet_believe(struct client *clt, const struct rnbd_ext *ext);
/* The server of this epoch may lack writes to @dev, because of @why: those that are not flushed
 * count as lost. */
void dev_greet_lose(struct dev *dev, const char *why);
/* True if an OPEN of @dev may hide a failed sync, so that SESS_INFO has to follow
 * (dev-handshake.c). */
bool dev_greet_behind_open(const struct dev *dev);

/* ---- client-kept.c: what outlives the process; service thread ----
 * The first four do nothing for a @dev or a @clt of which nothing outlives the process. */

/* Take @info, the answer to the first OPEN of @dev, which is not used before. */
void dev_kept_opened(struct dev *dev, const struct rnbd_dev_info *info);
/* Note the size of @dev. */
void dev_kept_size(struct dev *dev);
/* Note the file of @dev. */
void dev_kept_file(struct dev *dev);
/* Note the server of @clt, after all losses that it has brought. */
void dev_kept_server(struct client *clt);
/* Have @clt, which has a clt->kept and does not run, know the server of the process before. */
void dev_kept_resume_server(struct client *clt);
/* Make @dev, which is NEW and has a @dev->kept, the device that the process before had open. */
void dev_kept_resume(struct dev *dev);

/* ---- dev.c ---- */

/* Initialize the references of the devices of @clt. */
void dev_init(struct client *clt);
/* Begin @clt, which has a clt->kept and does not run, where the process before has ended: with its
 * server, and with its device, clt->resumed.  0 or -ENOMEM. */
int dev_resume(struct client *clt);

/* ---- dev-answer.c ---- */

/* Take the answer to an OPEN: geometry the first time, else id and size.  0: requests may go;
 * CLT_AGAIN: @dev is open on the server and has to be settled; or -errno: -EMEDIUMTYPE for a device
 * that keeps fewer promises than before, -ESTALE for another file. */
int dev_answer(struct dev *dev, struct dev_ctl *ctl, bool first);
/* Take @size, the present size of the open @dev, in bytes.  0; -EMEDIUMTYPE: @dev was larger, and
 * keeps its old size for its users (doc/decisions.md D17). */
int dev_answer_size(struct dev *dev, uint64_t size);

/* Initialize the epochs of @dev. */
void dev_settle_init(struct dev *dev);
/* Leave the epoch of an unsettled @dev to the client. */
void dev_settle_fini(struct dev *dev);
/* Close @dev: the server answers when the storage is done with all requests to @dev.  Then
 * @answered runs with 0; -ECONNABORTED: the path was lost before; or another error. */
void dev_settle(struct dev *dev, void (*answered)(struct dev *dev, int status));

/* ---- dev-life.c ---- */

/* Take the answer to an OPEN after the first.  Returns the result of dev_answer(), or
 * -ECONNABORTED. */
int dev_reopen_answer(struct dev_ctl *ctl);
/* Initialize the timer of the lost devices of @clt. */
void dev_life_init(struct client *clt);
/* The session closes: refuse the open requests of AWAITED devices. */
void dev_life_close(struct client *clt);
/* Take the row of @event, which may free @dev. */
void dev_life_event(struct dev *dev, enum dev_event event);
/* Take the row for @r, a result of dev_reopen_answer().  May free @dev. */
void dev_life_answer(struct dev *dev, int r);

/* ---- dev-watch.c ---- */

struct dev_watch {
	struct client *clt;
	char name[RNBD_NAME_MAX];
	enum rnbd_access_mode mode;
	enum dev_watch_needs needs;
	struct loop_timer timer;
	struct loop_msg start_msg;
	struct dev_open_req req;
	enum {
		WATCH_RESTS,
		WATCH_ASKS,		/* @req is under way */
	} state;
	/* of the last answer; 0: the server gives the export; CLT_AGAIN: nobody knows */
	int status;
	enum rnbd_refusal refusal;
	uint64_t since_ms;		/* when @status came */
	unsigned epoch;			/* of the session, whose server has answered; 0: none yet */
};

/* An OPEN of @dev has ended with @status, of struct dev_open_req.  What the session itself answers
 * is no answer of the server. */
static inline void dev_watch_note(const struct dev *dev, int status)
{
	struct dev_watch *w = dev->clt->watch;

	if (!w || strcmp(dev->name, w->name) || status == -EIO || status == -ECONNABORTED ||
	    status == -ESHUTDOWN || status == -ENOMEM)
		return;
	if (status != w->status)
		w->since_ms = clock_now_ms();
	w->status = status;
	w->refusal = dev->refusal;
}

/* Ask no more: the session is to end. */
void dev_watch_stop(struct client *clt);

/* ---- dev-handshake.c ---- */

/* clt_sess_ops.opening */
void dev_handshake_start(struct clt_sess *sess);

#endif
