/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway: clients are accepted on the service loop and served on the session's loops, which
 * take them in turns.  A client stays on its loop.  Main thread; functions that say so block. */
#ifndef GATE_H
#define GATE_H

#include "acceptor.h"
#include "clt-start.h"
#include "fabric.h"
#include "gate-export.h"
#include "gate-options.h"
#include "gate-tls.h"
#include "unix-sock.h"

struct ctl_client;

/* ---- gate-listen.c ----
 * The listening sockets for NBD clients: made here, or given by the starter of the program; and who
 * has come there. */

#define GATE_LISTEN_MAX 16

struct gate_listen {
	int fds[GATE_LISTEN_MAX];	/* non-blocking */
	unsigned n;
	bool given;			/* by the starter of the program */
	struct unix_sock socket;	/* .path NULL: none was made */
	char *dir;			/* made for the socket, or NULL */
	unsigned port;			/* of the first TCP socket; 0: none */
};

/* Listen at the sockets of LISTEN_FDS, or else as @o says.  0, or -errno with @err. */
int gate_listen_open(struct gate_listen *l, const struct gate_options *o, char *err, size_t len);
/* The address of socket @i in @buf: "tcp://127.0.0.1:10809", "unix:/run/a.sock".  Any thread. */
const char *gate_listen_url(const struct gate_listen *l, unsigned i, char buf[FAB_ADDR_STRLEN]);
/* Close the sockets, and remove the files that gate_listen_open() has made. */
void gate_listen_close(struct gate_listen *l);
/* Find the client at the socket @fd, which was accepted: its address, or, of a unix socket, its
 * process and user.  0, or -errno: the client has gone.  Any thread. */
int gate_listen_peer(int fd, struct fab_addr *peer);

/* ---- gate.c ---- */

/* The clients of one loop. */
struct gate_loop {
	struct gate *gate;
	struct loop *loop;
	struct gate_exports exports;
	struct gate_tls_port tls;
	struct nbd_server *server;	/* NULL: none, or it has stopped; thread of the loop */
	unsigned unanswered;		/* requests that failed, when @server has stopped */
	struct loop_call *ending;	/* waits until @server has stopped, or NULL */
	struct loop_msg revoke_msg;	/* gate_clients_revoke() */
	struct loop_msg memory_msg;	/* gate.memory has changed */
};

/* The gateway that takes clients, for commands; NULL: none.  Service thread. */
struct gate_now {
	struct gate *gate;
};

struct gate {
	struct clt_start *start;
	struct gate_loop loops[CLT_RUN_LOOPS];	/* [nloops], 0 is the service loop */
	unsigned nloops;
	struct gate_listener {
		struct gate *gate;
		struct acceptor acceptor;
	} listeners[GATE_LISTEN_MAX];
	unsigned nlisteners;
	unsigned long long naccepted;
	struct gate_tls tls;
	struct gate_now *now;
	const struct gate_options *options;	/* the caller's; service thread */
	atomic_size_t memory;		/* of a loop */
};

/* Serve the clients that arrive at @l, from the exports of @start's session, which runs, on all of
 * its loops.  @o says what clients may do, and have of TLS and of memory, and outlives @g.  @now
 * names @g until gate_leave().  Blocks.  0 or -errno. */
int gate_start(struct gate *g, const struct gate_listen *l, struct clt_start *start,
	       const struct gate_options *o, struct gate_now *now);
/* Have the gateway of @now, if there is one, @memory bytes for data of its clients from now on.
 * Service thread. */
void gate_set_memory(const struct gate_now *now, uint64_t memory);
/* Accept no more, and have all clients leave.  Blocks until the clients of all loops do: from then
 * on no client hears of an error that the next server may not have. */
void gate_leave(struct gate *g);
/* After gate_leave(): answer what is in flight, and close all connections.  Blocks until all are
 * gone.  A list of clients may still end after this call: @g stays until the loops have ended. */
void gate_stop(struct gate *g);

/* ---- gate-run.c: the daemon, its process number, and the command of --run ---- */

/* Become a daemon: the caller goes on as the child.  The parent waits until the child is ready, and
 * ends with its status.  Before any thread runs.  0, or -errno with nothing forked. */
int gate_run_daemon(void);
/* Let the parent end, because the daemon is ready.  From now on the standard descriptors of the
 * daemon are /dev/null.  Without a parent: nothing. */
void gate_run_ready(void);

/* Write the process's number to @path.  0, or -errno with @err. */
int gate_run_pidfile(const char *path, char *err, size_t len);

/* Start o->run in a shell whose variables name the socket of @l.  0 with *@pid, or -errno with
 * @err. */
int gate_run_command(const struct gate_options *o, const struct gate_listen *l, pid_t *pid,
		     char *err, size_t len);

/* ---- gate-clients.c: service thread ---- */

/* List the NBD clients, for the command "clients" of the control socket (man/rtrsctl.pod).  A
 * struct ctl_call.fn: @arg is a struct gate_now.  Answers when all loops have reported their
 * clients; refuses while no gateway serves. */
void gate_clients_call(struct ctl_client *client, const char *value, void *arg);
/* Keys or certificates for NBD clients were replaced: have each loop end, soon, the clients whose
 * key is gone, or whose certificate would not pass any more, each with a line in the log.  All
 * others go on: those in clear, too.  The rule is that of rtrs-server for its paths.  Cannot fail.
 * Without a gateway: nothing, because there is no client. */
void gate_clients_revoke(const struct gate_now *now);
/* The function of gate_loop.revoke_msg.  Thread of the loop. */
void gate_clients_revoke_msg(struct loop_msg *msg);

#endif
