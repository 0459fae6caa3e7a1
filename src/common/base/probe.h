/* SPDX-License-Identifier: BSD-3-Clause */
/* USDT probes, for bpftrace, perf and SystemTap: each is a no-op instruction until a tool attaches.
 * The provider is "rtrs".  man/rtrsctl.pod lists the probes; contrib/ has scripts.  Without
 * sys/sdt.h at build time the probes are compiled out.  Short: one macro. */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include <config.h>

#ifdef HAVE_SYS_SDT_H
#include <sys/sdt.h>
#define PROBE3(name, a, b, c) DTRACE_PROBE3(rtrs, name, a, b, c)
#else
#define PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
