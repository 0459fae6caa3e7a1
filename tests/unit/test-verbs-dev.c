/* SPDX-License-Identifier: BSD-3-Clause */
/* What the verbs provider offers on a device, what it asks of it, and what the device says of
 * itself. */
#include <config.h>

#include <criterion/criterion.h>

#include <errno.h>

#include <rdma/rdma_cma.h>

#include "fab-devices.h"
#include "verbs-priv.h"

static struct fab_device_attr limits(int max_qp_wr, int max_cqe, int max_sge)
{
	const struct ibv_device_attr dev = {
		.max_qp_wr = max_qp_wr, .max_cqe = max_cqe, .max_sge = max_sge,
	};
	struct fab_device_attr attr;

	verbs_dev_limits(&dev, &attr);
	return attr;
}

Test(verbs_dev, whatever_is_offered_fits)
{
	for (int wr = 3; wr < 3000; wr++) {
		for (int cqe = 6; cqe < 6000; cqe += wr % 7 + 199) {
			struct fab_device_attr dev = limits(wr, cqe, 1 + wr % 6);
			struct fab_qp_attr attr = { dev.max_qp_wr, dev.max_qp_wr, dev.max_sge };
			struct verbs_queues q;

			cr_assert(dev.max_qp_wr > 0);
			verbs_dev_queues(&attr, dev.max_sge, &q);
			cr_assert(q.send_wr <= (uint32_t)wr && q.recv_wr <= (uint32_t)wr, "%d %d",
				  wr, cqe);
			cr_assert(q.cqe <= (uint32_t)cqe, "%d %d", wr, cqe);
			cr_assert(q.recv_sge >= 1 && q.recv_sge <= dev.max_sge);
			/* The ring, and a marker behind it. */
			cr_assert(q.send_wr == attr.max_send_wr + q.signal_every + 1);
			cr_assert(q.cqe == q.send_wr + q.recv_wr);
		}
	}
}

/* Nothing is held back but what signaling takes. */
Test(verbs_dev, all_of_the_device)
{
	cr_assert(limits(3, 6, 1).max_qp_wr == 1);
	cr_assert(limits(21, 1000, 4).max_qp_wr == 16);
	cr_assert(limits(16384, 32767, 32).max_qp_wr == 16383 - 129);
	cr_assert(limits(16384, 1 << 20, 32).max_qp_wr == 16384 - 129);
	cr_assert(limits(1000, 200, 32).max_qp_wr == 79);
	cr_assert(limits(100, 100, 1).max_sge == 1 && limits(100, 100, 30).max_sge == 30);
}

Test(verbs_dev, nothing)
{
	cr_assert(limits(2, 1000, 4).max_qp_wr == 0);
	cr_assert(limits(1000, 5, 4).max_qp_wr == 0);
	cr_assert(limits(0, 0, 0).max_qp_wr == 0 && limits(0, 0, 0).max_sge == 0);
	cr_assert(limits(-1, -1, -1).max_qp_wr == 0 && limits(-1, -1, -1).max_sge == 0);
	cr_assert(limits(0, 0, 0).max_mw == 0);
}

/* Before any trial: type 2 without a way to invalidate it is of no use. */
Test(verbs_dev, windows)
{
	static const struct {
		unsigned flags, caps;
	} cases[] = {
		{ 0, 0 },
		{ IBV_DEVICE_MEM_WINDOW, FAB_CAP_MW_TYPE_1 },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_MGT_EXTENSIONS, 0 },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0 },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS,
		  FAB_CAP_MW_TYPE_2B },
		{ 0x01223c76, FAB_CAP_MW_TYPE_1 | FAB_CAP_MW_TYPE_2B },	/* rxe */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ibv_device_attr dev = {
			.device_cap_flags = cases[i].flags, .max_mw = 5
		};
		struct fab_device_attr attr;

		verbs_dev_limits(&dev, &attr);
		cr_assert_eq(attr.caps, cases[i].caps, "%u", i);
		cr_assert(attr.max_mw == 5);
	}
}

/* ---- what a device says ---- */

static struct ibv_async_event events[8];
static unsigned nevents, nacked;

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (nacked == nevents) {
		errno = EAGAIN;
		return -1;
	}
	*event = events[nacked];
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	nacked++;
}

Test(verbs_dev, events)
{
	static struct verbs_conn c;
	struct ibv_cq cq = { .cq_context = &c };
	struct ibv_context device = { 0 }, other = { 0 };

	events[nevents++] = (struct ibv_async_event){ .event_type = IBV_EVENT_COMM_EST };
	events[nevents++] = (struct ibv_async_event){ .event_type = IBV_EVENT_PORT_ERR };
	verbs_dev_events(&device);
	cr_assert(nacked == 2 && !verbs_dev_is_removed(&device));
	events[nevents++] = (struct ibv_async_event){ .event_type = IBV_EVENT_CQ_ERR,
						      .element = { .cq = &cq } };
	verbs_dev_events(&device);
	cr_assert(nacked == 3 && atomic_load(&c.cq_broken) && !verbs_dev_is_removed(&device));
	events[nevents++] = (struct ibv_async_event){ .event_type = IBV_EVENT_DEVICE_FATAL };
	verbs_dev_events(&device);
	cr_assert(nacked == 4 && verbs_dev_is_removed(&device));
	cr_assert_not(verbs_dev_is_removed(&other));
	cr_assert_not(verbs_dev_is_removed(NULL));
	/* Another one, at its address. */
	verbs_dev_works(&other);
	cr_assert(verbs_dev_is_removed(&device));
	verbs_dev_works(&device);
	cr_assert_not(verbs_dev_is_removed(&device));
}

/* ---- devices that go together ---- */

static struct ibv_context gone[100];
static struct ibv_context *listed[3];
static unsigned looks;

struct ibv_context **rdma_get_devices(int *num)
{
	looks++;
	return listed[0] ? listed : NULL;
}

void rdma_free_devices(struct ibv_context **list)
{
	cr_assert_eq(list, listed);
}

/* A connection of either completes nothing any more, and has to know it to drain. */
Test(verbs_dev, two_that_are_removed_together)
{
	verbs_dev_removed(&gone[0]);
	verbs_dev_removed(&gone[1]);
	cr_assert(verbs_dev_is_removed(&gone[0]) && verbs_dev_is_removed(&gone[1]));
	cr_assert_not(verbs_dev_is_removed(&gone[2]));
	verbs_dev_works(&gone[1]);
	cr_assert(verbs_dev_is_removed(&gone[0]) && !verbs_dev_is_removed(&gone[1]));
}

/* One that flaps takes one place. */
Test(verbs_dev, many_that_are_removed)
{
	for (unsigned i = 0; i < 1000; i++)
		verbs_dev_removed(&gone[0]);
	for (unsigned i = 1; i < 64; i++)
		verbs_dev_removed(&gone[i]);
	for (unsigned i = 0; i < 64; i++)
		cr_assert(verbs_dev_is_removed(&gone[i]), "%u", i);
	/* The oldest for the 65th (REMOVED_MAX). */
	verbs_dev_removed(&gone[64]);
	cr_assert(verbs_dev_is_removed(&gone[64]) && !verbs_dev_is_removed(&gone[0]));
	verbs_dev_removed(&gone[65]);
	cr_assert(verbs_dev_is_removed(&gone[65]) && !verbs_dev_is_removed(&gone[1]));
}

/* librdmacm has to look until it has seen that both are gone. */
Test(verbs_dev, looks_for_each)
{
	struct ibv_context works = { 0 };

	cr_assert(!verbs_dev_look() && looks == 0);
	verbs_dev_removed(&gone[0]);
	verbs_dev_removed(&gone[1]);
	cr_assert(verbs_dev_look() && looks == 1, "no list: the only ones");
	listed[0] = &gone[0];
	listed[1] = &works;
	cr_assert(verbs_dev_look() && looks == 2, "the first is still there");
	listed[0] = &works;
	listed[1] = &gone[1];
	cr_assert(verbs_dev_look() && looks == 3, "the second is");
	listed[1] = NULL;
	cr_assert(!verbs_dev_look() && looks == 4);
	cr_assert(!verbs_dev_look() && looks == 4);
}

/* ---- a look at all devices ---- */

#define WINDOWS (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B)
#define CAPS (FAB_CAP_MW_TYPE_1 | FAB_CAP_MW_TYPE_2B)
#define EXTENSIONS IBV_DEVICE_MEM_MGT_EXTENSIONS
#define DOWN IBV_PORT_DOWN
#define ACTIVE IBV_PORT_ACTIVE

/* Devices, and what is told of each. */
static const struct machine {
	struct ibv_device device;
	int open_errno, query_errno;	/* -1: fails without one */
	unsigned flags;
	int mw_errno[2];		/* of each type; 0: it can be allocated */
	struct ibv_port_attr ports[2];
	struct fab_device told;
} machine[] = {
	{ { .name = "rxe0", .transport_type = IBV_TRANSPORT_IB }, .flags = WINDOWS | EXTENSIONS,
	  .mw_errno = { 0, EOPNOTSUPP },
	  .ports = { { .state = DOWN, .active_mtu = IBV_MTU_256 },
		     { .state = ACTIVE, .active_mtu = IBV_MTU_4096 } },
	  .told = { .attr.caps = FAB_CAP_MW_TYPE_1, .local_inv = true, .nports = 2, .nactive = 1,
		    .mtu = 4096 } },
	{ { .name = "siw0", .transport_type = IBV_TRANSPORT_IWARP }, .ports = { { .state = DOWN } },
	  .told = { .kind = FAB_DEVICE_IWARP, .nports = 1 } },
	{ { .name = "mlx5_0", .transport_type = IBV_TRANSPORT_IB }, .flags = WINDOWS | EXTENSIONS,
	  .ports = { { .state = ACTIVE, .active_mtu = IBV_MTU_1024 },
		     { .state = ACTIVE, .active_mtu = IBV_MTU_2048 } },
	  .told = { .attr.caps = CAPS, .local_inv = true, .nports = 2, .nactive = 2,
		    .mtu = 1024 } },
	{ { .name = "closed" }, .open_errno = EACCES, .told = { .error = -EACCES } },
	{ { .name = "silent" }, .open_errno = -1, .told = { .error = -EIO } },
	{ { .name = "mute" }, .query_errno = ENXIO, .told = { .error = -EIO } },
};
static struct ibv_device hw[ARRAY_SIZE(machine)];
static struct ibv_device *hw_list[ARRAY_SIZE(machine) + 1];
static struct ibv_context contexts[ARRAY_SIZE(machine)];
static int list_errno = -1;		/* or the list's; 0: without one */
static int mw_errno[2];			/* as in struct machine */
static unsigned nopen, ntold;		/* contexts, lists, pds, windows; devices */

static const struct machine *of(const struct ibv_context *context)
{
	return &machine[context - contexts];
}

struct ibv_device **ibv_get_device_list(int *n)
{
	if (list_errno >= 0) {
		errno = list_errno;
		return NULL;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(machine); i++) {
		hw[i] = machine[i].device;
		hw_list[i] = &hw[i];
	}
	*n = ARRAY_SIZE(machine);
	nopen++;
	return hw_list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	cr_assert_eq(list, hw_list);
	nopen--;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	static struct ibv_mw mw;

	errno = mw_errno[type - 1];
	if (errno)
		return NULL;
	mw.context = pd->context;
	nopen++;
	return &mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	nopen--;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = &contexts[device - hw];
	int err = of(context)->open_errno;

	if (err > 0)
		errno = err;
	if (err)
		return NULL;
	*context = (struct ibv_context){ .device = device };
	context->ops.alloc_mw = alloc_mw;
	context->ops.dealloc_mw = dealloc_mw;
	memcpy(mw_errno, of(context)->mw_errno, sizeof(mw_errno));
	nopen++;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	nopen--;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct machine *m = of(context);

	*attr = (struct ibv_device_attr){ .device_cap_flags = m->flags, .max_mw = 7,
					  .phys_port_cnt = m->ports[1].state ? 2 : 1 };
	return m->query_errno;
}

int (ibv_query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	cr_assert(port == 1 || port == 2);
	*(struct ibv_port_attr *)attr = of(context)->ports[port - 1];
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	static struct ibv_pd pd;

	cr_assert(of(context)->flags & WINDOWS, "nothing to try");
	pd.context = context;
	nopen++;
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	nopen--;
	return 0;
}

static void told(void *arg, const struct fab_device *dev)
{
	const struct machine *m = &machine[ntold++];
	const struct fab_device *want = &m->told;

	cr_assert_eq(arg, &list_errno);
	cr_assert_str_eq(dev->attr.name, m->device.name);
	cr_assert_eq(dev->error, want->error, "%s: %d", m->device.name, dev->error);
	cr_assert_eq(dev->kind, want->kind, "%s", m->device.name);
	cr_assert_eq(dev->attr.caps, want->attr.caps, "%s", m->device.name);
	cr_assert_eq(dev->attr.max_mw, dev->error ? 0 : 7, "%s", m->device.name);
	cr_assert_eq(dev->local_inv, want->local_inv, "%s", m->device.name);
	cr_assert_eq(dev->nports, want->nports, "%s", m->device.name);
	cr_assert_eq(dev->nactive, want->nactive, "%s", m->device.name);
	cr_assert_eq(dev->mtu, want->mtu, "%s: %u", m->device.name, dev->mtu);
}

/* For rtrsctl doctor. */
Test(verbs_dev, a_look_at_each)
{
	cr_assert_eq(fab_devices(told, &list_errno), 0);
	cr_assert(ntold == ARRAY_SIZE(machine) && nopen == 0);
	list_errno = ENOSYS;
	cr_assert_eq(fab_devices(told, &list_errno), -ENOSYS, "a kernel without RDMA");
	list_errno = 0;
	cr_assert_eq(fab_devices(told, &list_errno), -EIO);
	cr_assert(ntold == ARRAY_SIZE(machine) && nopen == 0);
}

/* A driver's flags are the kernel's, and the library may lack the call.  What only lacks memory
 * has windows. */
Test(verbs_dev, windows_are_tried)
{
	static const struct {
		int err[2];
		unsigned caps;
	} cases[] = {
		{ { 0, 0 }, CAPS },
		{ { EOPNOTSUPP, 0 }, FAB_CAP_MW_TYPE_2B },
		{ { 0, ENOSYS }, FAB_CAP_MW_TYPE_1 },
		{ { EINVAL, EINVAL }, 0 },
		{ { ENOMEM, ENOMEM }, CAPS },
	};
	struct rdma_cm_id id = { 0 };
	struct verbs_listener l = { .id = &id };
	struct fab_device_attr attr;

	cr_assert_eq(verbs_dev_query_listener(&l.fab, &attr), -ENODEV);
	hw[0] = machine[0].device;
	id.verbs = ibv_open_device(&hw[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(mw_errno, cases[i].err, sizeof(mw_errno));
		cr_assert_eq(verbs_dev_query_listener(&l.fab, &attr), 0);
		cr_assert_eq(attr.caps, cases[i].caps, "%u", i);
		cr_assert_str_eq(attr.name, "rxe0");
		cr_assert_eq(nopen, 1);
	}
	id.verbs = &contexts[ARRAY_SIZE(machine) - 1];
	cr_assert_eq(verbs_dev_query_listener(&l.fab, &attr), -EIO);
}
