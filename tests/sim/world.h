/* SPDX-License-Identifier: BSD-3-Clause */
/* A world for tests: hosts that run the real server and the real client over the sim fabric, disks,
 * requests in flight, and a trace of what happened.
 *
 * Hosts are "srv" (10.0.0.2), "srv2" (10.0.0.4) and "clt", "clt2" (10.0.0.1, 10.0.0.3).  A server
 * has one disk, "disk0" is exported as it is.  Functions that name no host are about the server on
 * "srv".  Trace lines are log lines of the programs from info on, changes of
 * state, and what the test itself did; addresses are written as names of hosts:
 *
 *	[  0.007] clt path srv: up
 *
 * SIM_TRACE=1 in the environment prints each line as it comes. */
#ifndef WORLD_H
#define WORLD_H

#include "client-kept.h"
#include "dev.h"
#include "export-life.h"
#include "sim-fabric.h"
#include "sim-fiber.h"
#include "sim-storage.h"
#include "sim-test.h"
#include "srv-limit.h"
#include "srv.h"
#include "auth-creds.h"

#define WORLD_DISK_SIZE (1u << 20)
#define WORLD_PATHS 4			/* most of a client: to as many addresses of the server */
#define WORLD_SERVERS 2
#define WORLD_LOOPS 4u			/* most of a client */

struct world_server_conf {
	const char *host;		/* NULL: "srv" */
	const char *disk;		/* NULL: "disk0" */
	bool shared;			/* the server on another host may have the disk, too;
					 * direct, and no cache */
	uint32_t queue_depth, max_io_size;
	unsigned threads;
	unsigned max_sessions, max_paths, max_cons;	/* 0: as by default */
	uint64_t max_memory;			/* likewise */
	unsigned hb_interval_ms, hb_missed_max;	/* 0: as by default */
	enum srv_invalidate invalidate;
	const char *export_name;	/* NULL: "disk0" */
	uint16_t block_size;		/* 0: 512 */
	bool write_through, no_fua, direct;
	bool any_address;		/* listens on 0.0.0.0 */
	struct auth_conf auth;		/* all 0: none */
	bool other_host;		/* is another machine, as far as it says who it is */
	/* starts while requests of a dead server are on their way */
	bool no_lock;
};

/* What tests begin with.  SERVER(.direct = true) and CLIENT(.npaths = 2) are pointers to the same
 * but for what is given, which live as long as the block. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define WORLD_SERVER_DEFAULTS .queue_depth = 16, .max_io_size = 65536, .threads = 2, \
			      .invalidate = SRV_INVALIDATE_COPY
#define WORLD_CLIENT_DEFAULTS .host = "clt", .name = "sess", .mode = RNBD_ACCESS_RW, \
			      .connections = 2, .io_timeout_ms = 60000
#define SERVER(...) (&(const struct world_server_conf){ WORLD_SERVER_DEFAULTS, __VA_ARGS__ })
#define CLIENT(...) (&(const struct world_client_conf){ WORLD_CLIENT_DEFAULTS, __VA_ARGS__ })
extern const struct world_server_conf world_server_defaults;

struct world_client_conf {
	const char *host;		/* "clt" */
	const char *name;		/* of the session */
	const char *device;		/* NULL: "disk0" */
	/* NULL: each request has a fiber.  Else a table with .event = sim_wait_event. */
	const struct clt_wait_ops *wait;
	unsigned nloops;		/* 0: 1, the service loop; most: WORLD_LOOPS */
	enum rnbd_access_mode mode;
	unsigned connections;
	uint64_t io_timeout_ms;
	/* auto: SIM_REGISTRATION of the environment, if set */
	enum clt_registration registration;
	enum rtrs_digest digest;	/* crc32c if SIM_DIGEST is in the environment */
	bool once;			/* as the probe at start: one attempt */
	unsigned npaths;		/* 0: 1 */
	const char *const *paths;	/* names of hosts, as sim_addr() has them; NULL: "srv",
					 * "srv/1" ... */
	enum clt_policy policy;
	unsigned hb_interval_ms, hb_misses;	/* both 0: the protocol's */
	unsigned max_reconnect_attempts;	/* 0: no end; else one less */
	const struct auth_creds *auth;
	/* what outlives the process, as its death or its end leaves it; NULL: nothing does */
	struct client_kept *kept;
};

extern const struct world_client_conf world_client_defaults;

struct world;
struct world_client;

/* Time 0, the hosts, an empty disk; nothing runs.  It ends with the test, or when the next one is
 * created, as by world_destroy(). */
struct world *world_create(uint64_t seed);
/* Close paths made by hand (raw-clt.h), stop what runs in good order, then check that nothing is
 * left: connections, keys, permits, registered memory, operations on disks. */
void world_destroy(struct world *w);

struct sim_disk *world_disk(struct world *w);

/* ---- the server ---- */

/* Waits for the lock that requests of a dead server keep (exports_lock()), unless told not to. */
void world_server_start(struct world *w, const struct world_server_conf *conf);
/* The same for one that cannot start; returns its words, until the next call. */
const char *world_server_refuses(struct world *w, const struct world_server_conf *conf);
/* world_create(1), with a server. */
struct world *world_serve(const struct world_server_conf *conf);
/* As SIGTERM; returns when it has ended. */
void world_server_stop(struct world *w);
/* As SIGKILL or the power cord; the disk keeps what such a death leaves.  Its memory is given back
 * behind the scenes. */
void world_server_kill(struct world *w, enum sim_kill how);
/* Carry out, on the server that runs, the plan to export @exports and no others; their text lives
 * as long as the server.  With their limits.  0, or -errno with one line in @err. */
#define WORLD_EXPORTS_MAX 8u
int world_server_change(struct world *w, const struct conf_export *exports, unsigned n,
			char err[EXPORT_LIFE_ERR]);
/* The same with --force: an export is taken away from who may not have it open any more. */
int world_server_change_forced(struct world *w, const struct conf_export *exports, unsigned n,
			       char err[EXPORT_LIFE_ERR]);
/* world_server_change() of the server on @host. */
int world_server_change_on(struct world *w, const char *host, const struct conf_export *exports,
			   unsigned n, char err[EXPORT_LIFE_ERR]);
/* Take the export @name away from who has it open; returns from how many sessions. */
unsigned world_server_kick(struct world *w, const char *name);
/* An administrator has the server on @host take the lock of "disk0" (srv_storage_break()).  @text
 * has room for WORLD_BREAK_TEXT. */
#define WORLD_BREAK_TEXT 512
int world_server_break(struct world *w, const char *host, bool force, char *text);
/* The counters of the limits of the export @name, which is listed. */
void world_server_waits(struct world *w, const char *name, struct srv_limit_stat *stat);
/* How many stores it has open. */
unsigned world_server_stores(const struct world *w);
bool world_server_runs(const struct world *w);
/* Its inside. */
struct srv *world_server_srv(const struct world *w);
/* The same of the server on @host. */
void world_server_stop_on(struct world *w, const char *host);
void world_server_kill_on(struct world *w, const char *host, enum sim_kill how);
bool world_server_runs_on(const struct world *w, const char *host);
/* The last server was killed while something was synced, and none has started since. */
bool world_sync_was_cut(const struct world *w);

/* ---- clients ---- */

/* Start a session and open its device, both in the background. */
struct world_client *world_client_start(struct world *w, const struct world_client_conf *conf);
/* The device is open (0), is not yet (1), or could not be opened (negative). */
int world_client_opened(const struct world_client *c);
/* Run until that is no longer 1, for @ms at most; returns it. */
int world_wait_open(struct world_client *c, uint64_t ms);
/* world_client_start(), and the device opens within a second. */
struct world_client *world_client_opens(struct world *w, const struct world_client_conf *conf);
/* Open it again after dev_close(), in the background. */
void world_client_open(struct world_client *c, enum rnbd_access_mode mode);
struct client *world_client_clt(struct world_client *c);
struct dev *world_client_dev(struct world_client *c);
/* Its loops, of which the first is the service loop. */
struct loop *const *world_client_loops(const struct world_client *c, unsigned *n);
/* The handle of its requests. */
struct dev_handle *world_client_handle(struct world_client *c);
/* A thread of the client's program. */
struct sim_fiber *world_client_fiber(struct world_client *c, void (*fn)(void *arg), void *arg);
/* Close device and session; returns when all is disconnected.  No request may be in flight. */
void world_client_stop(struct world *w, struct world_client *c);
/* The client's machine loses power, or its process (and all on that host) is killed.  Its requests
 * end with an error behind the scenes; world_io_end() is still to be called for each.  @c is not to
 * be used otherwise; its memory is given back by world_destroy(). */
void world_client_kill(struct world *w, struct world_client *c, enum sim_kill how);
/* The same, if more of its program than requests of world_io_start() uses the device: until
 * @over(@arg), and then @free_arg(@arg). */
void world_client_kill_later(struct world *w, struct world_client *c, enum sim_kill how,
			     bool (*over)(void *arg), void *arg, void (*free_arg)(void *arg));

/* ---- requests ---- */

struct world_io {
	struct list link;
	struct dev_handle *h;
	enum rnbd_io_op op;
	uint64_t off;
	uint32_t len;
	bool fua;
	uint8_t *buf;
	struct sim_fiber *fiber;
	bool done;
	int status;
	uint64_t done_us;
};

/* Begin a request in a thread of its own.  WRITE: all bytes are @fill. */
struct world_io *world_io_start_by(struct world_client *c, struct dev_handle *h, enum rnbd_io_op op,
				   uint64_t off, uint32_t len, uint8_t fill, bool fua);
/* The same by the client's own handle. */
struct world_io *world_io_start(struct world_client *c, enum rnbd_io_op op, uint64_t off,
				uint32_t len, uint8_t fill, bool fua);
/* Wait for it for at most @ms; returns its status and frees it.  A READ's data must be all @fill
 * when status is 0. */
int world_io_end(struct world_io *io, uint8_t fill, uint64_t ms);
/* Free @io, which has ended, and whose result was looked at. */
void world_io_free(struct world_io *io);
/* One for each of the first @n blocks of 4096 bytes; those of WRITE are @fill, @fill + 1 ... */
void world_ios_start(struct world_client *c, enum rnbd_io_op op, struct world_io **ios, unsigned n,
		     uint8_t fill);
/* Wait for each of them for at most @ms.  True if all had @status; data of READs as above. */
bool world_ios_end(struct world_io **ios, unsigned n, int status, uint8_t fill, uint64_t ms);
/* One at once. */
int world_write(struct world_client *c, uint64_t off, uint32_t len, uint8_t fill);
int world_read(struct world_client *c, uint64_t off, uint32_t len, uint8_t fill);
int world_flush(struct world_client *c);
/* The first @n blocks are as world_ios_start() writes them. */
bool world_blocks_are(struct world_client *c, unsigned n, uint8_t fill);

/* ---- time and trace ---- */

void world_run_ms(struct world *w, uint64_t ms);
/* A line of the test's own. */
void world_note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Forget what was traced so far; the server forgets, too, which lines it has written lately. */
void world_forget(struct world *w);
/* What was traced since the last call must be @text; otherwise print both and end the program. */
void world_expect(struct world *w, const char *text);
/* Lines that come together, for world_expect().  Path @who of the server is there, of @n
 * connections; is lost because of @why; has gone with its device; its set-up fails.  @seen: its
 * name before it has a session. */
#define SRV_LINE(at, who, what) "[" at "] srv " who ": " what "\n"
#define SRV_UP(at, seen, who, n) \
	SRV_LINE(at, seen, "handshake: req: awaited -> seen") \
	SRV_LINE(at, seen, "handshake: free: seen -> named") \
	SRV_LINE(at, who, "path: info: connecting -> connected") \
	SRV_LINE(at, who, "path up, " n " connections, session sess") \
	SRV_LINE(at, "sess", "session opened by " who)
#define SRV_LOST(at, who, why) \
	SRV_LINE(at, who, "path down: " why) \
	SRV_LINE(at, who, "path: fail: connected -> draining") \
	SRV_LINE(at, who, "path: drained: draining -> lingering") \
	SRV_LINE(at, "sess", "session closed")
#define SRV_GONE(at, who, why) \
	SRV_LOST(at, who, why) \
	SRV_LINE(at, "sess", "device 0 closed: disk0") \
	SRV_LINE(at, who, "path: quiet: lingering -> gone")
#define SRV_NOT_UP(at, who, why) \
	SRV_LINE(at, who, "path not set up: " why) \
	SRV_LINE(at, who, "path: fail: connecting -> draining") \
	SRV_LINE(at, who, "handshake: fail: awaited -> over") \
	SRV_LINE(at, who, "path: drained: draining -> lingering") \
	SRV_LINE(at, who, "path: quiet: lingering -> gone")
/* The trace holds @text somewhere; nothing is forgotten. */
bool world_traced(const struct world *w, const char *text);

#endif
