/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a load, for people or as JSON. */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

/* @cpu_ns: of this process, in the load.  To stdout. */
void report_text(const struct options *o, const struct load *l, uint64_t cpu_ns);
void report_json(const struct options *o, const struct load *l, uint64_t cpu_ns);

#endif
