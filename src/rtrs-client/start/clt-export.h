/* SPDX-License-Identifier: BSD-3-Clause */
/* The exports of a server, by their names, and why one cannot be opened.  Any thread; all block. */
#ifndef CLT_EXPORT_H
#define CLT_EXPORT_H

#include "clt-conf.h"
#include "dev-list.h"
#include "dev.h"

/* Open @name of @clt with the mode of @conf.  0, or -errno with the
 * reason in @err, fit to be printed; as dev_open().  For an export that does not exist the reason
 * names those that do. */
int clt_export_open(struct client *clt, const struct clt_conf *conf, const char *name,
		    struct dev **dev, char err[CLT_FRONT_ERR]);
/* The names of the server's exports; none when the server does not tell them.  Returns the result
 * of dev_list(), with the reason in @err. */
int clt_export_list(struct client *clt, struct dev_list *list, char err[CLT_FRONT_ERR]);
/* Append to @err, of @size bytes, which exports the server has, as many as there is room for. */
void clt_export_names(struct client *clt, char *err, size_t size);

#endif
