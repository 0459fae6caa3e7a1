/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening sockets for NBD clients: made here, or given by the starter of the program; and who
 * has come there.  Main thread, unless a function says otherwise. */
#ifndef GATE_LISTEN_H
#define GATE_LISTEN_H

#include "fabric.h"
#include "gate-options.h"
#include "unix-sock.h"

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

#endif
