/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a load, for people or as JSON. */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

/* Print the result to stdout, for people. */
void report_text(const struct options *o, const struct load *l);
/* Print the result to stdout as JSON.  0, or -ENOMEM after a message on stderr. */
int report_json(const struct options *o, const struct load *l);

#endif
