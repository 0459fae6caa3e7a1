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
#include "srv-storage.h"
#include "store.h"

struct change_call;
struct srv;

/* What is to change, and the text that the change is given. */
enum change_kind {
	CHANGE_EXPORT_ADD,		/* as the command line has it */
	CHANGE_EXPORT_REMOVE,		/* a name; by force: take it away from its openers */
	CHANGE_EXPORT_RESIZE,		/* a name; by force: a smaller size of one that is open,
					 * too */
	CHANGE_EXPORT_BREAK,		/* a name; by force: take the lock from a server that
					 * lives, too */
	CHANGE_EXPORT_SET,		/* "NAME,KEY=VALUE[,KEY=VALUE]..."; by force: take it away
					 * from who may not have it open so any more */
	CHANGE_EXPORT_SNAPSHOT,		/* "NAME\nSNAPSHOT", or "NAME\n" */
	CHANGE_RELOAD,			/* nothing; by force: all of the above, of all exports */
	CHANGE_SAVE,			/* nothing */
	CHANGE_KINDS
};

/* The change has been carried out, and @text has a line for each thing that was done; or @rc is
 * -errno, and @text says why nothing was: one line, or a line for each mistake of a file.  A reload
 * with good files may fail behind what it takes away: those lines follow. */
typedef void change_done_fn(void *arg, int rc, const char *text);

/* What the change whose turn it is does. */
enum change_state {
	CHANGE_IDLE,			/* nothing yet */
	CHANGE_APPLYING,		/* a plan */
	CHANGE_SIZING,			/* the storage tells sizes */
	CHANGE_SAVING,			/* files, or a snapshot, on the worker */
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
	struct srv_storage_break breaking;
	struct change_snapshot {
		struct export *ex;
		char name[SNAPSHOT_NAME_MAX + 1];
		char text[512];		/* of store_snapshot() */
	} snapshot;
	struct worker_job job;
	int saved;			/* of the job: 0 or -errno */

	void (*stopped)(void *arg);	/* NULL: not asked for */
	void *stopped_arg;
};

/* Changes of @conf come, for @srv.  @argv outlives @change. */
void change_init(struct change *change, struct srv_conf *conf, struct apply *apply,
		 struct srv *srv, int argc, char **argv);
/* Make the change @what.  @done(@arg) follows, once, maybe from inside this call, and before
 * ctl_close() ends.  A reload reads the files again, those of keys and certificates, too, and
 * carries the difference out; what the files take away is gone as soon as they are read. */
void change_run(struct change *change, enum change_kind what, const char *text, bool force,
		change_done_fn *done, void *arg);
/* Reload, with the result in the log. */
void change_hup(struct change *change);

/* Changes come no more.  Calls @stopped(@arg) once no file is read and no storage is asked, maybe
 * from inside this call; apply_end() follows. */
void change_stop(struct change *change, void (*stopped)(void *arg), void *arg);
/* After change_stop() and apply_end(). */
void change_fini(struct change *change);

#endif
