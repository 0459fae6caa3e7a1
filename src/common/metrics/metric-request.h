/* SPDX-License-Identifier: BSD-3-Clause */
/* What the headers of a request for metrics say: Host and Accept.  Pure.  Short: three calls.
 *
 * Host has the names by which readers of metrics may ask for this program, against DNS rebinding: a
 * foreign page lets its own name lead to an address of ours, and the browser then hands our answer
 * to that page.  Such a request has the page's name in its header Host.  Pure. */
#ifndef METRIC_REQUEST_H
#define METRIC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "metric.h"

/* Check the form of @names: "NAME[,NAME...]".  0, or -EINVAL with the expected form in @why. */
int metric_host_check(const char *names, char *why, size_t len);
/* Is @host, the value of a header Host, one of ours? An address is, and "localhost", the name of
 * this machine @own, whole or up to its first dot, and a name in @names.  NULL as @names: none.
 * NULL as @host is one of ours: a browser always has the header.  A port behind @host does not
 * count, nor do capitals. */
bool metric_host_is_ours(const char *host, const char *own, const char *names);

/* The format that @accept, the value of a header Accept (RFC 9110, 12.5.1), prefers.  NULL: there
 * is none.  A reader that takes both alike gets OpenMetrics if it names that, and a reader that
 * takes neither gets the text of Prometheus, as one that says nothing. */
enum metric_format metric_accept(const char *accept);

#endif
