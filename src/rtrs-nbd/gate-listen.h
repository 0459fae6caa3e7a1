/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets at which NBD clients arrive: made here, or given by whoever started the program.
 * Main thread. */
#ifndef GATE_LISTEN_H
#define GATE_LISTEN_H

#include "gate-options.h"
#include "unix-sock.h"

#define GATE_LISTEN_MAX 16

struct gate_listen {
	int fds[GATE_LISTEN_MAX];	/* non-blocking */
	unsigned n;
	bool given;			/* by whoever started the program */
	struct unix_sock socket;	/* .path NULL: none was made */
	char *dir;			/* that was made for it, or NULL */
	unsigned port;			/* of the first TCP socket; 0: there is none */
};

/* Listen: at what LISTEN_FDS gives, else as @o says.  0, or -errno with @err. */
int gate_listen_open(struct gate_listen *l, const struct gate_options *o, char *err, size_t len);
/* Close the sockets, and remove what was made in the file system. */
void gate_listen_close(struct gate_listen *l);

#endif
