/* SPDX-License-Identifier: BSD-3-Clause */
/* The RTRS/RNBD server as main.c sees the server.  Apart from program.h, because the simulation
 * starts servers without the program. */
#ifndef SRV_H
#define SRV_H

#include <stddef.h>

#include "conf.h"
#include "reactor.h"

struct exports;
struct srv;

/* Listen and serve.  @reactors[0] is the control reactor and belongs to the calling thread, which
 * does not run the reactor yet.  The other @n - 1, at least one, are for IO and run on their own
 * threads.  The rings of @exports are attached to all reactors; the caller detaches the rings
 * after srv_shutdown().  @conf and @exports outlive the server.  Returns 0; or -errno with the
 * address and the reason in one line in @err, and leaves nothing behind.  -EINVAL: a mistake in an
 * option or in a file of keys or certificates. */
int srv_start(const struct srv_conf *conf, struct exports *exports, struct reactor **reactors,
	      unsigned n, struct srv **out, char *err, size_t errlen);

/* Stop accepting, finish the requests in flight, close all paths, then run @done(@arg) once.
 * @done runs on the control thread and never from inside this call.  Control thread; call once. */
void srv_shutdown(struct srv *srv, void (*done)(void *arg), void *arg);

/* Free a server that has shut down.  Control thread; every reactor has ended. */
void srv_destroy(struct srv *srv);

#endif
