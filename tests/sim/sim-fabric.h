/* SPDX-License-Identifier: BSD-3-Clause */
/* The `sim` fabric provider: connections in memory, in virtual time (sim-core.h), over links that a
 * test can break (sim-net.h).  It keeps the promises of fabric.h as strictly as a NIC would:
 * data is read from the sender's memory some time after the post, in pieces; a queue that is
 * overfilled, a missing receive, a wrong key or a range outside of it fail the connection; flushes
 * come some time after the failure; the descriptor tells only what fab_arm() asked for.
 *
 * What other devices suffer in silence stops the program: a window that is deallocated while a
 * request with it is posted, a connection destroyed or a region deregistered while a window is
 * bound there. */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include "fabric.h"
#include "sim-net.h"

extern const struct fab_provider fab_sim;

#define SIM_MTU 4096u			/* larger messages are placed piece by piece */
#define SIM_CONNECT_TIMEOUT_MS 20000u	/* of an unanswered connect request */

/* An address of @host (sim_host_find()) with @port, on this provider. */
struct fab_addr sim_addr(const char *host, uint16_t port);

/* Can a peer still reach anything through @mw? */
bool sim_mw_bound(const struct ibv_mw *mw);

/* Keys and connections that exist anywhere: 0 after everything was closed. */
unsigned sim_keys(void);
unsigned sim_conns(void);

/* Offers of devices, until the end of the test (sim-test.h).  Whether fab_query_device() offers a
 * local key good for all memory (as tcp).  At first true. */
void sim_offer_local_dma_lkey(bool yes);
/* The same for fab_rereg_mr(), fab_suspend_mr() and regions of length 0. */
void sim_offer_rereg(bool yes);
/* Which windows devices have; at first both. */
void sim_offer_windows(bool type_1, bool type_2b);
/* Who the peers on @host prove to be from now on, as if they had TLS; "": nobody. */
void sim_identify(const char *host, const char *identity);
/* By which key (fab_identity.key) they prove it. */
void sim_identify_key(const char *host, uint64_t key);
/* How programs on @host protect connections from now on, as --tls and tls= say; at first OFF.  The
 * sim has no certificates: TLS alone does not see that somebody between has ended it. */
void sim_tls(const char *host, enum fab_tls_mode mode);

/* What somebody between the ends does to a connection. */
enum sim_between {
	SIM_PASSES,			/* the bytes, as they are */
	/* Ends it, and makes one of its own: with TLS or in plain at the client, and at the
	 * server.  An end without TLS has plain. */
	SIM_TLS_TLS,
	SIM_TLS_PLAIN,
	SIM_PLAIN_TLS,
	SIM_PLAIN_PLAIN,
	SIM_BETWEENS
};

#define SIM_RELAY_CONNS 8u

/* Somebody between all hosts, the test's: what to do to each connection, in the order of the
 * connect requests, and what came of it. */
struct sim_relay {
	enum sim_between plan[SIM_RELAY_CONNS];	/* behind: SIM_PASSES */
	unsigned met;			/* connections */
	struct {
		bool client_tls, server_tls;	/* what each end has */
		uint64_t read;		/* bytes of messages, also of a connection in plain */
	} conn[SIM_RELAY_CONNS];
};

/* Put @relay between all hosts; NULL: nobody. */
void sim_put_between(struct sim_relay *relay);
/* How many windows all devices together have. */
void sim_limit_windows(unsigned n);
/* What @host's device does not do in spite of what it offers: it refuses each bind, as one whose
 * driver has no such call; or a bind of a window of type 1 to nothing, as one that keeps the key
 * then. */
enum sim_mw_fault { SIM_MW_WORKS, SIM_MW_NO_BIND, SIM_MW_NO_UNBIND };
void sim_break_windows(const char *host, enum sim_mw_fault fault);
/* @host's device is removed: what was posted to it never completes, peers hear nothing, nothing can
 * be begun until it is back. */
void sim_lose_device(const char *host);
void sim_give_device_back(const char *host);
/* @host's device flushes a connection that fails from now on so much later. */
void sim_flush_late(const char *host, uint32_t ms);

/* A bit of a message that flips on its way. */
struct sim_flip {
	const char *from, *to;		/* hosts */
	enum ibv_wr_opcode opcode;	/* of the message, which has bytes */
	unsigned skip;			/* such messages before it */
	bool imm;			/* of its immediate, else of its bytes */
	int bit;			/* from the begin; -1: the last */
	bool done;			/* out */
};

/* Flip that bit, once.  @flip stays until it is done, or NULL is put in its place. */
void sim_flip(struct sim_flip *flip);

/* Most requests in a queue of @host's device, most pieces of a send; 0: as many as ever. */
void sim_offer_limits(const char *host, uint32_t max_qp_wr, uint32_t max_sge);
/* SIM_DEVICE=nic in the environment: offer neither that nor fab_rereg_mr(), as RDMA devices do;
 * nic-1: nor windows of type 2. */
void sim_offer_from_env(void);
/* What fab_query_device() offers (enum fab_cap). */
unsigned sim_caps(void);
/* Offer @caps again, and as many windows as at first. */
void sim_offer_again(unsigned caps);

#endif
