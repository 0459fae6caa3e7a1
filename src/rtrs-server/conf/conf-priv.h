/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of conf/ among themselves; short, because others may call what conf.h has.  Main
 * thread. */
#ifndef CONF_PRIV_H
#define CONF_PRIV_H

#include <stdio.h>

#include "conf.h"

/* Make room for another element behind @n elements of @size bytes at @array.  Returns the array,
 * or NULL with "out of memory" in @why. */
void *conf_grow_array(void *array, unsigned n, size_t size, char *why, size_t len);
/* .call of --listen: add the address in @text to @arg, a struct srv_conf. */
int conf_add_listener(void *arg, const char *text, char *why, size_t len);
/* Check @ex, and add a copy, which the user wrote at @where, "FILE:LINE"; NULL: on the command
 * line, or at run time.  0, or -errno with one line in @err. */
int conf_put_export(struct srv_conf *conf, struct conf_export *ex, const char *where, char *err,
		    size_t len);
/* Add the export of @line, as conf_add_export() does, and drop that of a file with its name. */
int conf_set_export(struct srv_conf *conf, const char *line, char *err, size_t len);
/* Free the exports of @conf, and leave its other lists. */
void conf_free_exports(struct srv_conf *conf);
/* Read @conf->config and the files of its directory, "@config.d/NAME.conf", in the order of their
 * names.  All are read behind a mistake, too.  The first error, as of opt_file_read(), or 0. */
int conf_file_read_all(struct srv_conf *conf, FILE *errors);
/* Read the file at @path.  Returns as conf_file_read_all() does. */
int conf_file_read(struct srv_conf *conf, const char *path, FILE *errors);
/* Read the @len bytes of @text (opt_file_parse()).  Returns as conf_file_read_all() does. */
int conf_file_parse(struct srv_conf *conf, const char *path, char *text, size_t len, FILE *errors);

#endif
