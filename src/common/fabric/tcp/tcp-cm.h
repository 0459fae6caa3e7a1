/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting connections up: the cm and the calls of its user (tcp-cm.c), the handshake (tcp-hs.c),
 * listeners (tcp-listen.c). */
#ifndef TCP_CM_H
#define TCP_CM_H

#include "tcp-conn.h"
#include "unix-sock.h"

#define CM_HANDSHAKE_MS 10000u		/* either side, from connect or accept to the last byte */

struct tcp_cm {
	struct fab_cm base;
	int timerfd;
	pthread_mutex_t lock;
	struct list listeners;		/* tcp_listener.link */
	struct list handshakes;		/* tcp_conn.hs_link, earliest deadline first */
	struct list events;		/* tcp_conn.ev_link */
	struct tcp_source timer;
	unsigned strangers;
	uint64_t timer_ms;		/* what the timer is set to, CLOCK_NEVER: off */
};

struct tcp_listener {
	struct fab_listener base;
	struct tcp_source source;
	struct list link;
	int fd;
	struct unix_sock name;		/* of an AF_UNIX listener; path NULL: none */
	uint64_t retry_ms;		/* deaf until then; 0: not deaf */
};

static inline struct tcp_cm *tcp_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct tcp_cm, base);
}

/* ---- for the provider's table: namesakes in fabric.h ---- */

int tcp_cm_create(struct fab_cm **out);
void tcp_cm_destroy(struct fab_cm *fcm);
int tcp_cm_get_event(struct fab_cm *fcm, struct fab_event *ev);
int tcp_listen(struct fab_cm *fcm, const struct fab_addr *addr, struct fab_listener **out);
void tcp_listen_destroy(struct fab_listener *fl);
int tcp_cm_resolve(struct fab_conn *conn, const struct fab_addr *src, const struct fab_addr *dst);
int tcp_cm_connect(struct fab_conn *conn, const void *private_data, size_t len);
int tcp_cm_accept(struct fab_conn *conn, const void *private_data, size_t len);
void tcp_cm_reject(struct fab_conn *conn, const void *private_data, size_t len);
/* The cm knows @c no longer: out of the epoll, no event.  Any thread. */
void tcp_cm_forget(struct tcp_conn *c);

/* ---- among the three; unless it says otherwise with cm->lock held ---- */

/* A new non-blocking socket for @addr's family, or -errno.  Any thread. */
int tcp_cm_socket(const struct fab_addr *addr);
/* The options of every connection's socket, to or from @peer.  Any thread. */
void tcp_cm_set_options(int fd, const struct fab_addr *peer);
/* epoll_ctl(@op); 0 or -errno.  Any thread. */
int tcp_cm_watch(struct tcp_cm *cm, int op, int fd, uint32_t events, struct tcp_source *src);
int tcp_cm_conn_watch(struct tcp_conn *c, uint32_t events);
/* Out of epoll and deadlines; a stranger is counted no longer.  Before its state changes. */
void tcp_cm_conn_unwatch(struct tcp_conn *c);
void tcp_cm_start_deadline(struct tcp_conn *c);
/* Queue an event; a connection has one at a time. */
void tcp_cm_report(struct tcp_conn *c, enum fab_event_type type, int status);

/* tcp_source.ready of a connection that is being set up. */
void tcp_hs_ready(struct tcp_source *src, uint32_t events);
/* Send a handshake frame, which a fresh socket takes whole.  0 or -errno.  Without cm->lock too. */
int tcp_hs_send(int fd, enum tcp_frame_op op, uint8_t flags, const void *data, size_t len);
/* Fail a set-up whose time is over. */
void tcp_hs_expire(struct tcp_conn *c);
void tcp_hs_fail_active(struct tcp_conn *c, int err, const char *why);
/* Free a stranger, with the reason in the log or silently. */
void tcp_hs_refuse(struct tcp_conn *c, const char *why);
void tcp_hs_drop(struct tcp_conn *c);

#endif
