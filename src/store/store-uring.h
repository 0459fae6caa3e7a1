/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a reactor's io_uring that all storage shares: the tables of fixed files and fixed
 * buffers, and workers.  Thread of the reactor.  The simulation has its own
 * (tests/sim/sim-storage.c). */
#ifndef STORE_URING_H
#define STORE_URING_H

#include <stddef.h>

struct reactor;

#define STORE_URING_MEMS 4096u

/* Make tables with @nfiles fixed files and STORE_URING_MEMS fixed buffers, all of them empty.  0,
 * or -errno with one line in @err. */
int store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen);
/* Let go of the files now, not some time after the ring is closed. */
void store_uring_let_go(struct reactor *r);
/* Allow the ring @want workers, or warn that the kernel does not.  More workers than @want stay
 * allowed. */
void store_uring_allow_workers(struct reactor *r, unsigned want);
/* Make [@addr, @addr + @len) fixed buffer @mem; NULL, 0: empty the buffer.  0 or -errno. */
int store_uring_mem(struct reactor *r, unsigned mem, void *addr, size_t len);

#endif
