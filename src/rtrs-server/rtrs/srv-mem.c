/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a timer; control thread.
 *
 * The C library keeps freed memory below memory in use, and most of the freed memory at the top:
 * after 8192 connections had gone 1.1 GB stayed.  The time of malloc_trim() grows with the memory
 * to find.  So malloc_trim() runs when many connections have gone, and once for all that go
 * together. */
#include <malloc.h>

#include "clock.h"
#include "srv-mem.h"
#include "srv-state.h"

#define MEM_CONS 64u			/* some 6 MB with the default depth: not worth trimming for
					 * less */
#define MEM_DELAY_MS 1000

static void mem_timer(struct loop_timer *timer)
{
	struct srv *srv = container_of(timer, struct srv, mem_timer);

	srv->freed_cons = 0;
	malloc_trim(0);
}

void srv_mem_init(struct srv *srv)
{
	loop_timer_init(&srv->mem_timer, mem_timer);
}

void srv_mem_freed(struct srv *srv, unsigned ncons)
{
	bool waits = srv->freed_cons >= MEM_CONS;

	srv->freed_cons += ncons;
	if (!waits && srv->freed_cons >= MEM_CONS && srv->life == SRV_RUNNING)
		loop_timer_set(srv_loop(srv), &srv->mem_timer, clock_now_ms() + MEM_DELAY_MS);
}

void srv_mem_stop(struct srv *srv)
{
	loop_timer_cancel(&srv->mem_timer);
}
