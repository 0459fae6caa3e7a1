/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD client: devices of a session, and NBD's requests as RNBD operations (doc/protocol.md 8).
 *
 * Control (session info, open, close, open again after a reconnect) runs on the service loop; IO
 * on the caller's thread.  Functions that say "blocks" wait with clt-wait.h; rnbd_op_start() with
 * clt_op_step() is the form that does not. */
#ifndef RNBD_CLT_H
#define RNBD_CLT_H

#include "clt-sess.h"
#include "rnbd-msg.h"

struct rnbd_dev;

struct rnbd_clt {
	struct clt_sess sess;
	atomic_uint features;		/* RNBD_EXT_* of the server */
	atomic_uint boot_life;		/* first life of the path after the server's memory may have
					 * been lost (doc/decisions.md D13) */
	/* service thread */
	bool greeted;			/* SESS_INFO was answered once */
	bool identified;		/* boot_id is that of the last life */
	unsigned given_up_life;		/* of devices that were closed without being settled */
	uint8_t boot_id[8];
	struct list devs;
	unsigned nctl;			/* messages under way, without those of the handshake */
	struct list ctl_line;		/* struct rnbd_ctl: of those that have to wait */
	struct rnbd_ctl *greeting;	/* SESS_INFO */
	struct rnbd_ctl *handshake;	/* the message in flight while OPENING, or NULL */
	bool closing;
	bool path_closed;
	struct loop_timer reopen_timer;	/* devices that could not be opened again */
	struct loop_timer close_timer;
	struct loop_msg start_msg, close_msg;
	struct loop_msg drop_msg;	/* references of devices were dropped */
	struct loop_msg patience_msg;
	/* told to those that wait for the session */
	pthread_mutex_t lock;		/* result, closed, away, cause */
	struct clt_waiter event;
	struct clt_waiter away_event;
	int result;			/* CLT_AGAIN: not known yet; 0 was up; negative errno */
	bool closed;
	bool away;			/* requests wait for a path or for an export, or may: it is silent */
	char cause[256];		/* of a negative result */
};

/* Start a session on @loop.  Does not wait.  0, or as clt_path_init(). */
int rnbd_clt_init(struct rnbd_clt *clt, struct loop *loop, const struct clt_sess_conf *conf);
/* Blocks until the first attempt ended: 0 it is up; -errno it failed and @clt->cause tells why
 * (without conf->once it is tried again). */
int rnbd_clt_wait_up(struct rnbd_clt *clt);
/* Blocks until all is disconnected.  All devices are closed. */
void rnbd_clt_close(struct rnbd_clt *clt);
/* The same without waiting: rnbd_clt_closed() tells.  Any thread. */
void rnbd_clt_close_start(struct rnbd_clt *clt);
bool rnbd_clt_closed(struct rnbd_clt *clt);
/* Blocks until the server, or one of the exports, is away and requests wait for it, or the server has given no
 * sign of life for a heartbeat: true; or until the session is closed: false.  One thread. */
bool rnbd_clt_wait_away(struct rnbd_clt *clt);
/* From now on no request waits for what is away, as with io_timeout_ms 0, and a server that stands still is
 * away after two heartbeats.  Any thread. */
void rnbd_clt_lose_patience(struct rnbd_clt *clt);
/* After close, with the service loop gone. */
void rnbd_clt_fini(struct rnbd_clt *clt);

/* ---- devices ---- */

/* One open in progress.  Embedded by the caller, belongs to rnbd-clt until done. */
struct rnbd_open_req {
	const char *name;
	enum rnbd_access_mode mode;
	void (*done)(struct rnbd_open_req *req);	/* service thread */
	int status;			/* 0; the server's errno; -ENAMETOOLONG; -EINVAL bad geometry;
					 * -EEXIST open under another name, and a kernel is the peer;
					 * -EIO, -ECONNABORTED: waiting for the server is over;
					 * -ESHUTDOWN: the session is to end; -ENOMEM */
	struct rnbd_dev *dev;		/* status 0: the caller holds a reference */
	/* private */
	struct rnbd_clt *clt;
	struct loop_msg msg;
	struct list link;
};

/* Open @req->name, or share it when this session has it open (the mode is then the first one's).
 * Any thread. */
void rnbd_open_start(struct rnbd_clt *clt, struct rnbd_open_req *req);
/* The same, blocking. */
int rnbd_open(struct rnbd_clt *clt, const char *name, enum rnbd_access_mode mode,
	      struct rnbd_dev **dev);
/* Drop a reference; the last one sends CLOSE, which nobody waits for but rnbd_clt_close() and the
 * next open of that name.  No IO of the caller is in flight.  Any thread; may not fail. */
void rnbd_close(struct rnbd_dev *dev);

const char *rnbd_dev_name(const struct rnbd_dev *dev);
/* As told when it was opened first; the size follows reconnects.  One that comes back with larger blocks,
 * with a write cache it did not have or without FUA is not used. */
const struct rnbd_dev_info *rnbd_dev_info(const struct rnbd_dev *dev);
uint64_t rnbd_dev_size(const struct rnbd_dev *dev);
enum rnbd_access_mode rnbd_dev_mode(const struct rnbd_dev *dev);
/* WRITE_ZEROES is there, on the server as it is now; without NOUNMAP it may unmap; may the caller
 * ask for NOUNMAP? */
bool rnbd_dev_can_zero(const struct rnbd_dev *dev);
bool rnbd_dev_can_nounmap(const struct rnbd_dev *dev);
bool rnbd_dev_can_discard(const struct rnbd_dev *dev);

/* ---- IO ---- */

struct rnbd_op {
	struct clt_op clt;
	struct rnbd_dev *dev;
	enum rnbd_io_op op;
	uint32_t flags;			/* RNBD_F_* */
	uint64_t off;			/* bytes; multiple of RNBD_SECTOR_SIZE, and so the length */
	unsigned flush_seq;		/* private: the writes a FLUSH covers */
	unsigned losses_told;		/* private: when it began */
	bool inner;			/* private: a FLUSH that is part of another request */
};

/* Start an aligned operation (see rnbd_dev_info()->logical_block_size).  @fn as clt_op_start().
 * Then clt_op_step(&op->clt) until true, then rnbd_op_end() once for the result. */
void rnbd_op_start(struct rnbd_op *op, struct rnbd_dev *dev, enum rnbd_io_op what, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off, void (*fn)(struct clt_waiter *w));
/* 0 or -errno; accounts what a FLUSH must cover (doc/decisions.md D13). */
int rnbd_op_end(struct rnbd_op *op);

/* Any offset and length inside the device; unaligned edges are read, changed and written under a
 * lock that excludes other writers of that block.  Block; any thread.  0 or -errno. */
int rnbd_read(struct rnbd_dev *dev, void *buf, uint32_t len, uint64_t off);
int rnbd_write(struct rnbd_dev *dev, const void *buf, uint32_t len, uint64_t off, bool fua);
int rnbd_flush(struct rnbd_dev *dev);
/* Unaligned edges are not discarded: the data there stays. */
int rnbd_discard(struct rnbd_dev *dev, uint32_t len, uint64_t off, bool fua);
/* -EOPNOTSUPP when the server cannot do it as asked. */
int rnbd_zero(struct rnbd_dev *dev, uint32_t len, uint64_t off, bool may_unmap, bool fua);

#endif
