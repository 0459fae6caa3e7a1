/* SPDX-License-Identifier: BSD-3-Clause */
/* The names by which readers of metrics may ask for this program, against DNS rebinding: a
 * foreign page lets its own name lead to an address of ours, and the browser then hands our answer
 * to that page.  Such a request has the page's name in its header Host.  Pure. */
#ifndef METRIC_HOST_H
#define METRIC_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Check the form of @names: "NAME[,NAME...]".  0, or -EINVAL with the expected form in @why. */
int metric_host_check(const char *names, char *why, size_t len);
/* Is @host, the value of a header Host, one of ours? An address is, and "localhost", the name of
 * this machine @own, whole or up to its first dot, and a name in @names.  NULL as @names: none.
 * NULL as @host is one of ours: a browser always has the header.  A port behind @host does not
 * count, nor do capitals. */
bool metric_host_is_ours(const char *host, const char *own, const char *names);

#endif
