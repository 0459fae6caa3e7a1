/* SPDX-License-Identifier: BSD-3-Clause */
/* The exports of a server, by name, and reasons why an export cannot be opened.  Any thread; all
 * block. */
#ifndef CLT_EXPORT_H
#define CLT_EXPORT_H

#include "clt-conf.h"
#include "dev-list.h"
#include "dev.h"

/* Open @name of @clt with the mode of @conf.  0, or -errno with the reason in @err, fit to be
 * printed; as dev_open().  If the export does not exist, the reason names the existing exports. */
int clt_export_open(struct client *clt, const struct clt_conf *conf, const char *name,
		    struct dev **dev, char err[CLT_FRONT_ERR]);
/* Get the names of the server's exports; none, and 0, from a server without such a list.  Returns
 * the result of dev_list(), with the reason in @err. */
int clt_export_list(struct client *clt, struct dev_list *list, char err[CLT_FRONT_ERR]);
/* Append the names of the server's exports to @err, as many as fit into @size bytes. */
void clt_export_names(struct client *clt, char *err, size_t size);

#endif
