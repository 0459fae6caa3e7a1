/* SPDX-License-Identifier: BSD-3-Clause */
/* src/frwr on connections that are real: a kit for a case, which is a client ("us", who has slots
 * and windows) and the peer that writes through them, both driven by one thread
 * (tests/fabric/harness.h).
 *
 * Each case gets a world of its own and leaves nothing in it.  A failed check ends the program. */
#ifndef DEVICE_H
#define DEVICE_H

#include "frwr.h"
#include "harness.h"

#define SLOT 4096u
#define SLOTS 32u

/* On RDMA devices; else over sockets, where mistakes are answered in another way. */
extern bool on_device;

struct kit {
	struct world *w;
	struct end *us, *peer;
	struct frwr_caps caps;
	struct frwr_pool *pool;		/* SLOTS windows */
	/* slots side by side, each a region; before: for kit_refused() */
	uint8_t *arena, *before;
	struct ibv_mr *mr[SLOTS];
	struct region src;		/* the peer's */
	struct frwr_handle h[SLOTS];
	struct frwr_entry *entry;	/* one for each slot */
	unsigned ndone;			/* done() of unmaps */
	int done_rc;			/* of the last */
};

/* False, and says so, where the device cannot do @mode; that is a failure where it should. */
bool kit_open(struct world *w, struct kit *k, enum frwr_mode mode);
/* The same with a peer that has posted @recvs receives and posts none by itself (kit_recv()
 * does). */
bool kit_open_recvs(struct world *w, struct kit *k, enum frwr_mode mode, unsigned recvs);
/* Disconnects what is connected; checks that all windows are given back. */
void kit_close(struct kit *k);
/* The same, with new connections for the old: what a client does that has lost its path. */
void kit_reconnect(struct kit *k);

static inline struct frwr *kit_at(struct kit *k, unsigned i)
{
	return frwr_at(k->pool, i);
}

/* A second connection between the same domains, @us2 ours. */
void kit_second(struct kit *k, struct end **us2, struct end **peer2);

/* Slots @first to @last as a list. */
struct frwr *kit_list(struct kit *k, unsigned first, unsigned last);
/* Map all of slot @i, or @len bytes of it. */
void kit_map(struct kit *k, unsigned i, uint32_t len, enum frwr_dir dir);
/* Post what frwr has filled in; returns what the post did. */
int kit_post(struct end *e, struct frwr_entry *entry);
/* Post [BIND_MW] and a message to the peer that tells of it, and wait for that. */
void kit_tell(struct kit *k, unsigned i);
/* kit_map() of a whole slot for writes, and kit_tell(). */
void kit_bind(struct kit *k, unsigned i);
/* Take it away and wait until it is; returns what frwr_fill_unmap() did. */
int kit_unmap(struct kit *k, unsigned i);
/* For frwr_fill_unmap(): @kit is the argument. */
void kit_done(void *kit, int rc);

/* The next receive of @e, whatever came of it; another one is posted for it. */
struct ibv_wc kit_recv(struct kit *k, struct end *e);
/* The peer's: @len bytes of @byte to slot @i at @off under @rkey, which an immediate follows. */
void kit_write(struct kit *k, uint32_t rkey, unsigned i, size_t off, size_t len, uint8_t byte);
/* It has arrived. */
void kit_wrote(struct kit *k, unsigned i, size_t off, size_t len, uint8_t byte);
/* The connection is lost over it, nothing more succeeds at our end and no slot has changed since
 * kit_remember(). */
void kit_remember(struct kit *k);
void kit_refused(struct kit *k);
/* What the peer writes under a key that was good once is refused. */
void kit_stale(struct kit *k, uint32_t rkey, unsigned i);

/* ---- what the device says, before the fabric translates it (device-watch.c) ---- */

struct watch {
	unsigned inv_right, inv_quirk;	/* receives with an invalidate; with the wrong flag */
};

extern struct watch watch;
/* From now on, all connections of the device of @conn.  Nothing is seen over sockets. */
void watch_device(struct fab_conn *conn);

/* ---- the cases are in device-*.c; numbers: tests/frwr/README ---- */

/* The other process of t23: serves, or reads and writes at @address, until it is killed. */
_Noreturn void peer_main(const struct fab_provider *p, const char *address);

#endif
