/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns srv->geom until the first path; control thread.  Lowering is logged once for each step; a
 * device that is too small is refused in words, at start or with its client. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"
#include "log.h"
#include "srv-chunk.h"
#include "srv-con.h"
#include "srv-geom.h"
#include "srv-state.h"
#include "util.h"

int srv_geom_init(struct srv *srv)
{
	return rtrs_geom_init(&srv->geom, srv->conf->queue_depth, srv->conf->max_io_size,
			      CONF_HDR_SIZE);
}

/* The load of a path on a device, before srv_key_pool_choose() decides about windows. */
static struct frwr_load geom_load(const struct srv *srv, const struct fab_device_attr *attr)
{
	enum srv_invalidate conf = srv->conf->invalidate;
	bool windows = attr->caps & FAB_CAP_MW_TYPE_1 &&
		       (conf == SRV_INVALIDATE_ALWAYS ||
			(conf == SRV_INVALIDATE_AUTO && !(attr->caps & FAB_CAP_DMA_LKEY)));

	return (struct frwr_load){
		.server = true, .mode = windows ? FRWR_MW1 : FRWR_STATIC,
		.queue_depth = srv->geom.queue_depth, .spare_wr = SRV_SEND_MARGIN,
	};
}

/* Set @depth to the number of chunks that fit into the queues of a device.  Answers take more
 * queue room than receives, on connection 0 too (srv_path.service_recvs).  @rc: result of the
 * query of the device.  0, or -errno and @why. */
static int geom_depth_for(const struct srv *srv, int rc, const struct fab_device_attr *attr,
			  unsigned *depth, char *why, size_t len)
{
	struct frwr_sizes sizes;
	struct frwr_load load;

	if (rc) {
		snprintf(why, len, "cannot query the device: %s", strerror(-rc));
		return rc;
	}
	load = geom_load(srv, attr);
	if (frwr_sizing(attr, &load, &sizes)) {
		snprintf(why, len,
			 "the device's queues are too small: %u requests, expected at least %u",
			 attr->max_qp_wr, frwr_wr_per_req(&load) + load.spare_wr);
		return -ENOMEM;
	}
	*depth = sizes.queue_depth;
	return 0;
}

static void geom_lower(struct srv *srv, unsigned depth, const struct fab_device_attr *attr,
		       const char *name)
{
	int rc;

	if (depth == srv->geom.queue_depth)
		return;
	log_warn(name, "queue depth lowered from %u to %u: the device has queues of %u",
		 srv->geom.queue_depth, depth, attr->max_qp_wr);
	rc = rtrs_geom_init(&srv->geom, depth, srv->geom.max_io_size, srv->geom.max_hdr_size);
	assert(!rc);
}

/* True if @depth, of another device, is less than what clients were told; @why says so. */
static bool geom_too_late(const struct srv *srv, unsigned depth, char *why, size_t len)
{
	if (!srv->geom_fixed || depth >= srv->geom.queue_depth)
		return false;
	snprintf(why, len, "the device's queues allow a depth of %u, but an earlier client got %u: "
		 "set --queue-depth=%u", depth, srv->geom.queue_depth, depth);
	return true;
}

int srv_geom_listener(struct srv *srv, const struct fab_listener *l, const char *name, char *why,
		      size_t len)
{
	struct fab_device_attr attr;
	unsigned depth;
	int rc = fab_listener_query_device(l, &attr);

	if (rc == -ENODEV)
		return 0;
	rc = geom_depth_for(srv, rc, &attr, &depth, why, len);
	if (!rc && geom_too_late(srv, depth, why, len))
		return -ENOMEM;
	if (!rc && !srv->geom_fixed)
		geom_lower(srv, depth, &attr, name);
	return rc;
}

int srv_geom_client(struct srv *srv, const struct fab_conn *conn, char *why, size_t len)
{
	struct fab_device_attr attr;
	unsigned depth;
	int rc = geom_depth_for(srv, fab_query_device(conn, &attr), &attr, &depth, why, len);

	if (rc)
		return rc;
	if (geom_too_late(srv, depth, why, len))
		return -ENOMEM;
	if (!srv->geom_fixed)
		geom_lower(srv, depth, &attr, NULL);
	srv->geom_fixed = true;
	return 0;
}

void srv_geom_queues(const struct srv *srv, uint16_t cid, const struct srv_chunks *c,
		     unsigned service_recvs, struct fab_qp_attr *attr)
{
	bool windows = c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_MW1;
	const struct frwr_load load = { .server = true, .mode = windows ? FRWR_MW1 : FRWR_STATIC };
	unsigned depth = srv->geom.queue_depth, per_req = frwr_wr_per_req(&load);

	attr->max_recv_wr = (cid ? depth : service_recvs) + 1;
	attr->max_send_wr = per_req * (cid ? depth : MIN(depth, (unsigned)RTRS_SERVICE_CON_DEPTH));
	if (windows && !cid)	/* the first keys, all at once */
		attr->max_send_wr = MAX(attr->max_send_wr, depth);
	attr->max_send_wr += SRV_SEND_MARGIN;
	attr->max_send_sge = 1;
}

size_t srv_geom_con_memory(const struct srv *srv, const struct fab_conn *conn)
{
	struct fab_device_attr device;
	struct fab_qp_attr queues = { .max_send_sge = 1 };
	struct frwr_load load;

	if (fab_query_device(conn, &device))
		return 0;
	load = geom_load(srv, &device);
	queues.max_recv_wr = srv->geom.queue_depth + 1;
	queues.max_send_wr = frwr_wr_per_req(&load) * load.queue_depth + load.spare_wr;
	return sizeof(struct srv_con) + fab_qp_memory(conn, &queues);
}
