/* SPDX-License-Identifier: BSD-3-Clause */
/* A reload: a client that runs, and its front end, read their files of keys and certificates again.
 * Nothing else of the configuration changes.
 *
 * All files are read and checked before anything changes.  Handshakes from then on have what the
 * files say.  Connections that are there stay, also under a key that is gone: whether they end is
 * up to the other end.  A path that comes back to a session of which other paths are connected
 * proves their key (clt-path.h), so a server needs the key of before until the session has another
 * one, or the server has ended the session.
 *
 * Service thread, unless a function says otherwise. */
#ifndef CLT_RELOAD_H
#define CLT_RELOAD_H

#include "changes.h"

struct clt_conf;

/* The reload has ended.  @rc 0: @text has a line for each key that is new or gone, for
 * certificates, and for each kind of file that has not changed.  Else -errno, nothing has changed,
 * and @text has a line for each mistake. */
typedef void clt_reload_done_fn(void *arg, int rc, const char *text);

struct reload;
struct clt_sess;

struct clt_reload {
	struct clt_conf *conf;		/* the caller's; its keys and certificates are replaced */
	struct clt_sess *sess;		/* the caller's */
	struct reload *now;		/* whose change is carried out; NULL: none */
	struct loop *loop;		/* NULL: not begun */
	struct changes changes;		/* reloads, and saves */
	struct loop_call *ending;	/* clt_reload_end(); NULL: not yet */
	struct loop_msg hup_msg;
};

/* Reloads of @conf may come, on @loop, the service loop of @sess, its session.  @conf and @sess
 * outlive @r.  Before the loop has work for @r. */
void clt_reload_begin(struct clt_reload *r, struct clt_conf *conf, struct clt_sess *sess,
		      struct loop *loop);
/* Reload, behind those that are under way.  @done(@arg) follows once, maybe from inside this call.
 * Without any file nothing is done, and @text says so. */
void clt_reload_run(struct clt_reload *r, clt_reload_done_fn *done, void *arg);
/* Reload because of SIGHUP, likewise; the log has the end.  Any thread, from clt_reload_begin() to
 * clt_reload_end(). */
void clt_reload_hup(struct clt_reload *r);
/* No reload begins any more, and one that waits for paths ends: so does a command that waits for
 * it.  Nothing if not begun.  Blocks; not on the service thread, which runs. */
void clt_reload_stop(struct clt_reload *r);
/* A change of r->changes has ended, and is freed. */
void clt_reload_ended(struct clt_reload *r);
/* Wait until no reload is under way; none begins any more, and one whose files are being read
 * changes nothing.  Nothing if not begun.  Blocks; not on the service thread, which runs. */
void clt_reload_end(struct clt_reload *r);

/* rtrsctl path save: the paths that were added at run time, as a file of the configuration, the
 * program's own of opt-file.h.  It takes its turn among the reloads, so that it sees the paths
 * before or behind a reload. */

/* Write the paths of the session of @r that no file of the administrator has, and none that has
 * left.  @done(@arg) follows once, maybe from inside of this call.  Its text is a line for each
 * path that is saved, and for each that was removed and comes back, because a file of the
 * administrator has it; or, if nothing was written, the reasons.  Service thread. */
void clt_save_paths(struct clt_reload *r, clt_reload_done_fn *done, void *arg);

#endif
