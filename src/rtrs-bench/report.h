/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a load, for people or as JSON. */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

/* To stdout. */
void report_text(const struct options *o, const struct load *l);
/* -EINVAL: there is no JSON for it, as stderr has been told. */
int report_json(const struct options *o, const struct load *l);

#endif
