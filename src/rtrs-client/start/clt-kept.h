/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that outlives its process (doc/decisions.md D27), for a front end whose users wait for
 * its next process, as the kernel does with requests of a block device.  All of it is in one file.
 *
 * With such a file
 *   - the server ends the session of the process before first: no write that this process had sent
 *     is carried out behind a request of the next one, whichever path it was sent on.  So requests
 *     that were not answered may be sent again;
 *   - the export is open from the beginning with the geometry that the process before had:
 *     clt_export_open() does not wait for the server, and requests wait as after the loss of all
 *     paths;
 *   - if the server has lost writes which the process before had acknowledged, the next FLUSH
 *     fails, once (dev_handle_arrived());
 *   - another machine, or another file under the export's name, is refused, as it is by a session
 *     that comes back (rtrsctl server accept).
 *
 * The file is of this boot of this machine, and so belongs below /run.  A file of another boot
 * counts as none.  Without the file of its predecessor a process begins as the first one: with
 * mode=rw the server lets it in when the session before has ended, after the requests in its
 * storage.
 *
 * Main thread; blocks. */
#ifndef CLT_KEPT_H
#define CLT_KEPT_H

#include "clt-conf.h"

/* Have the sessions of @conf, which is complete and has export=, outlive the process by the file
 * @path, which is made if it is missing; its directory exists.  Before clt_probe() and before a
 * daemon forks.  One process at a time has the file, until it ends.  0, or -errno with @err:
 *  -EBUSY	another process has it
 *  -EINVAL	the file is no such file, or is of another export or another mode=
 *  -EPERM	the file is not this user's alone */
int clt_kept_open(struct clt_conf *conf, const char *path, char err[CLT_FRONT_ERR]);
/* True if a process before had the export open. */
bool clt_kept_resumes(const struct clt_conf *conf);
/* Let go of the file, which stays for the next process; nothing without a file.  The session has
 * ended. */
void clt_kept_close(struct clt_conf *conf);

/* ---- for clt-start.c and clt-probe.c ---- */

/* What clt_sess_conf.kept takes; NULL: there is no file. */
struct client_kept *clt_kept_page(const struct clt_conf *conf);
/* Note what transport=auto has chosen. */
void clt_kept_choose(const struct clt_conf *conf);
/* What transport=auto chose for the process before; NULL: it is not known. */
const struct fab_provider *clt_kept_provider(const struct clt_conf *conf);

#endif
