/* SPDX-License-Identifier: BSD-3-Clause */
/* What the verbs provider offers on a device, what it asks of it, and what the device says of
 * itself. */
#include <criterion/criterion.h>

#include <errno.h>

#include <rdma/rdma_cma.h>

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
