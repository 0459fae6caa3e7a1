/* SPDX-License-Identifier: BSD-3-Clause */
/* The RDMA devices of this machine, as they are now, and what RTRS could use of each.  For a look
 * at the machine, without any connection.  Any thread; blocks for a moment for each device. */
#ifndef FAB_DEVICES_H
#define FAB_DEVICES_H

#include <errno.h>

#include "fabric.h"

struct fab_device {
	struct fab_device_attr attr;	/* all 0 but for the name if @error */
	int error;			/* -errno: the device cannot be opened or asked;
					 * 0: it can */
	enum fab_device_kind {
		FAB_DEVICE_IB,		/* InfiniBand or RoCE */
		FAB_DEVICE_IWARP,	/* without RDMA_WRITE_WITH_IMM: RTRS cannot use it */
	} kind;
	bool local_inv;			/* LOCAL_INV and SEND_WITH_INV */
	unsigned nports, nactive;	/* ports, and those of them with a link */
	uint32_t mtu;			/* of the first active port: bytes of data in a packet; 0:
					 * none is active */
};

typedef void fab_device_fn(void *arg, const struct fab_device *dev);

#ifdef HAVE_RDMA
/* Call @each for each device that user space can see.  Returns 0; or -errno: not even a list can be
 * had (-ENOSYS: the kernel has no RDMA). */
int verbs_devices(fab_device_fn *each, void *arg);
#endif

/* verbs_devices(); -EPROTONOSUPPORT: built without RDMA. */
static inline int fab_devices(fab_device_fn *each, void *arg)
{
#ifdef HAVE_RDMA
	return verbs_devices(each, arg);
#else
	(void)each;
	(void)arg;
	return -EPROTONOSUPPORT;
#endif
}

#endif
