/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of a client: opened, closed, read and written.  NBD's requests become RNBD operations
 * (doc/protocol.md 8).
 *
 * Opening and closing run on the service loop; IO on the caller's thread.  Functions that say
 * "blocks" wait with clt-wait.h.  IO here is of whole blocks and does not block: dev-req.h has
 * requests of any offset and length, dev-call.h the same for threads that wait. */
#ifndef DEV_H
#define DEV_H

#include "client.h"
#include "dev-loss.h"

struct dev;

/* ---- devices ---- */

/* An open in progress.  The caller embeds the struct, which belongs to dev.c until @done. */
struct dev_open_req {
	const char *name;
	enum rnbd_access_mode mode;
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

#endif
