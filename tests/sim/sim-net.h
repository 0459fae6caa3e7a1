/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies between the hosts: links with delay, and the faults a test can put on them.  There is a
 * link for each address of a server: "srv/1" is the second.
 *
 * Messages of one flow (one direction of a connection) arrive in order, as TCP and RC promise;
 * flows overtake each other within the jitter.  A black-holed link keeps what was sent and delivers
 * it when it heals, which is what retransmission looks like from above. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim-core.h"

/* ---- faults; hosts by name, both directions ---- */

/* One way takes @delay_us and up to @jitter_us more.  At first 1000 and 0; within a host 10. */
void sim_delay(const char *a, const char *b, uint32_t delay_us, uint32_t jitter_us);
/* Black hole: nothing arrives until sim_heal(). */
void sim_drop(const char *a, const char *b);
void sim_drop_oneway(const char *from, const char *to);
void sim_heal(const char *a, const char *b);
/* All connections between them break now, both ends see it; new ones are possible. */
void sim_cut(const char *a, const char *b);
/* Connections break at @sees only; @blind learns of it when it hears from there again. */
void sim_cut_seen_by(const char *sees, const char *blind);
/* As sim_cut() when the @nth message from now on is about to arrive on the link, which is lost.
 * 0 takes it back. */
void sim_cut_at_message(const char *a, const char *b, unsigned nth);
/* Messages that have arrived on the link so far. */
unsigned sim_messages(const char *a, const char *b);
/* The next connect request from @clt to @srv arrives twice; nobody stands behind the second. */
void sim_duplicate_connect(const char *clt, const char *srv);
/* The next @n connection managers cannot be made, by anybody: @err. */
void sim_refuse_cm(unsigned n, int err);
/* The machine stops: no code of it runs, nothing reaches it, until thawed. */
void sim_freeze(const char *host);
void sim_thaw(const char *host);

enum sim_kill {
	/* the machine lives: its peers are told, later connects are refused */
	SIM_KILL_PROCESS,
	SIM_KILL_POWER,		/* silence, also for connects, until sim_power_on() */
};

/* The program on @host dies: its connections and listeners are out of the world, a new epoch
 * begins.  Its objects are ghosts from now on; their connections fail. */
void sim_kill(const char *host, enum sim_kill how);
void sim_power_on(const char *host);

/* ---- for the provider ---- */

struct sim_msg {
	struct sim_event ev;
	struct list held;
	struct sim_host *from, *to;
	unsigned wire;			/* which address of the server's */
	void (*deliver)(struct sim_msg *msg);	/* frees it */
	void (*discard)(struct sim_msg *msg);	/* frees it, never delivered */
};

/* Order within a flow. */
struct sim_flow {
	uint64_t last_us;
};

/* Send @msg (from, to, deliver and discard set).  Takes ownership. */
void sim_msg_send(struct sim_msg *msg, struct sim_flow *flow);
/* True once for a connect request that is to be doubled. */
bool sim_net_duplicates(struct sim_host *clt, struct sim_host *srv);
void sim_net_fini(void);

/* Implemented by the provider: break all connections between two hosts; fail all of a host's
 * epoch. */
void sim_fabric_cut(struct sim_host *a, struct sim_host *b, unsigned wire);
void sim_fabric_cut_end(struct sim_host *sees, struct sim_host *blind, unsigned wire);
void sim_fabric_kill(struct sim_host *h, enum sim_kill how);

#endif
