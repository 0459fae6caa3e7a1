/* SPDX-License-Identifier: BSD-3-Clause */
/* The set-up of connections: the cm and the calls of its user (tcp-cm.c), the handshake (tcp-hs.c,
 * and tcp-hs-frame.c and tcp-aside.c if there is TLS), listeners (tcp-listen.c). */
#ifndef TCP_CM_H
#define TCP_CM_H

#include <stdbool.h>

#include "fab-tls-stream.h"
#include "loop-impl.h"
#include "tcp-conn.h"
#include "tcp-tls.h"
#include "unix-sock.h"
#include "worker.h"

#define CM_UNPROVEN_MAX 256u
#define CM_UNPROVEN_NET_MAX 64u	/* of a host, or of a user of this machine */
#define CM_HANDSHAKE_MS 10000u		/* either side, from connect or accept to the last byte */

/* ---- tcp-aside.c: a thread for the steps of TLS's handshakes ----
 *
 * A step costs up to a millisecond of a processor, and the cm's thread is the control thread of a
 * program.
 *
 * A connection in its set-up lends its session of TLS and its socket for a step at a time, and has
 * them back when the cm's thread takes the result.  Meanwhile the cm neither watches nor uses
 * either.  A connection that goes while its step runs leaves both to the step, which the cm's
 * thread frees when it is done.  Steps are dealt out by host.  They are at most as many as
 * connections in their set-up, of which the unproven (unproven.h) are bounded.
 *
 * A step is a job of a worker (worker.h), whose jobs end as messages to a loop.  A cm has a loop's
 * inbox alone (loop-impl.h), and runs it as a source of its epoll.
 *
 * The thread begins with the first step, waits for no peer (the sockets do not block), and takes no
 * signal.  Calls are under cm->lock, but for init and fini. */

/* The steps of a connection, one at a time.  The fields behind @away belong to the thread while
 * the step is away. */
struct tcp_step {
	struct worker_job job;
	/* The step of @c is done: @c has its session and socket back, and the result is in
	 * c->step. */
	void (*done)(struct tcp_conn *c);
	struct tcp_conn *conn;		/* NULL: it went while the step ran */
	bool away;			/* waits, runs, or has a result that was not taken */
	struct tcp_tls *tls;
	int fd;				/* closed behind the step, if @conn went */
	/* the result, as of tcp_tls_handshake() */
	int rc;
	uint32_t events;
	char why[FAB_TLS_WHY_LEN];
};

struct tcp_aside {
	struct tcp_source source;	/* the inbox */
	struct loop inbox;		/* of results */
	struct worker worker;
	bool begun;			/* the inbox and the worker are there */
};

/* Make @a, without a thread. */
void tcp_aside_init(struct tcp_aside *a);
/* End the thread, behind the step that runs.  No step of a connection is left. */
void tcp_aside_fini(struct tcp_aside *a);

/* Make the next step of @c, whose session is at home, and whose socket is watched by nobody; @done
 * follows.  @epoll, of the cm, has the results as a source from the first step on.  0 or -errno. */
int tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
		   void (*done)(struct tcp_conn *c));
/* End the steps of @c.  One that has not begun comes home.  One that has keeps the session and the
 * socket: then @c has neither any more. */
void tcp_aside_leave(struct tcp_aside *a, struct tcp_conn *c);

/* ---- the cm ---- */

struct tcp_cm {
	struct fab_cm base;
	int timerfd;
	pthread_mutex_t lock;
	struct list listeners;		/* tcp_listener.link */
	struct list handshakes;		/* tcp_conn.hs_link, earliest deadline first */
	struct list events;		/* tcp_conn.ev_link */
	struct tcp_source timer;
	struct unproven unproven;	/* tcp_conn.place, until CONNECT has come; while there are
					 * listeners */
	struct tcp_aside aside;		/* the thread for steps of TLS's handshakes */
	uint64_t timer_ms;		/* deadline of the timer; CLOCK_NEVER: off */
};

struct tcp_listener {
	struct fab_listener base;
	struct tcp_source source;
	struct list link;
	int fd;
	struct unix_sock name;		/* of an AF_UNIX listener; path NULL: none */
	uint64_t retry_ms;		/* deaf until @retry_ms; 0: not deaf */
};

/* The tcp_cm around @cm. */
static inline struct tcp_cm *tcp_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct tcp_cm, base);
}

/* ---- for the provider's table: contracts of the namesakes in fabric.h ---- */

/* Make the epoll, and the timer of deadlines. */
int tcp_cm_create(struct fab_cm **out);
/* Close the epoll and the timer, and free the cm. */
void tcp_cm_destroy(struct fab_cm *fcm);
/* Serve ready sockets and passed deadlines, until an event can be reported. */
int tcp_cm_get_event(struct fab_cm *fcm, struct fab_event *ev);
/* Listen on a TCP address or at a path. */
int tcp_listen(struct fab_cm *fcm, const struct fab_addr *addr, struct fab_listener **out);
/* Drop the listener's unproven peers, and the requests that were not reported. */
void tcp_listen_destroy(struct fab_listener *fl);
/* Make the socket, and bind the socket to @src. */
int tcp_cm_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst);
/* Start connect(2); tcp-hs.c goes on. */
int tcp_cm_connect(struct fab_conn *conn, const void *private_data, size_t len);
/* Send ACCEPT; the connection is up. */
int tcp_cm_accept(struct fab_conn *conn, const void *private_data, size_t len);
/* Ask the kernel: TCP_INFO.  Any thread. */
bool tcp_cm_unheard(const struct fab_conn *conn);
/* Make the cm forget @c: out of the epoll, no event.  Any thread. */
void tcp_cm_forget(struct tcp_conn *c);

/* ---- among the three; cm->lock held, unless the contract says otherwise ---- */

/* Make a non-blocking socket for @addr's family.  Returns the descriptor or -errno.  Any thread. */
int tcp_cm_socket(const struct fab_addr *addr);
/* Set the options that the socket of a connection to or from @peer has; @accepted: from @peer.  Any
 * thread. */
void tcp_cm_set_options(const struct tcp_cm *cm, int fd, const struct fab_addr *peer,
			bool accepted);
/* Call epoll_ctl(@op) for @fd.  Returns 0 or -errno.  Any thread. */
int tcp_cm_watch(struct tcp_cm *cm, int op, int fd, uint32_t events, struct tcp_source *src);
/* Watch the socket of @c for @events, or change the events.  Returns 0 or -errno. */
int tcp_cm_conn_watch(struct tcp_conn *c, uint32_t events);
/* Do not watch the socket of @c for now: not even the end of its stream. */
void tcp_cm_conn_pause(struct tcp_conn *c);
/* Take @c out of the epoll and the deadlines, and off the unproven. */
void tcp_cm_conn_unwatch(struct tcp_conn *c);
/* Give the handshake of @c CM_HANDSHAKE_MS from now on. */
void tcp_cm_start_deadline(struct tcp_conn *c);
/* Queue an event of @c, which has at most a single event queued. */
void tcp_cm_report(struct tcp_conn *c, enum fab_event_type type, int status);

extern const struct fsm tcp_hs_fsm;

/* Move @c along the table of the handshake.  Its actions may free an unproven peer. */
void tcp_hs_event(struct tcp_conn *c, enum tcp_event event);
/* connect(2) of @c is under way, or has failed by -errno @rc. */
void tcp_hs_begin(struct tcp_conn *c, int rc);
/* The tcp_source.ready of a connection in its set-up. */
void tcp_hs_ready(struct tcp_source *src, uint32_t events);
/* The tcp_step.done of a connection in its set-up, or behind it. */
void tcp_hs_step_done(struct tcp_conn *c);
/* Fail a set-up whose deadline has passed. */
void tcp_hs_expire(struct tcp_conn *c);
/* Free an unproven peer, with the reason @why in the log. */
void tcp_hs_refuse(struct tcp_conn *c, const char *why);
/* Tell an unproven peer, which is to be freed, that others have pushed it out, unless TLS has begun
 * to speak: its peer knows then (tcp-hs.c). */
void tcp_hs_tell_pushed_out(struct tcp_conn *c);
/* Free an unproven peer silently. */
void tcp_hs_drop(struct tcp_conn *c);

/* ---- tcp-hs-frame.c: what the states of a handshake (tcp-hs.c) do ----
 *
 * The cm's thread, under cm->lock, but for frames: any thread, one at a time for a connection.
 *
 * In the order in which it happens: connect(2) ends; a side with TLS looks at the first byte of the
 * peer, and has the steps of TLS made (tcp-aside.c); CONNECT goes, and ACCEPT or REJECT comes.
 * Possible failures: nobody listens, the peer speaks another protocol or no TLS, it says nothing,
 * or it goes: tcp_hs_why_*() has the words. */

/* Send a handshake frame, which a fresh socket takes whole.  Returns 0 or -errno. */
int tcp_hs_send(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		size_t len);
/* Read exactly a frame and not a byte more: the bytes behind belong to fab_poll().  Returns 0 with
 * @f, -EAGAIN when bytes are missing, or another -errno with the cause *@why: "": -errno says it;
 * NULL: the first byte is of another protocol. */
int tcp_hs_read(struct tcp_conn *c, struct tcp_frame *f, const char **why);
/* Send a REJECT in plain on @fd, which is no connection yet. */
void tcp_hs_send_refusal(int fd, const void *data, size_t len);

/* connect(2) of @c is over: note our own address.  0, or -errno with the cause @why: connect(2) has
 * failed, or a user listens there whom the cm does not trust. */
int tcp_hs_connected(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

/* Describe in @why the peer of @c, which speaks another protocol: the protocol, if known by its
 * first bytes; the first line, if text (HTTP, SSH, SMTP); or the first bytes.  @c is at its end, so
 * more than a frame may be read. */
void tcp_hs_why_said(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);
/* The cause when the deadline of @c has passed. */
const char *tcp_hs_why_silent(const struct tcp_conn *c);
/* The cause when the peer has closed the connection. */
const char *tcp_hs_why_closed(const struct tcp_conn *c);

/* Calls about TLS that return an error return -EAGAIN: call again when the socket is ready; or
 * another -errno: the set-up has failed. */

/* Look at an unproven peer's first byte.  Returns the event (enum tcp_event) that the byte is, or
 * -errno. */
int tcp_hs_tls_look(struct tcp_conn *c);
/* Read the begin of a hello of TLS.  1: tcp_hs_tls_skip() reads the rest; 0: this is no TLS; or
 * -errno. */
int tcp_hs_tls_hello(struct tcp_conn *c);
/* Read the rest of a hello of TLS, and answer that TLS is off.  0 or -errno. */
int tcp_hs_tls_skip(struct tcp_conn *c);
/* True if the peer of the active side has answered its hello in plain.  Before each step of TLS's
 * handshake. */
bool tcp_hs_tls_answered(struct tcp_conn *c);
/* TLS's handshake is done.  0, or -errno with the cause @why. */
int tcp_hs_tls_done(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN]);

#endif
