/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the mapping, its registrations and the protection domain of one path.  Control thread, but
 * for the two messages that run on every thread.  Ends in srv_chunk_fini() after a detach.  A
 * failed set-up returns an errno and holds nothing.  A ring that cannot take the memory is no
 * failure: plain reads and writes work on the chunks, too. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "export-ring.h"
#include "srv-chunk.h"
#include "srv-key-pool.h"
#include "srv-state.h"
#include "util.h"

/* The name of a path's first chunk towards clients.  Paths have different names, so a request for
 * the chunks of one path never fits those of another.  All names are below the addresses where
 * programs have memory. */
#define CHUNKS_IOVA_SHIFT 29		/* chunks are 28 bits at most, as in immediates */
#define CHUNKS_IOVA_PATHS 0x10000u

static uint64_t chunks_iova(struct srv *srv)
{
	return (uint64_t)(srv->next_iova++ % CHUNKS_IOVA_PATHS + 1) << CHUNKS_IOVA_SHIFT;
}

#ifdef __SANITIZE_THREAD__
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *mem, size_t len,
			     const char *what);
#endif

/* The peer writes the chunks, in the order of requests and answers: one thread sends an answer
 * from a chunk, the client sees the answer and sends the next request, another thread places the
 * request.  This process has no trace of this order for TSan, which checks each word of a chunk
 * for minutes. */
static void chunks_are_the_peers(const struct srv_chunks *c)
{
#ifdef __SANITIZE_THREAD__
	AnnotateBenignRaceSized(__FILE__, __LINE__, c->base, c->len, "a chunk");
#endif
}

static void ring_answered(struct srv_chunks *c)
{
	if (!--c->pending)
		c->done(c);
}

static void ring_attached(struct loop_msg *msg)
{
	ring_answered(container_of(msg, struct srv_ring_mem, attach_msg)->chunks);
}

static void ring_attach(struct loop_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, attach_msg);
	struct srv_chunks *c = ring->chunks;
	int mem = export_ring_mem_add(c->srv->threads[ring->thread].reactor, c->base, c->len);

	ring->mem = mem >= 0 ? mem : -1;
	msg->fn = ring_attached;
	srv_post_control(c->srv, msg);
}

static void ring_detached(struct loop_msg *msg)
{
	ring_answered(container_of(msg, struct srv_ring_mem, detach_msg)->chunks);
}

static void ring_detach(struct loop_msg *msg)
{
	struct srv_ring_mem *ring = container_of(msg, struct srv_ring_mem, detach_msg);
	struct srv_chunks *c = ring->chunks;

	if (ring->mem >= 0)
		export_ring_mem_del(c->srv->threads[ring->thread].reactor, ring->mem);
	ring->mem = -1;
	msg->fn = ring_detached;
	srv_post_control(c->srv, msg);
}

const char *srv_chunk_error(const struct srv_chunks *c, int rc, char *buf, size_t len)
{
	struct rlimit limit;

	if (c->refused[0])
		snprintf(buf, len, "%s", c->refused);
	else if (rc != -ENOMEM || !c->pinned || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		snprintf(buf, len, "%s", strerror(-rc));
	else
		snprintf(buf, len,
			 "RLIMIT_MEMLOCK is %llu KiB for all, and this path locks more than "
			 "%zu KiB: raise it (ulimit -l, LimitMEMLOCK= of systemd)",
			 (unsigned long long)limit.rlim_cur >> 10, (c->len + c->service_len) >> 10);
	return buf;
}

/* Register the chunks.  A region's key is for the client; with --invalidate=always no client gets
 * the key, and clients use the windows in the region. */
static int register_chunks(struct srv_chunks *c)
{
	bool always = c->invalidate == SRV_INVALIDATE_ALWAYS;
	int access = IBV_ACCESS_LOCAL_WRITE |
		     (!always ? IBV_ACCESS_REMOTE_WRITE :
		      c->key_mode == FRWR_MW1 ? IBV_ACCESS_MW_BIND : 0);
	unsigned n = c->mr_each ? c->geom->queue_depth : 1;
	uint64_t iova = chunks_iova(c->srv);

	for (unsigned i = 0; i < n; i++) {
		size_t off = i * (c->len / n);

		c->mrs[i] = fab_reg_mr_iova(c->pd, c->base + off, c->len / n, iova + off, access);
		if (!c->mrs[i])
			return -errno;
		/* If one region cannot have a name of our own, no region has one. */
		if (i == 0)
			c->iova = iova = fab_mr_iova(c->mrs[0]);
		else if (fab_mr_iova(c->mrs[i]) != iova + off)
			return -EIO;
	}
	if (!always)
		c->regions[0] = (struct rtrs_region){
			.addr = c->iova, .key = c->mrs[0]->rkey,
			.len = (uint32_t)c->len,
		};
	return 0;
}

static int map_and_register(struct srv_chunks *c)
{
	bool always = c->invalidate == SRV_INVALIDATE_ALWAYS;
	size_t rsps;
	int rc;

	c->nregions = always ? c->geom->queue_depth : 1;
	rsps = align_up(SRV_SERVICE_RSP + rtrs_info_rsp_len(c->nregions), 8);
	c->service_len = align_up(rsps +
				  (srv_chunk_new_keys(c) ? c->nregions * sizeof(*c->rkey_rsps) : 0),
				  4096);
	c->rings = calloc(c->srv->nthreads, sizeof(*c->rings));
	c->mrs = calloc(c->mr_each ? c->geom->queue_depth : 1, sizeof(struct ibv_mr *));
	c->regions = calloc(c->nregions, sizeof(*c->regions));
	c->base = fab_alloc(c->pd, c->len);
	c->service = fab_alloc(c->pd, c->service_len);
	if (!c->rings || !c->mrs || !c->regions || !c->base || !c->service)
		return -ENOMEM;
	chunks_are_the_peers(c);
	c->rkey_rsps = (void *)(c->service + rsps);
	for (unsigned i = 0; i < c->srv->nthreads; i++) {
		struct srv_ring_mem *ring = &c->rings[i];

		ring->chunks = c;
		ring->thread = i;
		ring->mem = -1;
		loop_msg_init(&ring->attach_msg, ring_attach);
		loop_msg_init(&ring->detach_msg, ring_detach);
	}
	rc = register_chunks(c);
	if (rc)
		return rc;
	c->service_mr = fab_reg_mr(c->pd, c->service, c->service_len, IBV_ACCESS_LOCAL_WRITE);
	return c->service_mr ? 0 : -errno;
}

int srv_chunk_init(struct srv_chunks *c, struct srv *srv, struct fab_conn *conn)
{
	struct fab_device_attr attr;
	int rc = fab_query_device(conn, &attr);

	*c = (struct srv_chunks){
		.srv = srv,
		.geom = &srv->geom,
		.len = (size_t)srv->geom.queue_depth * srv->geom.chunk_size,
		.pinned = !rc && !(attr.caps & FAB_CAP_DMA_LKEY),
	};
	if (!rc)
		rc = fab_pd_create(conn, &c->pd);
	if (rc)
		return rc;
	rc = srv_key_pool_choose(c, conn);
	if (!rc)
		rc = map_and_register(c);
	if (rc)
		srv_chunk_fini(c);
	return rc;
}

void srv_chunk_fini(struct srv_chunks *c)
{
	assert(!c->attached && !c->pending);
	srv_key_pool_close(c, NULL);
	if (c->service_mr)
		fab_dereg_mr(c->service_mr);
	for (unsigned i = 0; c->mrs && i < (c->mr_each ? c->geom->queue_depth : 1); i++)
		fab_dereg_mr(c->mrs[i]);
	fab_pd_destroy(c->pd);
	fab_free(c->service, c->service_len);
	fab_free(c->base, c->len);
	free(c->regions);
	free(c->mrs);
	free(c->rings);
}

static void post_rings(struct srv_chunks *c, bool attach)
{
	for (unsigned i = 0; i < c->srv->nthreads; i++) {
		struct srv_ring_mem *ring = &c->rings[i];

		if (!ring->used)
			continue;
		c->pending++;
		loop_post(c->srv->threads[i].loop, attach ? &ring->attach_msg : &ring->detach_msg);
	}
	c->attached = attach;
}

void srv_chunk_attach(struct srv_chunks *c, void (*done)(struct srv_chunks *c))
{
	assert(!c->attached);
	c->done = done;
	/* Attaching is of no use if the storage never sees the chunks, and not worth pinning
	 * memory for. */
	if (c->invalidate == SRV_INVALIDATE_COPY || !c->pinned) {
		done(c);
		return;
	}
	post_rings(c, true);
}

void srv_chunk_detach(struct srv_chunks *c, void (*done)(struct srv_chunks *c))
{
	c->done = done;
	if (!c->attached) {
		done(c);
		return;
	}
	/* ORDER: a thread runs attach before detach, and the control thread hears of both in the
	 * same order.  So an attach still under way is counted out before the last detach. */
	post_rings(c, false);
}
