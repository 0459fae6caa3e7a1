/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of rtrs-server as a struct: the command line, and the files that the command
 * line names.
 *
 * Filled on the main thread before any other starts.  While threads run the main thread changes the
 * fields of conf_adopt() alone, which other threads do not read. */
#ifndef CONF_H
#define CONF_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "auth-creds.h"
#include "conf-allow.h"
#include "conf-limits.h"
#include "export-spec.h"
#include "fab-tls.h"
#include "fabric.h"
#include "log.h"
#include "metric-sock.h"
#include "opt-file.h"
#include "opt.h"
#include "unix-sock.h"

/* The protection of a request while the server works on it (doc/decisions.md D8); one setting for
 * the whole server. */
enum srv_invalidate {
	SRV_INVALIDATE_AUTO,		/* ALWAYS or COPY, chosen for each path by its device */
	SRV_INVALIDATE_ALWAYS,		/* keys of the data end with their request */
	SRV_INVALIDATE_COPY,		/* a private copy of the data */
	SRV_INVALIDATE_NEVER,		/* nothing: trusted clients only */
	SRV_INVALIDATE_N
};
/* "auto", "always", "copy", "never". */
extern const char *const srv_invalidate_names[SRV_INVALIDATE_N];

/* The effect of a system call that a running server does not make. */
enum srv_seccomp {
	SRV_SECCOMP_OFF,		/* it is made */
	SRV_SECCOMP_ON,			/* it fails with EPERM, and the log tells */
	SRV_SECCOMP_LOG,		/* it is made, and the log tells */
	SRV_SECCOMP_N
};
/* "off", "on", "log". */
extern const char *const srv_seccomp_names[SRV_SECCOMP_N];

/* An export as the user described it, whether or not the server can open the storage. */
struct conf_export {
	/* ORDER: the first, because the rows of storage set its fields: conf_export_options. */
	struct export_spec spec;
	char *where;			/* "FILE:LINE"; NULL: the command line, or rtrsctl */
	struct limits limits;
	struct allow_list allow;	/* who may open the export */
	struct allow_list read_only;	/* who may open the export for reading alone */
	uint16_t priority;		/* conf-limits.h; 0: none */
};

/* An address to listen at. */
struct conf_listener {
	struct fab_addr addr;		/* with its provider; port 0: any free port */
	enum auth_mode auth;		/* AUTH_MODES: as .auth of the configuration */
	/* "FILE:LINE: ", until conf_adopt(); NULL: the command line, or nobody asked */
	const char *where;
	bool first;			/* of the addresses of one --listen */
	bool one_of;			/* these are several, of which a machine may lack some */
	bool missing;			/* this one is lacked: a reload tries again */
};

/* A directory or socket of the server. */
struct conf_place {
	const char *path;		/* NULL: none */
	bool asked;			/* the user gave it: failing to use it is an error */
};

/* The purpose of a reading of the configuration. */
enum conf_purpose {
	CONF_START,
	CONF_CHECK = 1,			/* say the plan, and end; the flag --check stores 1 */
	CONF_RELOAD,			/* the server runs: descriptors of its start are closed */
};

struct srv_conf {
	enum conf_purpose purpose;
	struct conf_listener *listeners;	/* in the order of --listen; of a name in the
						 * resolver's */
	unsigned nlisteners;
	struct conf_export **exports;	/* in the order of files and command line */
	unsigned nexports;
	void *by_name;			/* of @exports, their names: tsearch(3) */

	struct fab_tls_conf tls;
	struct auth_conf auth;
	enum srv_invalidate invalidate;
	struct srv_allow *allow;
	unsigned nallow;		/* 0: everybody */

	uint32_t queue_depth;		/* 1..RTRS_MAX_QUEUE_DEPTH; fits max_io_size */
	uint32_t max_io_size;		/* bytes, a multiple of 4096 */
	unsigned threads;		/* for IO, 1 or more; the control thread is another */
	cpu_set_t cpus;			/* of these threads; empty: any */
	unsigned poll_us;		/* busy-polling of each IO thread; 0: none */

	/* Limits of the memory and state that all clients together can make the server hold. */
	unsigned max_sessions;
	unsigned max_paths;		/* sum over all sessions */
	unsigned max_cons;		/* connections, sum over all paths */
	uint64_t max_memory;		/* bytes, for the requests and connections of all paths */
	unsigned setup_timeout_ms;	/* from the first connection of a path to the INFO_REQ of
					 * the path */
	unsigned hb_interval_ms;	/* 0: as of rtrs_hb_conf() */
	unsigned hb_missed_max;		/* heartbeats in a row that a path may miss; 0 likewise */

	/* the program only: main.c, srv-ctl.c */
	char name[RUNDIR_NAME_MAX];	/* for rtrsctl; by default that of the first export */
	bool named;			/* --name was given */
	bool no_lock;
	bool strict;			/* an export whose storage cannot be opened ends the start,
					 * or the reload */
	unsigned lock_timeout_ms;	/* for each file */
	struct conf_place state_dir;
	struct conf_place control;	/* the control socket */
	const char *metrics;		/* address, as metric_sock_listen() takes it; NULL: none */
	const char *metrics_file;	/* NULL: none */
	enum metric_page_wanted metrics_page;	/* beside @metrics */
	const char *metrics_host;	/* names in requests for @metrics; NULL: none */
	enum srv_seccomp seccomp;
	int ready_fd;			/* -1: none */
	const char *config;		/* the file; NULL: none */
	struct opt_texts texts;		/* values of the files */
	enum log_level log_level;
};

#define CONF_MAX_MEMORY (16ull << 30)	/* and half of the memory */
#define CONF_HDR_SIZE 4096		/* of a chunk, behind the data (doc/traps.md 10) */
/* Defaults, which the rows of conf-options.c show as they are written here. */
#define CONF_MAX_SESSIONS 256
#define CONF_MAX_PATHS 512
#define CONF_MAX_CONS 8192
#define CONF_SETUP_TIMEOUT_S 30
#define CONF_MAX_CONS_MOST 1048576	/* as descriptors of a process, fs.nr_open */
#define CONF_MAX_MEMORY_MOST (UINT64_C(1) << 44)	/* what --max-memory may say */
/* max_memory / this for one client host. */
#define CONF_HOST_MEMORY_SHARE 4
#define CONF_SETUP_TIMEOUT_MS (CONF_SETUP_TIMEOUT_S * 1000)
#define CONF_FILE SYSCONFDIR "/rtrs-server.conf"

/* Most connections of one client host, promised connections and lingering paths included: by
 * default there is room for a path with as many as the protocol allows. */
static inline unsigned conf_host_cons(const struct srv_conf *conf)
{
	return conf->max_cons - conf->max_cons / 4;
}

extern const struct opt_table conf_options;

/* The options of an export, those of all kinds of storage among them: rows that set a struct
 * conf_export. */
extern const struct opt_table conf_export_options;

/* Read the files and the command line into @conf, a pure value: no export, socket or state is
 * opened.  @purpose: CONF_START or CONF_RELOAD.  The command line replaces values of the files.
 * May block in name resolution.  @argv outlives @conf.  Each mistake is a line in @errors.  @conf
 * is to be given to conf_fini() whatever the result. */
enum opt_result conf_parse(struct srv_conf *conf, enum conf_purpose purpose, int argc, char **argv,
			   FILE *errors);
/* Make @copy @conf with lists of its own.  @conf outlives @copy.  0 or -ENOMEM; conf_fini() in any
 * case. */
int conf_copy(struct srv_conf *copy, const struct srv_conf *conf);
/* Give @conf the values of @wanted that change while the server runs. */
void conf_adopt(struct srv_conf *conf, struct srv_conf *wanted);
/* Free the lists of @conf. */
void conf_fini(struct srv_conf *conf);

/* True if @rc says that this machine lacks @l, one of several addresses. */
bool conf_listener_is_missing(const struct conf_listener *l, int rc);
/* True if @a and @b, addresses to listen at, are written alike. */
bool conf_same_listener(const struct fab_addr *a, const struct fab_addr *b);
/* Whether the listener at @addr asks clients who they are; AUTH_MODES: as --auth says. */
enum auth_mode conf_listener_auth(const struct srv_conf *conf, const struct fab_addr *addr);
/* True if a listener of both asks clients otherwise in @b than in @a. */
bool conf_listeners_ask_otherwise(const struct srv_conf *a, const struct srv_conf *b);
/* True if @a and @b have the same limits, rules and priority. */
bool conf_export_same_settings(const struct conf_export *a, const struct conf_export *b);
/* The export of @conf named @name, or NULL. */
struct conf_export *conf_export_find(const struct srv_conf *conf, const char *name);
/* Add the export that @line says, "NAME=PATH[,FLAG|,KEY=VALUE]..." (export-spec.h), which need not
 * exist.  A word behind "allow=" that has a '.' or ':' is a further rule.  0, or -errno with one
 * line in @err. */
int conf_add_export(struct srv_conf *conf, const char *line, char *err, size_t len);
/* Set limits, rules and the priority of an export of @conf, as @text says:
 * "NAME,KEY=VALUE[,KEY=VALUE]...", where the rules of "allow=" are divided by commas, too.  Keys
 * that @text leaves out stay.  0; -ENOENT: none has this name, or a user is unknown; or -EINVAL or
 * -ENOMEM; one line in @err. */
int conf_export_options_set(struct srv_conf *conf, const char *text, char *err, size_t len);
/* 0, or -ENOENT: none has this name. */
int conf_del_export(struct srv_conf *conf, const char *name);

/* True if @peer may connect: no --allow is there, or one names the peer.  A peer of a unix socket
 * had the right to write to the socket: rules for addresses alone do not refuse the peer, rules for
 * users do.  Pure, any thread. */
bool conf_allow_peer(const struct srv_conf *conf, const struct fab_addr *peer);

/* ---- the exports that were added at run time, as a file of the configuration (opt-file.h) ---- */

/* 0 if the lines that would be saved of @ex come back as @ex.  Otherwise -EINVAL or -ENOMEM, with
 * one line in @err: blanks at the ends of the path, for one, are lost in a file. */
int conf_file_holds(const struct conf_export *ex, char *err, size_t len);
/* Write the exports of @now that @files, which was read from the files by now, does not have.  The
 * administrator's files stay as they are.  @report gets a line for each export that is saved, for
 * each that differs from the export of the same name in another file and is not saved, and for each
 * export of the files that @now does not have.  Blocks.  0, or -errno with one line in @err, and
 * the file is as before: a text that a file cannot have; a directory that cannot be written. */
int conf_file_save(const struct srv_conf *now, const struct srv_conf *files, FILE *report,
		   char *err, size_t len);

/* ---- among the files of conf/ ---- */

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
/* Read the file at @path into @conf, a struct srv_conf.  Returns as conf_file_read_all() does. */
int conf_file_read(void *conf, const char *path, FILE *errors);
/* Read the @len bytes of @text (opt_file_parse()).  Returns as conf_file_read_all() does. */
int conf_file_parse(struct srv_conf *conf, const char *path, char *text, size_t len, FILE *errors);

#endif
