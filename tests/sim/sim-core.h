/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated world's clock: virtual time, a queue of events, the actors of all hosts, one seed.
 *
 * Everything runs on one thread.  A step runs one due event or one actor that has something to do;
 * time moves only when nothing is left to do now.  With shuffling the seed chooses among what could
 * run, so a seed stands for one interleaving and replays it.  clock_now_ms() and random_bytes() are
 * implemented here.
 *
 * A host is a machine with addresses; killing it begins a new epoch, and what was made in an
 * earlier epoch (a "ghost") is cut off from the world but can still be torn down in good order, so
 * that a killed program leaves no memory behind in the test. */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fab-tls.h"
#include "fabric.h"
#include "list.h"

/* Begin a world with no host but "localhost" (127.0.0.1), which is also the current one. */
void sim_init(uint64_t seed);
/* Everything must be gone: no event queued, no actor, no handle. */
void sim_fini(void);
/* Let the seed choose the order of what could run at one time.  Off at first: first come. */
void sim_shuffle(bool on);

/* ---- chance ---- */
/* 0..n-1; 0 for n <= 1. */
uint32_t sim_rand(uint32_t n);
/* True in @permille of 1000 cases. */
bool sim_chance(unsigned permille);

/* ---- time and events ---- */
struct sim_event {
	struct list link;
	uint64_t at_us;
	void (*fn)(struct sim_event *ev);
};

uint64_t sim_now_us(void);
/* Since sim_init(). */
uint64_t sim_age_us(void);
void sim_event_init(struct sim_event *ev, void (*fn)(struct sim_event *ev));
/* (Re)queue; events of one time run in the order queued. */
void sim_event_at(struct sim_event *ev, uint64_t at_us);
void sim_event_cancel(struct sim_event *ev);

/* ---- hosts ---- */
#define SIM_HOST_ADDRS 4

struct sim_host {
	struct list link;
	char name[16];
	struct fab_addr addrs[SIM_HOST_ADDRS];
	unsigned naddrs;
	unsigned epoch;			/* of what is alive now */
	bool frozen;			/* nothing of it runs, nothing reaches it */
	bool off;			/* no power: answers nothing, refuses nothing */
	bool no_device;			/* sim_lose_device() */
	uint32_t max_qp_wr, max_sge;	/* of its device; 0: as ever (sim_offer_limits()) */
	unsigned mw_fault;		/* of its device: enum sim_mw_fault */
	uint32_t flush_ms;		/* of its device (sim_flush_late()) */
	char identity[FAB_IDENTITY_LEN];	/* of its programs (sim_identify()) */
	uint64_t key;
	enum fab_tls_mode tls;		/* of its programs (sim_tls()) */
};

/* @ip: numeric.  The host lives until sim_fini(). */
struct sim_host *sim_host_add(const char *name, const char *ip);
void sim_host_add_addr(struct sim_host *h, const char *ip);
/* "NAME", or "NAME/N" for its Nth address, from 0 on. */
struct sim_host *sim_host_find(const char *name);
unsigned sim_host_addr_named(const char *name);
struct sim_host *sim_host_by_addr(const struct fab_addr *addr);
/* Which of @h's addresses @addr is; 0 if none. */
unsigned sim_host_addr_index(const struct sim_host *h, const struct fab_addr *addr);

/* On whose behalf code runs now; what it creates belongs to this host and epoch. */
struct sim_host *sim_host(void);
unsigned sim_epoch(void);
/* Returns what to give sim_leave(). */
struct sim_place {
	struct sim_host *host;
	unsigned epoch;
};
struct sim_place sim_enter(struct sim_host *h, unsigned epoch);
void sim_leave(struct sim_place before);
/* Does the running code belong to an earlier life of its host? */
bool sim_is_ghost(const struct sim_host *h, unsigned epoch);

/* ---- actors: what would be a thread ---- */
struct sim_actor {
	struct list link;
	struct sim_host *host;
	unsigned epoch;
	bool (*ready)(struct sim_actor *a);		/* something to do now? */
	uint64_t (*deadline_ms)(struct sim_actor *a);	/* CLOCK_NEVER; may be NULL */
	void (*run)(struct sim_actor *a);		/* one pass; may remove itself */
};

/* Belongs to the current host and epoch. */
void sim_actor_add(struct sim_actor *a);
void sim_actor_del(struct sim_actor *a);

/* ---- descriptors ---- */
/* Stand-ins for file descriptors, understood by sim_fd_ready() and no system call.  @ready returns
 * the poll(2) events that hold now. */
int sim_fd_open(short (*ready)(void *arg), void *arg);
void sim_fd_close(int fd);
/* The poll(2) events that hold now.  @fd may be a real descriptor whose other end is in this
 * process, too: only code between sim_fd_use() and sim_fd_used() changes its events. */
short sim_fd_ready(int fd);
/* Code that makes system calls with real descriptors begins, or has ended.  In between the kernel
 * is asked at each sim_fd_ready(), at other times once for each change. */
void sim_fd_use(void);
void sim_fd_used(void);
bool sim_fd_is_real(int fd);

/* ---- running ---- */
/* One step at a time up to @until_us.  False when nothing is left to do by then; it is then
 * @until_us. */
bool sim_step(uint64_t until_us);
/* How many steps were taken since sim_init(). */
uint64_t sim_steps(void);
/* Call @fn between two steps once sim_steps() reaches @step; NULL takes it back. */
void sim_at_step(uint64_t step, void (*fn)(void *arg), void *arg);
void sim_run_ms(uint64_t ms);
/* Run until @cond or @ms have passed; returns what @cond says. */
bool sim_run_until(bool (*cond)(void *arg), void *arg, uint64_t ms);

#endif
