/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps to an opened image, which wait for the cluster.  Thread of aside_begin(). */
#ifndef STORE_RBD_STEPS_H
#define STORE_RBD_STEPS_H

#include <stddef.h>

#include "rbd-lib.h"
#include "store-rbd-priv.h"

#define RBD_MOUNT_TIMEOUT "client_mount_timeout"
#define RBD_MOUNT_TIMEOUT_S 30u
#define RBD_PHASES 3

struct rbd_phase;

/* The caller may leave meanwhile, with all that is its own. */
struct rbd_connect {
	struct store_rbd copy;		/* of the caller's: what is asked for, and what is got */
	struct store_rbd *r;		/* @copy */
	const struct rbd_phase *phase;
	char err[320];
	int rc;
};

/* A phase of the steps.  A thread that waits reads the phase, and can say for whom it waits. */
struct rbd_phase {
	const char *whom;
	const char *advice;
	unsigned grace_s;		/* Ceph ends the steps, with its reason */
	/* 0, or -errno with one line in c->err. */
	int (*steps[7])(struct rbd_connect *c);
};

extern const struct rbd_phase store_rbd_phases[RBD_PHASES];

/* ---- why librados cannot read the key of its user; any thread ---- */

/* Describe in @buf the keyring that rados_connect() of @cluster could not read: librados 16 and 18
 * answer -EIO then, and never for a monitor; 20.2 goes on without the keyring.  The text names the
 * file, and for a key of a newer cipher the version of librbd and the Ceph that knows the key. */
void store_rbd_steps_fault(rados_t cluster, char *buf, size_t len);

#endif
