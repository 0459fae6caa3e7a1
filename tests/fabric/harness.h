/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection in one thread, for tests written against fabric.h alone.
 *
 * A world has a cm for each end; pairs of connections are made in it.  Everything waits through
 * world_step(), which serves what is ready and otherwise sleeps in provider_wait(): poll(2) for
 * providers with real descriptors, the next event for one with virtual time.  A wait that sees
 * nothing for WAIT_LIMIT_MS ends the program: tests do not hang.  Failures name file and line. */
#ifndef HARNESS_H
#define HARNESS_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric.h"

#define WAIT_LIMIT_MS 20000

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_failed(__FILE__, __LINE__, #cond);                                   \
	} while (0)

#define check_eq(a, b)                                                                             \
	do {                                                                                       \
		long long _ca = (long long)(a), _cb = (long long)(b);                              \
		if (_ca != _cb)                                                                    \
			check_eq_failed(__FILE__, __LINE__, #a, _ca, #b, _cb);                     \
	} while (0)

_Noreturn void check_failed(const char *file, int line, const char *what);
_Noreturn void check_eq_failed(const char *file, int line, const char *a, long long va,
			       const char *b, long long vb);

/* A promise that the device is known not to keep was not kept.  Says so loudly, here and at the
 * end; the test for it fails when it is kept, so that nobody goes on without. */
void known_failure(const char *what);
extern unsigned known_failures;

/* ---- tests ---- */

struct world;
struct fab_test {
	const char *name;
	void (*run)(struct world *w), (*run_alone)(void);	/* one of them */
	bool threads;			/* only where provider_threads */
	struct fab_test *next;
};
void fab_test_add(struct fab_test *test);
#define FAB_TEST_ADD(fn, ...)                                                                      \
	__attribute__((constructor)) static void add_##fn(void)                                    \
	{                                                                                          \
		static struct fab_test t = { .name = #fn, __VA_ARGS__ };                           \
                                                                                                   \
		fab_test_add(&t);                                                                  \
	}
/* FAB_TEST(name) { ... } is a test in a world of its own, @w, which it leaves empty;
 * FAB_TEST_THREADS() one that needs a second thread, and FAB_TEST_ALONE() one whose file has @w. */
#define FAB_TEST(fn)                                                                               \
	static void fn(struct world *w);                                                           \
	FAB_TEST_ADD(fn, .run = fn)                                                                \
	static void fn(struct world *w)
#define FAB_TEST_THREADS(fn)                                                                       \
	static void fn(struct world *w);                                                           \
	FAB_TEST_ADD(fn, .run = fn, .threads = true)                                               \
	static void fn(struct world *w)
#define FAB_TEST_ALONE(fn)                                                                         \
	static void fn(void);                                                                      \
	FAB_TEST_ADD(fn, .run_alone = fn)                                                          \
	static void fn(void)
/* Run those whose names begin with one of @names, or all if there is none, each in the world @w
 * over @p, and then @after, if not NULL; returns their number. */
unsigned fab_tests_run(const struct fab_provider *p, struct world *w, char **names,
		       void (*after)(void));

/* ---- what a program that runs the suite on its provider brings (main-*.c) ---- */

/* Address to listen on, port 0. */
extern const char *provider_address;
/* False where there is no second thread (virtual time). */
extern const bool provider_threads;
/* Promise e: a missing receive is waited for instead of failing at once. */
extern const bool provider_retries_rnr;
/* A key can be revoked and its region filled again; else a region is deregistered. */
extern const bool provider_rereg;
/* Its devices have windows of both types, and a test that does not find them is a failure. */
extern const bool provider_windows;
/* Of windows. */
extern const bool provider_zero_based;
/* A window ends where it was bound to end.  Not on rxe, where it ends where its region does: that
 * is tested to be so, as a known failure. */
extern const bool provider_window_bounds;
/* Promise k of windows: what may still be placed by a device that checks a packet first and then
 * copies it.  On rxe it happens now and then, as a known failure. */
extern const unsigned provider_late_bytes;
/* A peer's invalidate against the rules costs the connection and nothing else.  On rxe one of a
 * window that is not bound is the end of the machine, and one from another connection is carried
 * out. */
extern const bool provider_peer_inv_checked;
/* How the passive and the active side are protected; NULL: not at all. */
extern const struct fab_tls *provider_tls[2];
/* What the cipher of each connection that is up begins with; NULL: no matter. */
extern const char *provider_cipher;
/* Before anything else. */
void provider_start(void);
/* Wait until one of @fds is ready or @timeout_ms have passed. */
int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms);

/* ---- the world ---- */

#define SEEN_MAX 4096
#define WORLD_ENDS 16

/* wr_id of the @i-th send and receive: what a completion is of stays known when it failed. */
uint64_t send_id(unsigned i);
uint64_t recv_id(unsigned i);

/* One completion as it came; @id is the i above. */
struct seen {
	unsigned id;
	struct ibv_wc wc;
};

/* An end of a connection with the log of its completions. */
struct end {
	struct world *w;
	struct fab_conn *conn;
	struct fab_pd *pd;
	bool passive, pollable, established, rejected, unreachable, drained;
	int status;
	uint8_t pdata[FAB_PRIVATE_DATA_MAX];
	size_t pdata_len;
	int quota;			/* completions per poll; 0: the end is not polled */
	/* completions of requests not made here go to their done() */
	bool dispatches;
	struct seen sends[SEEN_MAX], recvs[SEEN_MAX];
	unsigned nsends, nrecvs;
};

struct world {
	const struct fab_provider *p;
	struct fab_cm *cm[2];		/* 0: passive, 1: active */
	struct fab_listener *listener;
	struct fab_addr addr;
	struct end *request;		/* the last CONNECT_REQUEST, or NULL */
	unsigned nrequests;
	struct end *ends[WORLD_ENDS];
	unsigned nends;
};

/* Two connected ends, a active and b passive. */
struct pair {
	struct end *a, *b;
};

extern const struct fab_qp_attr default_attr;

void world_init(struct world *w, const struct fab_provider *p);
/* Everything of it must have been destroyed by now but the listener. */
void world_fini(struct world *w);
/* Serve what is ready.  Sleeps once if nothing was, at most @timeout_ms.  True if something was. */
bool world_step(struct world *w, int timeout_ms);

/* Step until @cond. */
#define world_until(w, cond)                                                                       \
	do {                                                                                       \
		while (!(cond))                                                                    \
			world_step_or_die(w, __FILE__, __LINE__, #cond);                           \
	} while (0)
void world_step_or_die(struct world *w, const char *file, int line, const char *what);
/* Step until nothing happens any more for @quiet_ms. */
void world_settle(struct world *w, int quiet_ms);

/* An active end with a resolved address and, if @attr, a queue pair in its own pd. */
struct end *end_active(struct world *w, const struct fab_addr *dst, const struct fab_qp_attr *attr);
/* A queue pair for the end of a CONNECT_REQUEST; @pd NULL makes one. */
void end_create_qp(struct end *e, struct fab_pd *pd, const struct fab_qp_attr *attr);
/* fab_accept(); from then on the end is polled. */
int end_accept(struct end *e, const void *private_data, size_t len);
/* Disconnect, drain and free. */
void end_close(struct end *e);
/* Free an end that needs no drain. */
void end_free(struct end *e);
/* The fabric freed the connection (fab_reject). */
void end_gone(struct end *e);

void pair_connect(struct world *w, struct pair *p, const struct fab_qp_attr *attr);
void pair_close(struct pair *p);

/* ---- posting ---- */

struct region {
	struct ibv_mr *mr;
	uint8_t *mem;
	size_t len;
};

/* Zeroed memory registered in @pd. */
struct region region_create(struct fab_pd *pd, size_t len, int access);
void region_destroy(struct region *r);
/* Promise k for the key of @r, whose memory stays. */
void region_revoke(struct region *r);
struct ibv_sge region_sge(const struct region *r, size_t off, size_t len);

/* Post @n empty receives, recv_id(@first) and on. */
int post_recvs(struct end *e, unsigned first, unsigned n);
/* A request for post(); @sge may be NULL, else it must live until then. */
struct ibv_send_wr wr_write(unsigned id, struct ibv_sge *sge, uint64_t addr, uint32_t rkey);
struct ibv_send_wr wr_write_imm(unsigned id, struct ibv_sge *sge, uint64_t addr, uint32_t rkey,
				uint32_t imm);
struct ibv_send_wr wr_send(unsigned id, struct ibv_sge *sge);
struct ibv_send_wr wr_send_inv(unsigned id, struct ibv_sge *sge, uint32_t rkey);
struct ibv_send_wr wr_inv(unsigned id, uint32_t rkey);
/* Bind @mw under its next key to @len bytes of @r at @off, for a peer to write to. */
struct ibv_send_wr wr_bind(unsigned id, struct ibv_mw *mw, const struct region *r, size_t off,
			   size_t len);
/* Post @wr alone, or as a chain of @n; with what it binds the windows have new keys. */
int post(struct end *e, struct ibv_send_wr *wr, unsigned n);
/* Where a write into @r at @off goes: wr_write(id, &sge, target(&r, off)). */
#define target(r, off) ((uintptr_t)(r)->mem + (off)), (r)->mr->rkey

#endif
