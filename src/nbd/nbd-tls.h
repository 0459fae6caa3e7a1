/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS under connections of NBD, by a library that the program chooses: the engine has these calls
 * alone.  The client asks for TLS by NBD_OPT_STARTTLS.
 *
 * A handshake costs milliseconds of a CPU, and so runs on another thread than the loop of the
 * connection.  All other calls are of the loop's thread, and none blocks. */
#ifndef NBD_TLS_H
#define NBD_TLS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

struct nbd_conn;
struct nbd_stream;

/* Which clients get TLS. */
enum nbd_tls_mode {
	NBD_TLS_OFF,			/* none */
	NBD_TLS_ON,			/* who asks */
	NBD_TLS_REQUIRE,		/* all: the others get no export, and no list */
};

/* The bytes of a connection under TLS. */
struct nbd_stream_ops {
	/* As recvmsg(2).  0: the client has ended its stream, and said so. */
	ssize_t (*recv)(struct nbd_stream *s, const struct iovec *iov, size_t n);
	/* True if recv() has bytes, or an end, that the socket does not show. */
	bool (*pending)(const struct nbd_stream *s);
	/* As sendmsg(2).  Bytes that were taken are copied; some may wait in the stream. */
	ssize_t (*send)(struct nbd_stream *s, const struct iovec *iov, size_t n);
	/* Send what waits.  Returns the bytes that still wait because the socket is full, or
	 * -errno. */
	int (*flush)(struct nbd_stream *s);
	/* Take the word that no bytes follow, to be flushed. */
	void (*bye)(struct nbd_stream *s);
	/* The cause of the last failure of recv() or send(), for the log; "": errno says it. */
	const char *(*why)(const struct nbd_stream *s);
	void (*destroy)(struct nbd_stream *s);
};

struct nbd_stream {
	const struct nbd_stream_ops *ops;
};

/* The library, for the connections of one loop. */
struct nbd_tls {
	enum nbd_tls_mode mode;
	/* Begin the handshake of @conn, called @name, at the socket @fd, which nobody else reads or
	 * writes.  Bounded in time.  End it by nbd_tls_done() on the loop's thread, when nothing
	 * watches @fd any more.  shutdown(2) of @fd, by the engine, is to end the handshake
	 * soon. */
	void (*start)(const struct nbd_tls *tls, struct nbd_conn *conn, int fd, const char *name);
};

/* End the handshake of @conn.  @stream, of a success, becomes the engine's; NULL: the handshake has
 * failed, for the reason @why, which is copied. */
void nbd_tls_done(struct nbd_conn *conn, struct nbd_stream *stream, const char *why);

#endif
