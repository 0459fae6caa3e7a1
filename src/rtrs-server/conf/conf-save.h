/* SPDX-License-Identifier: BSD-3-Clause */
/* The exports that were added at run time, as a file of the configuration (opt-dir.h). */
#ifndef CONF_SAVE_H
#define CONF_SAVE_H

#include <stdio.h>

#include "conf.h"

/* 0 if the lines that would be saved of @ex come back as @ex.  Otherwise -EINVAL or -ENOMEM, with
 * one line in @err: blanks at the ends of the path, for one, are lost in a file. */
int conf_save_holds(const struct conf_export *ex, char *err, size_t len);
/* Write the exports of @now that @files, which was read from the files by now, does not have.  The
 * administrator's files stay as they are.  @report gets a line for each export that is saved, for
 * each that differs from the export of the same name in another file and is not saved, and for each
 * export of the files that @now does not have.  Blocks.  0, or -errno with one line in @err, and
 * the file is as before: a text that a file cannot have; a directory that cannot be written. */
int conf_save(const struct srv_conf *now, const struct srv_conf *files, FILE *report, char *err,
	      size_t len);

#endif
