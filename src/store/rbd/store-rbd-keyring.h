/* SPDX-License-Identifier: BSD-3-Clause */
/* Why librados cannot read the key of its user.  Any thread. */
#ifndef STORE_RBD_KEYRING_H
#define STORE_RBD_KEYRING_H

#include <stddef.h>

#include "rbd-lib.h"

/* Describe in @buf the keyring that rados_connect() of @cluster could not read: librados 16 and 18
 * answer -EIO then, and never for a monitor; 20.2 goes on without the keyring.  The text names the
 * file, and for a key of a newer cipher the version of librbd and the Ceph that knows the key. */
void store_rbd_keyring_fault(rados_t cluster, char *buf, size_t len);

#endif
