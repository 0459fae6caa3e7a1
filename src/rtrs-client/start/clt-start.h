/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of this process: tried out once while a failure is still an exit status, then opened
 * for good after the fork.  Main thread; knows no nbdkit. */
#ifndef CLT_START_H
#define CLT_START_H

#include "clt-conf.h"
#include "dev-list.h"
#include "dev.h"

#define CLT_START_ERR 512

/* Connect, open the export as NBD clients will when one is configured, disconnect.  With
 * transport=auto this decides: the paths that name no transport are over "rdma" where one of them
 * works that way, else over "tcp", and the log says why.  0, or -errno with the reason in @err; -EMFILE, too, when there are
 * descriptors for the session and none for an NBD client.  At last the control socket of @conf gets its
 * name. */
int clt_start_probe(struct clt_conf *conf, char err[CLT_START_ERR]);
/* Open the session; nobody waits for it here.  While requests wait for a server that is away, or
 * may be, @nap is called, on a thread of its own, again and again: it sleeps for a while, and
 * returns less than 0 when the process is to end.  Then they fail.  0, or -errno with @err: clt_start_admit() tries again.  @conf is used as long as
 * the session. */
int clt_start_session(const struct clt_conf *conf, int (*nap)(void), char err[CLT_START_ERR]);
/* An NBD client has come: may it stay?  Any thread.  0, or -errno with @err: there is no session
 * still, or, -EMFILE, with it there would be too few descriptors for the next one (clt-fds.h) or
 * for the connections of a session that is away. */
int clt_start_admit(char err[CLT_START_ERR]);
/* Open @name of that session with the mode of @conf.  Blocks; any thread.  0, or -errno with the
 * reason in @err, fit to be printed; as dev_open().  For an export that does not exist the reason
 * names those that do. */
int clt_start_open(const struct clt_conf *conf, const char *name, struct dev **dev,
		   char err[CLT_START_ERR]);
/* The names of the server's exports; none when it does not tell them.  Blocks; any thread.  As
 * dev_list(), with the reason in @err. */
int clt_start_list(struct dev_list *list, char err[CLT_START_ERR]);
/* Close it; nothing when there is none. */
void clt_start_end(void);
#endif
