/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of config= (opt-file.h): the parameters of a front end, a line each, without sections.
 * Main thread, before a daemon forks; or a worker. */
#ifndef CLT_CONF_FILE_H
#define CLT_CONF_FILE_H

#include "clt-conf.h"

/* Read conf->config and its directory.  The paths of all files are paths; of other parameters the
 * last file with one counts.  Parameters that were set before win; server= or path= before drop
 * both of the files.  0; or an error as of opt_file_read() with a line in @err for each mistake,
 * which the caller frees. */
int clt_conf_file_read(struct clt_conf *conf, char **err);

#endif
