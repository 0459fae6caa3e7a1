/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded by trace.py into a program that was built with -finstrument-functions: remembers the
 * functions that are entered between SIGVTALRM and SIGPROF, which neither nbdkit nor rtrs-server
 * blocks, and then writes $TRACE_OUT.PID: lines of "module BASE PATH" and, in their order, "enter
 * ADDRESS". */
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 65536
#define QUIET __attribute__((no_instrument_function))

static atomic_uintptr_t entered[MOST];
static atomic_uint n;
static atomic_int on;

void __cyg_profile_func_enter(void *function, void *from);
void __cyg_profile_func_exit(void *function, void *from);

QUIET void __cyg_profile_func_enter(void *function, void *from)
{
	unsigned i;

	if (!atomic_load_explicit(&on, memory_order_relaxed))
		return;
	i = atomic_fetch_add(&n, 1);
	if (i < MOST)
		atomic_store(&entered[i], (uintptr_t)function);
}

QUIET void __cyg_profile_func_exit(void *function, void *from)
{
}

QUIET static int module(struct dl_phdr_info *info, size_t size, void *out)
{
	fprintf(out, "module %lx %s\n", (unsigned long)info->dlpi_addr, info->dlpi_name);
	return 0;
}

QUIET static void begin(int sig)
{
	atomic_store(&n, 0);
	atomic_store(&on, 1);
}

/* Not safe in a signal handler by the book; the program is idle when it comes. */
QUIET static void end(int sig)
{
	char path[4096], done[4096];
	FILE *out;

	atomic_store(&on, 0);
	snprintf(done, sizeof(done), "%s.%d", getenv("TRACE_OUT"), getpid());
	snprintf(path, sizeof(path), "%s.%d.new", getenv("TRACE_OUT"), getpid());
	out = fopen(path, "w");
	if (!out)
		return;
	dl_iterate_phdr(module, out);
	for (unsigned i = 0; i < n && i < MOST; i++)
		fprintf(out, "enter %lx\n", (unsigned long)entered[i]);
	fclose(out);
	rename(path, done);
}

QUIET __attribute__((constructor)) static void init(void)
{
	if (getenv("TRACE_OUT")) {
		signal(SIGVTALRM, begin);
		signal(SIGPROF, end);
	}
}
