/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a path, and how it is protected.  Control thread, but for the two messages that run
 * on every thread.
 *
 * The happy path: srv_chunk_init() maps the chunks and makes the protection domain, registrations
 * and windows; srv_chunk_attach() has the rings learn the memory; requests come and go; when the
 * connections have drained, srv_chunk_close_windows(), srv_chunk_detach(), srv_chunk_fini().
 *
 * Possible failures: a failed set-up returns an errno and holds nothing; a device that cannot
 * protect requests is a failure only with --invalidate=always.  A ring that cannot take the memory
 * is no failure: plain reads and writes work on the chunks, too.  Windows are never repaired; they
 * go with their path. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "export-ring.h"
#include "frwr.h"
#include "log.h"
#include "number.h"
#include "srv-chunk.h"
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
	c->service_len = align_up(rsps + c->geom->queue_depth * sizeof(*c->rsps), 4096);
	c->rings = calloc(c->srv->nthreads, sizeof(*c->rings));
	c->mrs = calloc(c->mr_each ? c->geom->queue_depth : 1, sizeof(struct ibv_mr *));
	c->regions = calloc(c->nregions, sizeof(*c->regions));
	c->base = fab_alloc(c->pd, c->len);
	c->service = fab_alloc(c->pd, c->service_len);
	if (!c->rings || !c->mrs || !c->regions || !c->base || !c->service)
		return -ENOMEM;
	chunks_are_the_peers(c);
	c->rsps = (void *)(c->service + rsps);
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

/* ---- protection: the windows, from set-up to drained ---- */

/* True if auto takes windows: the device has windows in hardware.  If a kernel plays the device,
 * windows have quirks and cost more than a copy. */
static bool windows_in_hardware(const struct srv_chunks *c, const struct frwr_caps *caps)
{
	return c->pinned && !caps->rc[FRWR_MW1] && !caps->quirks;
}

/* Choose a mode.  Returns FRWR_SUSPEND or FRWR_MW1; -EPERM: --invalidate=always is impossible; any
 * other negative: copy.  The reason is in @why in each case. */
static int choose_mode(const struct srv_chunks *c, const struct frwr_caps *caps, char *why,
			 size_t len)
{
	int mode;

	if (c->srv->conf->invalidate == SRV_INVALIDATE_ALWAYS && caps->unable[FRWR_MW1])
		return fmt_error(-EPERM, why, len, "--invalidate=always: %s; auto and copy need "
				 "none", caps->why[FRWR_MW1]);
	/* A word in memory costs less than a copy and less than a window. */
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !caps->rc[FRWR_SUSPEND])
		return frwr_pick(caps, &frwr_order_server[1], 1, why, len);
	if (c->srv->conf->invalidate == SRV_INVALIDATE_AUTO && !windows_in_hardware(c, caps)) {
		snprintf(why, len, "%s", caps->rc[FRWR_MW1] ? caps->why[FRWR_MW1] :
			 "memory windows in software cost more");
		return -EOPNOTSUPP;
	}
	mode = frwr_pick(caps, frwr_order_server, ARRAY_SIZE(frwr_order_server), why, len);
	if (mode == FRWR_MW1 && caps->dev.max_mw < c->geom->queue_depth)
		return fmt_error(-EOPNOTSUPP, why, len, "a path needs %u memory windows, the "
				 "device has %u", c->geom->queue_depth, caps->dev.max_mw);
	return mode;
}

const char *srv_chunk_protection(const struct srv_chunks *c)
{
	if (c->invalidate == SRV_INVALIDATE_ALWAYS && c->key_mode == FRWR_SUSPEND)
		return frwr_mode_name(FRWR_SUSPEND);
	return srv_invalidate_names[c->invalidate];
}

/* Log the protection of @c, once for each kind of device: clients come as often as they like, and
 * by turns through a few kinds. */
static void log_protection(const struct srv_chunks *c, struct fab_conn *conn, const char *why)
{
	const char *word = srv_chunk_protection(c);
	/* The text of frwr_pick() begins with the name of the mode, which may be @word. */
	bool twice = !strncmp(why, word, strlen(word));
	struct srv *srv = c->srv;
	struct fab_addr local;
	char text[sizeof(srv->told_protection[0])];

	fab_conn_addrs(conn, &local, NULL);
	snprintf(text, sizeof(text), "requests over %s: invalidate is %s%s%s",
		 fab_addr_transport(&local), twice ? "" : word, twice ? "" : ": ", why);
	for (unsigned i = 0; i < ARRAY_SIZE(srv->told_protection); i++) {
		if (!strcmp(srv->told_protection[i], text))
			return;
	}
	memcpy(srv->told_protection[srv->ntold++ % ARRAY_SIZE(srv->told_protection)], text,
	       sizeof(text));
	if (c->invalidate == SRV_INVALIDATE_COPY && srv->conf->invalidate == SRV_INVALIDATE_ALWAYS)
		log_warn(NULL, "%s", text);
	else
		log_info(NULL, "%s", text);
}

/* Decide how the requests of the path are protected (doc/decisions.md D8), and make the objects of
 * the device for this, before the client is told.  The protection domain exists.  Sets
 * c->invalidate, which becomes ALWAYS, COPY or NEVER, and c->key_mode.
 *	auto	ALWAYS on RDMA devices that have windows in hardware, else COPY
 *	always	ALWAYS on devices that have windows or give regions another key, else COPY
 * COPY also if other paths have all windows of the device.  ALWAYS and COPY protect alike.  The
 * reason is logged when it is news.  On a device that offers windows and has failed to use windows
 * (frwr.h), auto is COPY; always is -EOPNOTSUPP, with the reason in c->refused.  0 or -errno. */
static int chunk_protect(struct srv_chunks *c, struct fab_conn *conn)
{
	enum srv_invalidate conf = c->srv->conf->invalidate;
	struct frwr_caps caps;
	char why[192];
	int rc, mode;

	c->invalidate = conf;
	if (conf == SRV_INVALIDATE_COPY || conf == SRV_INVALIDATE_NEVER)
		return 0;
	rc = frwr_query(conn, c->pd, &caps);
	if (rc)
		return rc;
	frwr_lessons_apply(&c->srv->lessons, &caps);
	mode = choose_mode(c, &caps, why, sizeof(why));
	if (mode == -EPERM) {
		snprintf(c->refused, sizeof(c->refused), "%s", why);
		return -EOPNOTSUPP;
	}
	c->invalidate = SRV_INVALIDATE_COPY;
	if (mode >= 0)
		rc = frwr_pool_create(&c->keys, c->pd, (enum frwr_mode)mode, c->geom->queue_depth);
	if (rc) {	/* other paths may have all keys of the device */
		snprintf(why, sizeof(why),
			 "a path needs %u keys of the device, and it has no more: %s",
			 c->geom->queue_depth, strerror(-rc));
	} else if (mode >= 0) {
		frwr_pool_learn(c->keys, &c->srv->lessons, &caps);
		c->invalidate = SRV_INVALIDATE_ALWAYS;
		c->key_mode = (enum frwr_mode)mode;
		c->mr_each = mode == FRWR_MW1 && (caps.quirks & FRWR_QUIRK_MR_BOUNDS);
	}
	log_protection(c, conn, why);
	return 0;
}

void srv_chunk_close_windows(struct srv_chunks *c, const char *name)
{
	struct frwr_stats s;

	if (!c->keys)
		return;
	frwr_stats(c->keys, &s);
	log_dbg(name,
		"keys: %llu given, %llu taken away, %llu flushed, %llu wraps, mode %s; "
		"%llu bound, %llu "
		"posts failed, %llu of them in part",
		(unsigned long long)s.mapped, (unsigned long long)s.local_inv,
		(unsigned long long)(s.flushed_bind + s.flushed_inv),
		(unsigned long long)s.key_wraps, frwr_mode_name(c->key_mode),
		(unsigned long long)s.bind_posted, (unsigned long long)s.post_fail,
		(unsigned long long)s.partial_post);
	/* A device may refuse to take windows back.  srv_chunk_fini() tries again, without
	 * connections, and leaves what the device refuses again to the device: no peer reaches
	 * memory through such a window any more. */
	if (!frwr_pool_destroy(c->keys))
		c->keys = NULL;
}

/* ---- the memory of a path ---- */

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
	rc = chunk_protect(c, conn);
	if (!rc)
		rc = map_and_register(c);
	if (rc)
		srv_chunk_fini(c);
	return rc;
}

void srv_chunk_fini(struct srv_chunks *c)
{
	assert(!c->attached && !c->pending);
	srv_chunk_close_windows(c, NULL);
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
