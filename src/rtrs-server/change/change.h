/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a running server, one after the other (changes.h): a change makes another
 * configuration of the one that holds, and has the plan between the two carried out (apply.h).
 * What the files of a reload take away is gone before its turn, because exports may keep the
 * changes before it waiting, and its own plan, or make that fail.  A key that is new comes with the
 * plan, beside the rules that are made for it.  Control thread. */
#ifndef CHANGE_H
#define CHANGE_H

#include "apply.h"
#include "changes.h"
#include "srv-break.h"

struct change_call;
struct srv;

/* The change holds, and @text has a line for each thing that was done; or @rc is -errno, and @text
 * says why nothing has changed: in one line, or in a line for each mistake of a file.  A reload
 * with good files may fail behind what it takes away: those lines follow. */
typedef void change_done_fn(void *arg, int rc, const char *text);

/* What the change whose turn it is does. */
enum change_state {
	CHANGE_IDLE,			/* nothing yet */
	CHANGE_APPLYING,		/* a plan */
	CHANGE_SIZING,			/* the storage tells sizes */
	CHANGE_SAVING,			/* files, on the worker */
	CHANGE_BREAKING,		/* the lock of a shared export is taken */
};

struct change {
	struct srv_conf *conf;		/* the caller's: the configuration that holds */
	struct apply *apply;		/* the caller's */
	struct srv *srv;		/* the caller's */
	int argc;			/* of the command line, which is read again */
	char **argv;
	struct changes queue;

	/* the one whose turn it is */
	enum change_state state;
	struct change_call *now;	/* NULL: none */
	struct plan plan;
	char *text;			/* the lines of what was done */
	struct srv_break breaking;
	struct worker_job job;
	int saved;			/* of the job: 0 or -errno */

	void (*stopped)(void *arg);	/* NULL: not asked for */
	void *stopped_arg;
};

/* Changes of @conf come, for @srv.  @argv outlives @change. */
void change_init(struct change *change, struct srv_conf *conf, struct apply *apply,
		 struct srv *srv, int argc, char **argv);
/* Export what @spec says, too.  @done(@arg) follows, maybe from inside this call. */
void change_export_add(struct change *change, const char *spec, change_done_fn *done, void *arg);
/* Do not export @name any more; a session that has the export open keeps it, unless @force takes
 * it away.  As above. */
void change_export_remove(struct change *change, const char *name, bool force,
			  change_done_fn *done, void *arg);
/* Take the present size of @name; of one that has shrunk in use with @force alone.  As above. */
void change_export_resize(struct change *change, const char *name, bool force,
			  change_done_fn *done, void *arg);
/* Take the lock of @name from another server (srv_break()).  As above. */
void change_export_break(struct change *change, const char *name, bool force,
			 change_done_fn *done, void *arg);
/* Set limits and rules of an export as @text says (conf_export_options_set()).  @force: take the
 * export away from sessions that may not have it open so any more.  As above. */
void change_export_set(struct change *change, const char *text, bool force, change_done_fn *done,
		       void *arg);
/* Read the files again, those of keys and certificates, too, and carry the difference out.  @force:
 * all of the above, of all exports.  As above; what the files take away is gone as soon as they are
 * read. */
void change_reload(struct change *change, bool force, change_done_fn *done, void *arg);
/* Write what was added at run time into a file of the configuration (conf-save.h).  As above. */
void change_save(struct change *change, change_done_fn *done, void *arg);
/* As change_reload(), with the result in the log. */
void change_reload_hup(struct change *change);

/* Changes come no more.  Calls @stopped(@arg) once no file is read and no storage is asked, maybe
 * from inside this call; apply_end() follows. */
void change_stop(struct change *change, void (*stopped)(void *arg), void *arg);
/* After change_stop() and apply_end(). */
void change_fini(struct change *change);

#endif
