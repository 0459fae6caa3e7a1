/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a connection's socket and its failure.
 *
 * A connection ends in a single way: a failure comes, and the first cause is kept.  The socket is
 * shut down, so that a sleeper wakes up.  The poller (tcp.c) flushes the posted requests and
 * returns -ENOTCONN from then on.  Errors of the socket are causes, never return values of a post.
 * Any thread. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "tcp-conn.h"
#include "tcp-tls.h"

int tcp_conn_new(struct fab_cm *cm, int fd, struct tcp_conn **out)
{
	static _Atomic uint64_t next_id = 1;
	struct tcp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->base.ops = cm->ops;
	c->base.cm = cm;
	c->fd = fd;
	c->id = atomic_fetch_add(&next_id, 1);
	c->qp_num = (uint32_t)c->id & 0xffffff;
	list_init(&c->pd_link);
	list_init(&c->hs_link);
	list_init(&c->ev_link);
	pthread_mutex_init(&c->tx.lock, NULL);
	pthread_mutex_init(&c->rx.lock, NULL);
	pthread_mutex_init(&c->rx.post_lock, NULL);
	*out = c;
	return 0;
}

void tcp_conn_free(struct tcp_conn *c)
{
	assert(!c->pd && !c->step);
	tcp_tls_destroy(c);
	if (c->fd >= 0)
		close(c->fd);
	pthread_mutex_destroy(&c->tx.lock);
	pthread_mutex_destroy(&c->rx.lock);
	pthread_mutex_destroy(&c->rx.post_lock);
	free(c);
}

/* ---- failure ---- */

void tcp_conn_set_cause(struct tcp_conn *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fab_conn_note_cause(&c->base, fmt, ap);
	va_end(ap);
}

/* Send DISCONNECT with @status, if the stream is between two frames.  tx->lock held. */
static void send_disconnect(struct tcp_conn *c, int status)
{
	struct tcp_frame f = { .op = TCP_FRAME_DISCONNECT, .imm = htobe32((uint32_t)status) };
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	uint32_t pos = c->tx.head;

	while (pos != c->tx.tail && c->tx.ring[pos & c->tx.mask].left == 0)
		pos++;
	if (pos != c->tx.tail || atomic_load(&c->tx.error))
		return;
	tcp_frame_encode(hdr, &f);
	/* If the socket is full, the peer learns no status, and sees the end of the stream. */
	(void)!tcp_stream_send(c, &(struct iovec){ hdr, sizeof(hdr) }, 1);
	if (c->tls)
		tcp_tls_bye(c);
}

/* Tell the peer, shut the socket down and publish the cause.  tx->lock held.
 * ORDER: the poller returns drained only after seeing the publication and then taking tx->lock, so
 * no connection is destroyed under the thread that fails it. */
static void conn_hang_up(struct tcp_conn *c, int status)
{
	send_disconnect(c, status);
	shutdown(c->fd, SHUT_RDWR);
	fab_conn_tell_cause(&c->base);
}

void tcp_conn_fail_tx_locked(struct tcp_conn *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (fab_conn_claim_cause(&c->base, fmt, ap))
		conn_hang_up(c, status);
	va_end(ap);
}

void tcp_conn_fail(struct tcp_conn *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (fab_conn_claim_cause(&c->base, fmt, ap)) {
		LOCK_SCOPE(&c->tx.lock);
		conn_hang_up(c, status);
	}
	va_end(ap);
}
