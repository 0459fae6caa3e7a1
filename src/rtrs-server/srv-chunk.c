/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the mapping, its registrations and the protection domain of one path.  Control thread, but for
 * the two messages that run on every thread.  Ends in srv_chunks_fini() after a detach; set-up fails
 * with an errno and nothing held, and a ring that cannot take the memory is no failure: plain reads
 * and writes work on it too. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "export-io.h"
#include "srv-chunk.h"
#include "srv-priv.h"
#include "util.h"

#define SERVICE_LEN 4096u

static void *map_zeroed(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void ring_attached(struct inbox_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, attach_msg);
	struct srv_chunks *c = ring->chunks;

	if (!--c->pending)
		c->attach_done(c);
}

static void ring_attach(struct inbox_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, attach_msg);
	struct srv_chunks *c = ring->chunks;
	int mem = export_io_mem_add(c->srv->threads[ring->thread].reactor, c->base, c->len);

	ring->mem = mem >= 0 ? mem : -1;
	msg->fn = ring_attached;
	srv_post_control(c->srv, msg);
}

static void ring_detached(struct inbox_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, detach_msg);
	struct srv_chunks *c = ring->chunks;

	if (!--c->pending)
		c->detach_done(c);
}

static void ring_detach(struct inbox_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, detach_msg);
	struct srv_chunks *c = ring->chunks;

	if (ring->mem >= 0)
		export_io_mem_del(c->srv->threads[ring->thread].reactor, ring->mem);
	ring->mem = -1;
	msg->fn = ring_detached;
	srv_post_control(c->srv, msg);
}

const char *srv_chunks_error(const struct srv_chunks *c, int rc, char *buf, size_t len)
{
	struct rlimit limit;

	if (rc != -ENOMEM || !c->pinned || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		snprintf(buf, len, "%s", strerror(-rc));
	else
		snprintf(buf, len, "RLIMIT_MEMLOCK is %llu KiB for all, and this path locks more than "
			 "%zu KiB: raise it (ulimit -l, LimitMEMLOCK= of systemd)",
			 (unsigned long long)limit.rlim_cur >> 10, (c->len + SERVICE_LEN) >> 10);
	return buf;
}

static int map_and_register(struct srv_chunks *c)
{
	const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	c->rings = calloc(c->srv->nthreads, sizeof(*c->rings));
	c->base = map_zeroed(c->len);
	c->service = map_zeroed(SERVICE_LEN);
	if (!c->rings || !c->base || !c->service)
		return -ENOMEM;
	for (unsigned i = 0; i < c->srv->nthreads; i++) {
		struct srv_ring_mem *ring = &c->rings[i];

		ring->chunks = c;
		ring->thread = i;
		ring->mem = -1;
		ring->attach_msg.fn = ring_attach;
		ring->detach_msg.fn = ring_detach;
	}
	c->mr = fab_reg_mr(c->pd, c->base, c->len, remote);
	if (!c->mr)
		return -errno;
	c->service_mr = fab_reg_mr(c->pd, c->service, SERVICE_LEN, IBV_ACCESS_LOCAL_WRITE);
	return c->service_mr ? 0 : -errno;
}

int srv_chunks_init(struct srv_chunks *c, struct srv *srv, struct fab_conn *conn)
{
	struct fab_device_attr attr;
	int rc = fab_query_device(conn, &attr);

	*c = (struct srv_chunks){
		.srv = srv,
		.geom = &srv->geom,
		.len = (size_t)srv->geom.queue_depth * srv->geom.chunk_size,
		.pinned = !rc && !attr.local_dma_lkey,
	};
	if (!rc)
		rc = fab_pd_create(conn, &c->pd);
	if (rc)
		return rc;
	rc = map_and_register(c);
	if (rc)
		srv_chunks_fini(c);
	return rc;
}

void srv_chunks_fini(struct srv_chunks *c)
{
	assert(!c->attached && !c->pending);
	if (c->service_mr)
		fab_dereg_mr(c->service_mr);
	if (c->mr)
		fab_dereg_mr(c->mr);
	fab_pd_destroy(c->pd);
	if (c->service)
		munmap(c->service, SERVICE_LEN);
	if (c->base)
		munmap(c->base, c->len);
	free(c->rings);
}

void srv_chunks_attach(struct srv_chunks *c, void (*done)(struct srv_chunks *c))
{
	assert(!c->attached);
	c->attach_done = done;
	if (srv_copies(c->srv)) {	/* the storage never sees the chunks */
		done(c);
		return;
	}
	c->attached = true;
	for (unsigned i = 0; i < c->srv->nthreads; i++) {
		if (!c->rings[i].used)
			continue;
		c->pending++;
		inbox_post(reactor_inbox(c->srv->threads[i].reactor), &c->rings[i].attach_msg);
	}
}

void srv_chunks_detach(struct srv_chunks *c, void (*done)(struct srv_chunks *c))
{
	c->detach_done = done;
	if (!c->attached) {
		done(c);
		return;
	}
	/* ORDER: a thread runs attach before detach, and the control thread hears of it in the same
	 * order, so an attach that is still under way is counted out before the last detach. */
	c->attached = false;
	for (unsigned i = 0; i < c->srv->nthreads; i++) {
		if (!c->rings[i].used)
			continue;
		c->pending++;
		inbox_post(reactor_inbox(c->srv->threads[i].reactor), &c->rings[i].detach_msg);
	}
}
