/* SPDX-License-Identifier: BSD-3-Clause */
/* The device table of a session: which exports it has open, under which device id (doc/protocol.md 8.2).
 *
 * The control thread opens and closes; IO threads look devices up for every request.  So that they
 * need no lock, slots are never freed before the session and one atomic word per slot holds both the
 * open flag and the number of requests that use the device.  A device that is closing hands out no
 * more references, and the one who puts the last of them is told so exactly once.
 *
 * A session opens each export at most once (a second OPEN of a name gives the same handle), so the
 * table has as many slots as there are exports and the id is the slot's index. */
#ifndef SRV_DEV_H
#define SRV_DEV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "list.h"
#include "rnbd-proto.h"

struct export;
struct srv_sess;

enum srv_dev_state {
	SRV_DEV_FREE,
	SRV_DEV_OPEN,
	SRV_DEV_LOST,		/* closing: its session lost its last path; may be revived */
	SRV_DEV_CLOSED,	/* closing: by CLOSE */
};

struct srv_dev {
	_Atomic(uint32_t) word;		/* SRV_DEV_USABLE | references */
	struct export *ex;		/* constant while word is not 0 */
	enum rnbd_access_mode mode;	/* likewise */
	uint32_t id;
	struct srv_sess *sess;
	/* control thread */
	enum srv_dev_state state;
	struct list closers;		/* CLOSE requests to answer when the last reference is gone */
	struct loop_msg quiet_msg;	/* to the control thread: closing, and the last reference is gone */
};

#define SRV_DEV_USABLE 0x80000000u

struct srv_dev_table {
	unsigned n;
	struct srv_dev *devs;
};

int srv_dev_table_init(struct srv_dev_table *t, unsigned n, struct srv_sess *sess);
/* Every device must be free. */
void srv_dev_table_fini(struct srv_dev_table *t);

/* ---- any thread ---- */

/* A reference on the open device @id, or NULL. */
struct srv_dev *srv_dev_get(struct srv_dev_table *t, uint32_t id);
/* Returns true when this was the last reference of a closing device: the caller then posts
 * quiet_msg to the control thread. */
bool srv_dev_put(struct srv_dev *dev);

/* ---- control thread ---- */

/* The device of @ex that is not free, or NULL. */
struct srv_dev *srv_dev_find(const struct srv_dev_table *t, const struct export *ex);
/* Open @ex under the lowest free id.  @ex must not be in the table.  @quiet runs on the control thread when
 * the last reference goes while the device is closing. */
struct srv_dev *srv_dev_open(struct srv_dev_table *t, struct export *ex, enum rnbd_access_mode mode,
			     void (*quiet)(struct loop_msg *msg));
/* Hand out no more references.  @state: LOST or CLOSED.  Returns true when there is none: call
 * srv_dev_free() now; otherwise when quiet_msg arrives.  A LOST device may become CLOSED. */
bool srv_dev_begin_close(struct srv_dev *dev, enum srv_dev_state state);
/* Make a LOST device usable again.  False when its last reference has just gone and quiet_msg is on
 * its way. */
bool srv_dev_revive(struct srv_dev *dev);
/* The id is free again.  @dev->closers must be empty. */
void srv_dev_free(struct srv_dev *dev);

#endif
