/* SPDX-License-Identifier: BSD-3-Clause */
/* Knows RDMA devices: their limits, the devices that a cm has used, and the removed devices.  A
 * device belongs to librdmacm, which opens each once and keeps it open.  Any thread; errors as
 * fabric.h says. */
#include <config.h>

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#include "fab-devices.h"
#include "verbs-priv.h"

/* Of so many requests at least one is signaled, so that unsignaled requests never block the ring of
 * verbs-post.c.  The device's queue has as many more entries, and an entry for the marker. */
#define SIGNAL_EVERY_MAX 128u

static uint32_t signal_every(uint32_t max_send_wr)
{
	return MAX(1u, MIN(max_send_wr / 4, SIGNAL_EVERY_MAX));
}

void verbs_dev_queues(const struct fab_qp_attr *attr, uint32_t max_sge, struct verbs_queues *q)
{
	q->signal_every = signal_every(attr->max_send_wr);
	q->send_wr = attr->max_send_wr + q->signal_every + 1;
	q->recv_wr = attr->max_recv_wr;
	q->cqe = q->send_wr + q->recv_wr;
	q->recv_sge = MIN(max_sge, (uint32_t)FAB_RECV_SGE_MAX);
}

void verbs_dev_limits(const struct ibv_device_attr *dev, struct fab_device_attr *attr)
{
	const unsigned type_2b = IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
	/* Both queues report to a single CQ, which must have room for all requests that can be
	 * posted. */
	uint32_t wr = (uint32_t)MAX(0, MIN(dev->max_qp_wr, dev->max_cqe / 2));
	uint32_t n = wr;

	while (n && n + signal_every(n) + 1 > wr)
		n--;
	*attr = (struct fab_device_attr){
		.max_qp_wr = n,
		.max_sge = dev->max_sge > 0 ? (uint32_t)dev->max_sge : 0,
		.max_mw = dev->max_mw > 0 ? (uint32_t)dev->max_mw : 0,
		.vendor_id = dev->vendor_id, .vendor_part_id = dev->vendor_part_id,
	};
	if (dev->device_cap_flags & IBV_DEVICE_MEM_WINDOW)
		attr->caps |= FAB_CAP_MW_TYPE_1;
	/* Without the extensions no window could be invalidated. */
	if ((dev->device_cap_flags & type_2b) == type_2b)
		attr->caps |= FAB_CAP_MW_TYPE_2B;
}

bool verbs_dev_lacks_imm(const struct ibv_context *device)
{
	return device && device->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* True if a window can be allocated.  The device's flags describe only the kernel, not the user
 * library. */
static bool has_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw;

	errno = 0;
	mw = ibv_alloc_mw(pd, type);
	if (mw)
		ibv_dealloc_mw(mw);
	return mw || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL);
}

/* Clear in @attr the types of windows that cannot be allocated. */
static void try_windows(struct ibv_context *device, struct fab_device_attr *attr)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	struct ibv_pd *pd;

	if (!(attr->caps & (FAB_CAP_MW_TYPE_1 | FAB_CAP_MW_TYPE_2B)))
		return;
	pd = ibv_alloc_pd(device);
	if (!pd)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		if (attr->caps & FAB_CAP_MW(types[i]) && !has_mw(pd, types[i]))
			attr->caps &= ~FAB_CAP_MW(types[i]);
	}
	ibv_dealloc_pd(pd);
}

/* The attributes of an open @device, without the port, after trying its windows. */
static int query_context(struct ibv_context *device, struct fab_device_attr *attr)
{
	struct ibv_device_attr dev;

	if (ibv_query_device(device, &dev))
		return -EIO;
	verbs_dev_limits(&dev, attr);
	snprintf(attr->name, sizeof(attr->name), "%s", ibv_get_device_name(device->device));
	try_windows(device, attr);
	return 0;
}

int verbs_dev_query(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	const struct verbs_conn *c = verbs_conn(conn);

	int rc = c->id->verbs ? query_context(c->id->verbs, attr) : -EINVAL;

	attr->port = c->id->port_num;
	return rc;
}

int verbs_dev_query_listener(const struct fab_listener *fab, struct fab_device_attr *attr)
{
	const struct verbs_listener *l = container_of(fab, struct verbs_listener, fab);

	return l->id->verbs ? query_context(l->id->verbs, attr) : -ENODEV;
}

struct verbs_dev *verbs_dev_get(struct verbs_cm *cm, struct ibv_context *device)
{
	struct verbs_dev *dev;

	list_for_each(dev, &cm->devs, link) {
		if (dev->verbs == device)
			return dev;
	}
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;
	dev->cm = cm;
	dev->verbs = device;
	list_init(&dev->jobs);
	list_add_tail(&cm->devs, &dev->link);
	return dev;
}

struct rdma_cm_id *verbs_dev_release(struct verbs_dev *dev)
{
	struct rdma_cm_id *id = dev->id;

	if (dev->npds || !dev->gone || dev->njobs)
		return NULL;
	list_del(&dev->link);
	free(dev);
	return id;
}

/* ---- removal ---- */

/* The addresses of removed devices.  An address stays until another device is opened there, because
 * a connection may ask about its device at any time.  Of more than a machine has the oldest is
 * dropped. */
#define REMOVED_MAX 64u

static _Atomic(struct ibv_context *) removed[REMOVED_MAX];
static atomic_uint removed_next;
static atomic_bool looking;		/* librdmacm may not have seen the removal */

bool verbs_dev_is_removed(const struct ibv_context *device)
{
	for (unsigned i = 0; device && i < REMOVED_MAX; i++) {
		if (atomic_load(&removed[i]) == device)
			return true;
	}
	return false;
}

void verbs_dev_removed(struct ibv_context *device)
{
	/* RACE: two threads that note a device may both store it; verbs_dev_works() clears both
	 * places. */
	if (!verbs_dev_is_removed(device)) {
		unsigned i = 0;

		for (struct ibv_context *none = NULL; i < REMOVED_MAX; i++, none = NULL) {
			if (atomic_compare_exchange_strong(&removed[i], &none, device))
				break;
		}
		if (i == REMOVED_MAX)
			atomic_store(&removed[atomic_fetch_add(&removed_next, 1) % REMOVED_MAX],
				     device);
	}
	atomic_store(&looking, true);
}

/* Reads the events of all connections of @device.  A connection whose event is read here cannot be
 * destroyed before the event is acknowledged. */
void verbs_dev_events(struct ibv_context *device)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(device, &event)) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			verbs_dev_removed(device);
		else if (event.event_type == IBV_EVENT_CQ_ERR)
			atomic_store(
				&((struct verbs_conn *)event.element.cq->cq_context)->cq_broken,
				true);
		ibv_ack_async_event(&event);
	}
}

/* @device may be another device, at the address of a removed device that was closed. */
void verbs_dev_works(struct ibv_context *device)
{
	for (unsigned i = 0; i < REMOVED_MAX; i++) {
		struct ibv_context *was = device;

		atomic_compare_exchange_strong(&removed[i], &was, NULL);
	}
}

/* Without any device rdma_get_devices() returns no list, and librdmacm closes no device. */
bool verbs_dev_look(void)
{
	struct ibv_context **list;
	bool there = false;

	/* ORDER: first, so that a device removed from here on makes the next call look. */
	if (!atomic_exchange(&looking, false))
		return false;
	list = rdma_get_devices(NULL);
	for (int i = 0; list && list[i]; i++)
		there |= verbs_dev_is_removed(list[i]);
	if (!list || there)
		atomic_store(&looking, true);
	if (list)
		rdma_free_devices(list);
	return !list || there;
}

/* ---- a look at all devices: each is opened for the time of the look ---- */

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
	int rc = 0;

	errno = 0;
	context = ibv_open_device(device);
	if (!context)
		return verbs_neg_errno();
	if (ibv_query_device(context, &attr)) {
		rc = -EIO;
	} else {
		verbs_dev_limits(&attr, &dev->attr);
		try_windows(context, &dev->attr);
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
		return verbs_neg_errno();
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
