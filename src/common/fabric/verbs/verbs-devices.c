/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens each device for the time of a look; owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "fab-devices.h"
#include "verbs-priv.h"

static void look_at_ports(struct ibv_context *context, const struct ibv_device_attr *attr,
			  struct fab_device *dev)
{
	dev->nports = attr->phys_port_cnt;
	for (unsigned i = 1; i <= dev->nports; i++) {
		struct ibv_port_attr port;

		if (ibv_query_port(context, (uint8_t)i, &port) || port.state != IBV_PORT_ACTIVE)
			continue;
		if (!dev->nactive++)
			dev->mtu = 128u << port.active_mtu;
	}
}

/* 0 or -errno. */
static int look_inside(struct ibv_device *device, struct fab_device *dev)
{
	struct ibv_device_attr attr;
	struct ibv_context *context;
	int rc;

	errno = 0;
	context = ibv_open_device(device);
	if (!context)
		return errno ? -errno : -EIO;
	rc = verbs_dev_query_context(context, &dev->attr);
	if (!rc && ibv_query_device(context, &attr))
		rc = -EIO;
	if (!rc) {
		dev->local_inv = attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
		look_at_ports(context, &attr, dev);
	}
	ibv_close_device(context);
	return rc;
}

int verbs_devices(fab_device_fn *each, void *arg)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (!list)
		return errno ? -errno : -EIO;
	for (int i = 0; i < n; i++) {
		struct fab_device dev = {
			.kind = list[i]->transport_type == IBV_TRANSPORT_IWARP ?
				FAB_DEVICE_IWARP : FAB_DEVICE_IB,
		};

		dev.error = look_inside(list[i], &dev);
		snprintf(dev.attr.name, sizeof(dev.attr.name), "%s",
			 ibv_get_device_name(list[i]));
		each(arg, &dev);
	}
	ibv_free_device_list(list);
	return 0;
}
