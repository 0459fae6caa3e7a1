/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway: clients are accepted on the service loop and served on the session's loops, which
 * take them in turns.  A client stays on its loop.  Main thread; functions that say so block. */
#ifndef GATE_H
#define GATE_H

#include <stdatomic.h>

#include "acceptor.h"
#include "client.h"
#include "clt-conf.h"
#include "clt-start.h"
#include "fab-tls-stream.h"
#include "fab-tls.h"
#include "fabric.h"
#include "loop.h"
#include "nbd-server.h"
#include "nbd-tls.h"
#include "relay.h"
#include "unix-sock.h"
#include "unproven.h"
#include "worker.h"

struct ctl_client;
struct gate_stream;

/* ---- gate-options.c ----
 * The command line and the file of config=: options as nbdkit spells them, and the parameters of
 * the plugin. */

#define GATE_PORT_NONE (-1)

struct gate_options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	const char *socket;		/* -U; NULL: none, "-": one of its own for --run */
	const char *address;		/* -i; NULL: not given */
	int port;			/* -p; GATE_PORT_NONE: not given */
	const char *pidfile;		/* NULL: none */
	const char *run;		/* a command; NULL: none */
	const char *uri_name;		/* -e: the export in $uri; NULL: the default one */
	bool readonly;
	uint64_t memory;		/* bytes for data */
	/* A reload has changed @memory.  Service thread.  NULL: nothing to do. */
	void (*memory_changed)(uint64_t memory);
	unsigned threads;		/* loops for IO */
	struct fab_tls_conf tls_conf;	/* --tls..., for NBD clients */
	struct fab_tls *tls;		/* NULL: no TLS */
	char tls_user[PSK_NAME_MAX + 1];	/* the first name of --tls-psk at the start; "":
						 * none */
};

/* clt_front.options: the parameters are further rows.  In a file the options of TLS have names that
 * begin with nbd-, because those without are of the session. */
extern const struct opt_table gate_options;

/* clt_front.defaults() and complete(). */
void gate_options_defaults(struct clt_conf *conf);
int gate_options_complete(struct clt_conf *conf, char *why, size_t len);

/* Read the command line, and the file that config= names, into @o, for @front.  A value of the
 * command line replaces that of the file.  o->session.sess.nloops becomes o->threads.  -1: go on;
 * else the exit status, and what is wrong is on stderr. */
int gate_options_parse(struct gate_options *o, const struct clt_front *front, int argc,
		       char **argv);
/* Free what gate_options_parse() has made, after a failure, too. */
void gate_options_fini(struct gate_options *o);

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

/* ---- gate-tls.c ----
 * TLS for NBD clients.  The steps of a handshake are jobs of a worker (worker.h), so that they hold
 * up no IO; each loop has a worker.  Handshakes are bounded in number (unproven.h) and in time.  A
 * client whose key or certificate is replaced during its handshake does not get in. */

struct gate_tls {
	const struct fab_tls *creds;	/* NULL: no TLS */
	/* How often @creds have got other keys or certificates: raised behind that
	 * (gate_clients_revoke()).  Any thread. */
	_Atomic(uint64_t) epoch;
};

/* TLS for the clients of one loop.  Thread of the loop. */
struct gate_tls_port {
	struct nbd_tls nbd;
	struct gate_tls *tls;		/* NULL: no TLS */
	struct loop *loop;
	struct worker worker;		/* for steps */
	struct unproven unproven;	/* handshakes */
};

/* Make @port, for the clients of @loop, one of @nloops that share the limits.  @tls and its @creds
 * outlive it.  Returns the engine's view; NULL: there is no TLS. */
const struct nbd_tls *gate_tls_port_init(struct gate_tls_port *port, struct gate_tls *tls,
					 struct loop *loop, unsigned nloops);
/* End the thread.  All connections are gone.  A port of zeroes has nothing to end.  Main thread. */
void gate_tls_port_fini(struct gate_tls_port *port);

/* ---- gate-stream.c ----
 * TLS under a connection of NBD: a stream of TLS (fab-tls-stream.h) as the engine's (nbd-tls.h).
 * The set-up is one thread's, the stream is another's afterwards; never two at once. */

/* Begin TLS, as @tls says, at the socket @fd, which stays the caller's.  @epoch counts how often
 * the credentials of @tls were replaced before this call.  NULL: no memory. */
struct gate_stream *gate_stream_create(const struct fab_tls *tls, int fd, uint64_t epoch);
/* Free @s; NULL: do nothing.  Nothing is sent. */
void gate_stream_destroy(struct gate_stream *s);
/* Go on with the handshake.  0: done; -EAGAIN: call again when the socket has *@events, of poll(2);
 * or -errno with the cause @why, of which the client was told. */
int gate_stream_handshake(struct gate_stream *s, short *events, char why[FAB_TLS_WHY_LEN]);
/* Write to @buf the cipher and who the client is, for a log.  After the handshake. */
void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len);
/* @s as the engine's.  After the handshake. */
struct nbd_stream *gate_stream_nbd(struct gate_stream *s);
/* The cipher of @s, which is a gate_stream_nbd(), and who the client is, as the handshake has
 * shown.  Constant; lives as long as @s. */
const struct fab_identity *gate_stream_identity(const struct nbd_stream *s);
/* True if @s, a gate_stream_nbd(), was made or found good with the credentials of @epoch.  The
 * thread that has @s. */
bool gate_stream_is_checked(const struct nbd_stream *s, uint64_t epoch);
/* Would the credentials that the end has by now, those of @epoch or newer ones, let the client of
 * @s in?  False: @why says what has become of the client's key or certificate.  Costs the
 * verification of a certificate.  As gate_stream_is_checked(). */
bool gate_stream_check(struct nbd_stream *s, uint64_t epoch, char why[FAB_TLS_WHY_LEN]);

/* ---- gate.c ---- */

/* The clients of one loop. */
struct gate_loop {
	struct gate *gate;
	struct loop *loop;
	struct relay relay;
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

/* ---- gate-run.c: the process number in a file, and the command of --run ---- */

/* Write the process's number to @path.  0, or -errno with @err: -EEXIST if there is another file
 * than one with a number. */
int gate_run_pidfile(const char *path, char *err, size_t len);
/* Remove @path, if it still has the process's number. */
void gate_run_pidfile_remove(const char *path);

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
