/* SPDX-License-Identifier: BSD-3-Clause */
/* The set-up of connections: the cm and the calls of its user (tcp-cm.c), the handshake (tcp-hs.c,
 * and tcp-hs-frame.c and tcp-aside.c if there is TLS), listeners (tcp-listen.c). */
#ifndef TCP_CM_H
#define TCP_CM_H

#include "tcp-aside.h"
#include "tcp-conn.h"
#include "unix-sock.h"

#define CM_UNPROVEN_MAX 256u
#define CM_UNPROVEN_NET_MAX 64u	/* of a host, or of a user of this machine */
#define CM_HANDSHAKE_MS 10000u		/* either side, from connect or accept to the last byte */

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
/* Send REJECT, if the socket takes the frame, and free @conn. */
void tcp_cm_reject(struct fab_conn *conn, const void *private_data, size_t len);
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
/* Free an unproven peer silently. */
void tcp_hs_drop(struct tcp_conn *c);

#endif
