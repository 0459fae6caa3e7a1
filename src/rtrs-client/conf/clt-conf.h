/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of a front end: key=value to struct.  Filled before a daemon forks; constant after
 * clt_conf_complete(), except the transport, which clt-probe.c chooses.  The text of an error names
 * the key and the value, and is the caller's to free; NULL: no memory for the text. */
#ifndef CLT_CONF_H
#define CLT_CONF_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth-creds.h"
#include "clt-sess.h"
#include "fab-tls.h"
#include "metric-sock.h"
#include "opt-file.h"
#include "opt.h"
#include "rnbd-msg.h"
#include "rtrs-proto.h"

/* A front end: a program with which others use the client's devices. */

#define CLT_FRONT_ERR 512		/* bytes of the text of an error */

struct clt_conf;
struct clt_kept;
struct ctl_call;
struct json_t;
struct opt_table;
struct secrets_set;

/* The description of a front end for the kit.  Constant. */
struct clt_front {
	/* in messages, names of sessions, and the name of the control socket (a kind of
	 * unix-sock.h) */
	const char *name;
	const char *program;		/* the name of the binary, which rtrsctl shows */
	const char *help;		/* the command to print the parameters */
	/* Options of its own, which may stand in the file of config=, too: rows that set a struct
	 * of @conf_size bytes, whose first member is the struct clt_conf.  .more of the table is
	 * clt_conf_part().  NULL: it has none. */
	const struct opt_table *options;
	size_t conf_size;
	/* Of that struct: set the defaults of the own options; check these and the parameters
	 * together, when all of them are known, and make names of files absolute.  complete()
	 * returns 0; or as clt_conf_complete() with a line in @why.  Any thread.  NULL: nothing to
	 * do. */
	void (*defaults)(struct clt_conf *conf);
	int (*complete)(struct clt_conf *conf, char *why, size_t len);
	/* opt_section.others of that file; NULL: none. */
	const char *const *others, *others_are;
	const struct clt_wait_ops *wait;	/* how requests wait */
	unsigned start_fds;		/* descriptors opened between probe and start */
	unsigned client_fds;		/* descriptors of each client of the front end */
	/* Sleep for a second.  Less than 0: the process is to end, so requests waiting for a server
	 * are to fail.  Called again and again while a server is away or holds requests, on a
	 * separate thread, which the end of the session does not wait for if the call does not
	 * return: the code must stay where it is then.
	 * NULL: the front end waits for its signals itself, and calls client_lose_patience(). */
	int (*nap)(void);
	/* That thread is left in nap(), at the end.  NULL: nothing to do. */
	void (*nap_left)(pthread_t thread);
	/* Commands of its own on the control socket (ctl.h), beside those of the session; run
	 * on the service thread with @calls_arg.  NULL: none. */
	const struct ctl_call *calls;
	unsigned ncalls;
	void *calls_arg;
	/* Members of its own for the program's object (man/rtrsctl.pod), or NULL: no memory.
	 * Service thread.  NULL: none. */
	struct json_t *(*show)(void);
	/* Add its own secrets to @set, which reads them together with those of the client: all are
	 * good, or none is taken.  Any thread.  NULL: it has none. */
	void (*add_secrets)(struct secrets_set *set);
	/* All secrets were replaced.  Service thread.  NULL: nothing to do. */
	void (*secrets_replaced)(void);
};

/* Paths of all files: one that two files have counts twice until they are compared. */
#define CLT_CONF_PATHS_MAX (2 * CLT_PATHS_MAX)

/* Options of a front end that is a program by itself (clt-argv.h). */
struct clt_argv {
	bool foreground, verbose, check;
};

struct clt_conf {
	const struct clt_front *front;
	const char *server;		/* of the first path; values belong to the caller and live
					 * longer */
	/* server= and path=, and "FILE:LINE"; NULL: the command line */
	const char *path_texts[CLT_CONF_PATHS_MAX], *path_wheres[CLT_CONF_PATHS_MAX];
	const char *transport_where;		/* likewise, of transport= */
	/* the parameters as they were set, those of a file not among them */
	struct clt_conf_word {
		const struct opt *row;
		const char *value;
	} words[OPT_ROWS_MAX + CLT_PATHS_MAX];	/* each once, and all paths */
	unsigned nwords;
	const char *values[OPT_ROWS_MAX];	/* of each row of clt_conf_options, by a word or
						 * the file; NULL: the default */
	/* a bit for the place of each of the front end's own rows that is given: on the command
	 * line, and there or in the file */
	uint64_t own_words, own_given;
	const char *export_name;	/* NULL: each client asks for an export */
	char sessname[RTRS_NAME_MAX];	/* empty: made up by clt_conf_sessname() */
	enum clt_transport transport;
	const struct fab_provider *provider;	/* of @transport, NULL: auto */
	/* what the options set of the session, and .nloops, for IO with front->wait clt_loop_wait:
	 * the front end's choice, at most .connections */
	struct clt_sess_conf sess;
	enum rnbd_access_mode mode;
	bool mode_auto;			/* mode=auto: rw, and ro if an export is read-only */
	struct fab_tls_conf tls_conf;
	struct auth_conf auth_conf;
	const char *control;		/* clt_ctl_bind() */
	const char *metrics;		/* clt_metrics_bind(); NULL: none */
	const char *metrics_file;	/* NULL: none */
	enum metric_page_wanted metrics_page;	/* beside @metrics */
	const char *metrics_host;	/* names in requests for @metrics; NULL: none */
	const char *name;		/* for rtrsctl; NULL: that of the file, the export, or the
					 * session */
	uint64_t connect_timeout_ms;	/* CLOCK_NEVER: start without a server */
	const char *config;		/* a file of parameters (opt-file.h); NULL: none */
	const char *saved;		/* of clt_conf_again() */
	struct opt_texts texts;		/* of the files, and absolute names */
	const char *dir;		/* where the program was started; NULL: removed since */
	struct clt_argv run;
	struct clt_kept *kept;		/* clt_kept_open(); NULL: the session ends with its
					 * process */
	/* clt_conf_again(): what holds, whose keys and certificates these are; NULL: the start */
	struct clt_conf *now;
	/* clt_conf_complete() */
	struct fab_tls *tls;		/* NULL: no TLS */
	struct auth_creds *auth;	/* NULL: no authentication in messages */
	struct clt_sess_addr paths[CLT_CONF_PATHS_MAX];
	unsigned npaths;
	bool chooses[CLT_CONF_PATHS_MAX];	/* the provider of the path is still to be chosen */
	bool automatic;			/* some path has @chooses */
};

/* .carry_out of a row changes a struct clt_sess. */
extern const struct opt_table clt_conf_options;
/* opt_table.more of a front end's own rows, whose struct begins with a struct clt_conf. */
const struct opt_table *clt_conf_part(unsigned i);

/* True if the command line or the file has the parameter @key. */
bool clt_conf_given(const struct clt_conf *conf, const char *key);
/* True if @row, of any table, is a parameter for a path. */
bool clt_conf_is_path(const struct opt *row);
/* The transport of the paths of @conf that leave it open, as was chosen; NULL: there are none. */
const struct fab_provider *clt_conf_chosen(const struct clt_conf *conf);
/* Set all defaults.  @front outlives @conf. */
void clt_conf_init(struct clt_conf *conf, const struct clt_front *front);
/* Set the parameter @key.  @value outlives @conf.  0, or -EINVAL with @err. */
int clt_conf_set(struct clt_conf *conf, const char *key, const char *value, char **err);
/* Read the files of config=, check the parameters together, and resolve the names in paths, which
 * blocks.  Files of keys and certificates are read, and have absolute names then.  0; -EINVAL: a
 * mistake in a parameter or a file; another -errno: it does not work here or now.  With @err. */
int clt_conf_complete(struct clt_conf *conf, char **err);
/* The parameter for what other NBD programs call @key; NULL: none. */
const char *clt_conf_meant(const char *key);
/* Read the parameters that @now was set to, and its files, again: *@out, a complete configuration
 * for clt_conf_free(), of which the keys and certificates are those of @now.  Changes nothing of
 * @now, and reads what no thread changes there; any thread; blocks.  Returns as
 * clt_conf_complete().  @saved: a text in the place of the program's own file (opt-file.h), which
 * is read last, and more than CLT_PATHS_MAX paths are no mistake then; NULL: that file. */
int clt_conf_again(struct clt_conf *now, const char *saved, struct clt_conf **out, char **err);
/* Bytes of the struct that the options of @front set, which begins with a struct clt_conf. */
size_t clt_conf_size(const struct clt_front *front);
/* Free @conf, of clt_conf_again(); NULL: do nothing. */
void clt_conf_free(struct clt_conf *conf);
/* True if @a and @b, of one front end, have the same value of @row, one of clt_conf_options or of
 * the front end's own. */
bool clt_conf_same(const struct clt_conf *a, const struct clt_conf *b, const struct opt *row);
/* Free what clt_conf_complete() has made. */
void clt_conf_fini(struct clt_conf *conf);
/* Set @provider for the paths whose provider was left open. */
void clt_conf_choose(struct clt_conf *conf, const struct fab_provider *provider);
/* Get the name of the session: as given, or a name that no other call gets, here or elsewhere.  A
 * made-up name has the number of the process, so the lasting session calls after the fork. */
void clt_conf_sessname(const struct clt_conf *conf, char name[RTRS_NAME_MAX]);

/* The files of config= (opt-file.h): the parameters of a front end, a line each, without sections.
 * Main thread, before a daemon forks; or a worker. */

/* Read conf->config and its directory.  The paths of all files are paths; of other parameters the
 * last file with one counts.  Parameters that were set before win; server= or path= before drop
 * both of the files.  0; or an error as of opt_file_read() with a line in @err for each mistake,
 * which the caller frees. */
int clt_conf_file_read(struct clt_conf *conf, char **err);

#endif
