/* SPDX-License-Identifier: BSD-3-Clause */
/* Between rnbd-ctl.c (control, on the service thread) and rnbd-clt.c (IO, on any thread). */
#ifndef RNBD_PRIV_H
#define RNBD_PRIV_H

#include "rnbd-clt-rmw.h"
#include "rnbd-clt.h"

enum rnbd_dev_state {
	RNBD_DEV_OPENING,		/* OPEN is on its way for the first time */
	RNBD_DEV_OPEN,
	RNBD_DEV_LOST,			/* the session came back and the device did not: IO waits */
	RNBD_DEV_FAILED,		/* and io_timeout is over: IO fails */
	RNBD_DEV_CLOSING,		/* no reference left */
};

/* A user message and its answer. */
struct rnbd_ctl {
	struct clt_op op;
	struct clt_task task;
	struct rnbd_clt *clt;
	struct rnbd_dev *dev;		/* NULL: SESS_INFO */
	bool busy;			/* from ctl_send() to done() */
	bool bound;			/* means something on the path of @life only */
	unsigned life;
	void (*done)(struct rnbd_ctl *ctl);
	size_t len;
	union {
		struct rnbd_msg_sess_info info;
		struct rnbd_msg_open open;
		struct rnbd_msg_close close;
	} msg;
	union {
		struct rnbd_msg_sess_info info;
		struct rnbd_msg_open_rsp open;
	} rsp;
};

struct rnbd_dev {
	struct rnbd_clt *clt;
	char name[RNBD_NAME_MAX];
	enum rnbd_access_mode mode;
	struct rnbd_dev_info info;	/* constant once opened, but for the next two */
	atomic_uint id;
	atomic_ullong size;		/* bytes */
	_Atomic(enum rnbd_dev_state) state;
	struct rmw_lock rmw;

	/* What a FLUSH must cover (D13): acknowledged writes, those a FLUSH covered, and the life
	 * of the path in which unflushed ones were found lost (0: none).  FLUSHes that told of a
	 * loss are counted: one that began before covers the same writes. */
	atomic_uint write_seq, flushed_seq, lost_life, losses_told;

	/* service thread */
	struct list link;		/* clt->devs */
	unsigned refs;
	struct list opens;		/* rnbd_open_req.link, waiting for the OPEN in flight */
	struct clt_task close_task;	/* references that were dropped */
	atomic_uint dropped;
	struct rnbd_ctl ctl;		/* its OPEN or CLOSE */
	unsigned tried_life, open_life;	/* of the path: asked for, and got, by OPEN */
	uint64_t lost_since_ms;
};

#endif
