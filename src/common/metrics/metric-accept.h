/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of metrics that a reader asks for, by the header Accept (RFC 9110, 12.5.1).  Pure. */
#ifndef METRIC_ACCEPT_H
#define METRIC_ACCEPT_H

#include "metric.h"

/* The format that @accept, the value of a header Accept, prefers.  NULL: there is none.  A reader
 * that takes both alike gets OpenMetrics if it names that, and a reader that takes neither gets the
 * text of Prometheus, as one that says nothing. */
enum metric_format metric_accept(const char *accept);

#endif
