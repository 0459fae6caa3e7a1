/* SPDX-License-Identifier: BSD-3-Clause */
/* The RTRS/RNBD server as main.c sees it. */
#ifndef SRV_H
#define SRV_H

#include <stddef.h>

#include "conf.h"
#include "reactor.h"

struct exports;
struct srv;

/* Listen and serve.  @reactors[0] is the control reactor and belongs to the calling thread, which
 * does not run it yet; the other @n - 1, at least one, are for IO and run on their own threads.
 * The rings of @exports are attached to all of them, and detached by the caller after
 * srv_shutdown().  @conf and @exports outlive the server.  Returns 0, or -errno with one line in
 * @err that names the address and the reason; then nothing is left behind. */
int srv_start(const struct srv_conf *conf, struct exports *exports, struct reactor **reactors,
	      unsigned n, struct srv **out, char *err, size_t errlen);

/* Stop accepting, finish what is in flight, close all paths, then run @done(@arg), once, on the
 * control thread and never from inside this call.  Control thread; once. */
void srv_shutdown(struct srv *srv, void (*done)(void *arg), void *arg);

/* Free a server that has shut down.  Control thread; no reactor runs any more. */
void srv_destroy(struct srv *srv);

#endif
