/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks over the fabric's shoulder: counts what completions say before the verbs provider
 * translates them, by standing in for a device's poll_cq.  For as long as the program runs; one
 * device. */
#include <config.h>

#include "device.h"

#ifdef HAVE_RDMA
#include <rdma/rdma_cma.h>

#include "verbs-priv.h"
#endif

struct watch watch;

#ifdef HAVE_RDMA
static int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static int watching_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = poll_cq(cq, n, wc);

	for (int i = 0; i < got; i++) {
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].opcode != IBV_WC_RECV ||
		    (wc[i].wc_flags & IBV_WC_WITH_IMM))
			continue;
		watch.inv_right += !!(wc[i].wc_flags & IBV_WC_WITH_INV);
		watch.inv_quirk += !!(wc[i].wc_flags & IBV_WC_IP_CSUM_OK);
	}
	return got;
}

void watch_device(struct fab_conn *conn)
{
	struct ibv_context *device;

	if (!on_device)
		return;
	device = container_of(conn, struct verbs_conn, fab)->id->verbs;
	if (device->ops.poll_cq == watching_poll_cq)
		return;
	poll_cq = device->ops.poll_cq;
	device->ops.poll_cq = watching_poll_cq;
}
#else
void watch_device(struct fab_conn *conn)
{
}
#endif
