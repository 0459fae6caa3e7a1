/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of a client: opened, closed, read and written.  NBD's requests become RNBD operations
 * (doc/protocol.md 8).
 *
 * Opening and closing run on the service loop; IO on the caller's thread.  Functions that say
 * "blocks" wait with clt-wait.h.  IO here is of whole blocks and does not block: dev-req.h has
 * requests of any offset and length, also for threads that wait. */
#ifndef DEV_H
#define DEV_H

#include "client.h"
#include "counter.h"
#include "dev-loss.h"
#include "rnbd-ext.h"
#include "rnbd-proto.h"

struct dev;

/* ---- devices ---- */

/* An open in progress.  The caller embeds the struct, which belongs to dev.c until @done. */
struct dev_open_req {
	const char *name;
	enum rnbd_access_mode mode;
	enum {
		DEV_OPEN_WAITS,		/* for a server without the storage: io_timeout */
		DEV_OPEN_ONCE,
	} patience;
	void (*done)(struct dev_open_req *req);	/* service thread */
	int status;			/* 0; the server's errno; -ENAMETOOLONG; -EINVAL bad
					 * geometry; -EEXIST open under another name, and a kernel
					 * is the peer; -EMEDIUMTYPE open, and smaller now than at
					 * the open; -EIO, -ECONNABORTED: waiting for the server is
					 * over; -ESHUTDOWN: the session is to end; -ENOMEM */
	enum rnbd_refusal refusal;	/* the reason of @status, if the server gave one */
	struct dev *dev;		/* status 0: the caller holds a reference */
	/* private */
	struct client *clt;
	struct loop_msg msg;
	struct list link;
};

/* Open @req->name.  If this session has the device open, share the device, with the mode of its
 * first open and the present size; unless the server has another export under the name by now,
 * which is another device.  Any thread. */
void dev_open_start(struct client *clt, struct dev_open_req *req);
/* The same, and wait for the end: @req has no done().  Returns @req->status.  Blocks. */
int dev_open_wait(struct client *clt, struct dev_open_req *req);
/* Open a device like dev_open_wait().  Returns dev_open_req.status, and the
 * reference in *@dev.  Blocks. */
int dev_open(struct client *clt, const char *name, enum rnbd_access_mode mode,
	      struct dev **dev);
/* Drop a reference, with no IO of the caller in flight.  The last drop sends CLOSE; client_close()
 * and the next open of the name wait for the answer.  Any thread; cannot fail. */
void dev_close(struct dev *dev);

/* The name of the export. */
const char *dev_name(const struct dev *dev);
/* The answer to the first OPEN.  The size grows with reconnects, and with each further open of the
 * device.  The client does not use a device that comes back as another file, smaller, with larger
 * blocks, with a new write cache, or without FUA. */
const struct rnbd_dev_info *dev_info(const struct dev *dev);
/* The present size of the export, in bytes. */
uint64_t dev_size(const struct dev *dev);
/* The access mode of the first open. */
enum rnbd_access_mode dev_mode(const struct dev *dev);
/* True if the present server offers WRITE_ZEROES.  Without NOUNMAP the server may unmap. */
bool dev_can_zero(const struct dev *dev);
/* True if the caller may ask for WRITE_ZEROES with NOUNMAP. */
bool dev_can_nounmap(const struct dev *dev);
/* True if the server takes DISCARD for this device. */
bool dev_can_discard(const struct dev *dev);

/* For control commands.  Service thread. */
/* The device of @clt after @dev, or the first for NULL; NULL: there is no other. */
struct dev *dev_next(struct client *clt, struct dev *dev);
#define dev_for_each(dev, clt) for ((dev) = NULL; ((dev) = dev_next(clt, dev));)
/* The server's id of @dev, in this epoch. */
unsigned dev_id(const struct dev *dev);
/* The references of @dev. */
unsigned dev_users(const struct dev *dev);
/* True for at most one device of a name: the one that whoever opens the name gets. */
bool dev_has_name(const struct dev *dev);
/* The state of @dev, as dev_fsm names the state; "kicked": open, and the server has answered in
 * this epoch that it has closed the device. */
const char *dev_state_name(const struct dev *dev);
/* Why the server does not open @dev, or not again, in the words of dev_why(); NULL: it is open, or
 * the server has not answered. */
const char *dev_cause(const struct dev *dev);

/* ---- an export that nobody has open: dev-watch.c ---- */

enum dev_watch_needs {
	DEV_WATCH_MODE,			/* the export in the mode */
	DEV_WATCH_ANY,			/* or for reading alone */
};

/* From now on note each refusal of @name, and ask for it in @mode until the server gives it, and in
 * each further epoch.  @known: the server gives it now.  Once for a client, which stops the watch
 * at its end.  0 or -ENOMEM.  Not on the service thread. */
int dev_watch_start(struct client *clt, const char *name, enum rnbd_access_mode mode,
		    enum dev_watch_needs needs, bool known);
/* Why the server has refused the export that is watched, which nobody has open, when it was last
 * asked: the words of dev_why(), with its *@name, and for how long it has, *@ms.  NULL: it has
 * not, or there is no watch.  Service thread. */
const char *dev_watch_refused(const struct client *clt, const char **name, uint64_t *ms);

/* ---- IO ---- */

/* A handle is one user of a device: a connection of NBD.  A handle is to a device like an open
 * file to a file.  A READ shows no byte of another handle's requests, whatever the server does.
 * Each handle is told once of writes that were lost while the handle was open (doc/decisions.md
 * D13).  No handle waits for a permit behind a greedy one (clt-account.h).  Embedded by the
 * caller, who holds a reference of the device from init to fini.  No IO is in flight at init and
 * at fini. */
struct dev_handle {
	struct dev *dev;
	struct clt_account account;	/* private: of the session's permits */
	uint64_t user;			/* private: the number of the handle, never used again */
	struct dev_told told;		/* private */
};

/* Open @h on @dev. */
void dev_handle_init(struct dev_handle *h, struct dev *dev);
/* A request of @h has told of a loss (dev_req_tells_loss()), and the user has the answer, whatever
 * happens to the process now.  A front end whose session outlives the process (clt-kept.h) calls
 * this once for each such answer that it has handed over, for instance to the kernel; else the next
 * process reports the loss once more.  Any thread. */
void dev_handle_arrived(struct dev_handle *h);
/* Close @h, which the caller still owns. */
void dev_handle_fini(struct dev_handle *h);

struct dev_io {
	struct clt_op clt;
	struct dev *dev;
	struct dev_handle *h;
	enum rnbd_io_op op;
	uint32_t flags;			/* RNBD_F_* */
	uint64_t off;			/* bytes; multiple of RNBD_SECTOR_SIZE, and so the length */
	uint64_t began_ns;		/* clock_measure_ns() when the user asked; set before the
					 * start */
	uint32_t span;			/* EXTENTS: bytes from off on that are asked about; set
					 * before the start */
	struct dev_cover cover;		/* private; of a FLUSH, or with FUA */
};

/* Start an aligned operation (see dev_info()->logical_block_size).  @fn: as in clt_op_start().
 * Then call clt_op_step(&op->clt) until true, then dev_io_end() once for the result. */
void dev_io_start(struct dev_io *op, struct dev_handle *h, enum rnbd_io_op what, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off, void (*fn)(struct clt_waiter *w));
/* End @op, and count its writes for a later FLUSH.  0 or -errno.  A FLUSH or FUA that the server
 * has carried out is -EIO if earlier writes are lost and @op->h was not told yet (dev-loss.h). */
int dev_io_end(struct dev_io *op);
/* The same for a FLUSH whose result the user is not told: a loss that it finds is told by the next
 * one. */
int dev_io_end_untold(struct dev_io *op);

/* Words for an OPEN that has failed: why with @status, a negative errno, for @refusal, or
 * RNBD_REFUSES_NOT of a server that gives no reason; and what a user can do.  Without a full
 * stop.  Pure: any thread, no memory. */
const char *dev_why(int status, enum rnbd_refusal refusal);

/* ---- the names of the server's exports, as far as it reports them (doc/decisions.md D16) ---- */

/* The client takes at most this many names; nbdkit gives no more to its own client. */
#define DEV_LIST_MAX 10000u

struct dev_list {
	unsigned n;
	char (*names)[RNBD_NAME_MAX];	/* [n] */
};

/* The names have come.  @status: 0; -EOPNOTSUPP: the server, a kernel or an older one, has no list;
 * -EBADMSG: what it answers is none; -ENOMEM; or as dev_open_req.status.  @list is freed behind the
 * call, unless its names are taken out.  Service thread. */
typedef void dev_list_fn(void *arg, int status, struct dev_list *list);

/* Ask for all names, one message after the other.  Any thread; the session is not closed meanwhile.
 * 0 and @done will be called, or -ENOMEM and it will not. */
int dev_list_start(struct client *clt, dev_list_fn *done, void *arg);
/* The same for a thread that waits, into @list, which dev_list_fini() frees in any case.  Returns
 * the status.  Blocks. */
int dev_list(struct client *clt, struct dev_list *list);
/* Free the names. */
void dev_list_fini(struct dev_list *list);

/* ---- parts of a device that hold data, by the server (doc/decisions.md D16) ---- */

/* True if the present server tells holes from data; else the whole device counts as data.  Any
 * thread. */
bool dev_extents_known(const struct dev *dev);

/* A question that is under way; embedded by its owner, who steps @io.clt (clt_op_step()). */
struct dev_extents_ask {
	struct dev_io io;
	void *answer;			/* the caller's memory, RNBD_EXTENTS_ROOM bytes */
	/* private */
	uint64_t start;			/* of what is asked about, in whole sectors */
	uint32_t room;
};

/* Begin to ask what @len bytes from @off on are, of any alignment, inside the device; about one
 * extent alone with @one.  @fn as clt_op_start().  Does not block. */
void dev_extents_start(struct dev_extents_ask *ask, struct dev_handle *h, uint64_t len,
		       uint64_t off, bool one, void (*fn)(struct clt_waiter *w));
/* The operation has ended: call @fn for each extent in turn, in the order of their places.  The
 * first one begins at @off or in front of it, they touch each other, and need not reach the end of
 * what was asked for.  0; what @fn returned, if that was not 0; -EBADMSG: the server's answer is
 * none; or as dev_io_end(). */
int dev_extents_end(struct dev_extents_ask *ask,
		    int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent),
		    void *arg);
/* Both, with a wait between them.  Blocks; any thread. */
int dev_extents(struct dev_handle *h, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg);

/* ---- dev-io.c: counters of the requests to a device ---- */

/* A request counts once, from the user's call to its end, however many requests the server gets.
 *
 * A thread counts in the shard of its clt_io_hint(), which few other threads share; each shard
 * has cache lines of its own.  The service thread reads the shards in place, and may miss requests
 * that are being counted.  A reset keeps the present counts and subtracts them from later
 * results. */

#define DEV_STAT_SHARDS 16

/* A shard, or their sum; all 0: no request was counted. */
struct dev_stat {
	_Alignas(64) struct io_stat io;	/* .count in sums alone: a shard's is the total of
					 * .latency */
	struct hist queued;		/* waiting times of requests before they were sent
					 * (clt_op.waited_ns) */
};

/* Count a request for @bytes that ended with @status after @ns.  @hint: clt_io_hint().  Any
 * thread. */
static inline void dev_stat_count(struct dev_stat shards[DEV_STAT_SHARDS], unsigned hint,
				  enum io_stat_op op, int status, uint64_t bytes, uint64_t ns)
{
	struct io_stat_count *c = &shards[hint % DEV_STAT_SHARDS].io.op[op];

	counter_add_shared(status ? &c->errors : &c->bytes, status ? 1 : bytes);
	hist_count_shared(&c->latency, ns);
}

/* Count that a request waited for @ns, unless @ns is 0.  Any thread. */
static inline void dev_stat_queued(struct dev_stat shards[DEV_STAT_SHARDS], unsigned hint,
				   uint64_t ns)
{
	if (ns)
		hist_count_shared(&shards[hint % DEV_STAT_SHARDS].queued, ns);
}

/* Write the counters since @dev was opened into @sum; resets change nothing.  Service thread, as
 * the following. */
void dev_stat_ever(const struct dev *dev, struct dev_stat *sum);
/* Write the counters since the last reset into @sum. */
void dev_stat_get(const struct dev *dev, struct dev_stat *sum);
/* Begin to count again. */
void dev_stat_reset(struct dev *dev);

/* Look at the requests that have not ended, of users and of the client itself.  Returns the age of
 * the oldest of the session; dev_stat_oldest_ns() has the oldest of each device.  0: there is none.
 * The age counts from the time when the user asked, across lost paths. */
uint64_t dev_stat_ages(struct client *clt);
/* What dev_stat_ages() has found for @dev. */
uint64_t dev_stat_oldest_ns(const struct dev *dev);

#endif
