/* SPDX-License-Identifier: BSD-3-Clause */
/* A front end: a program with which others use the client's devices. */
#ifndef CLT_FRONT_H
#define CLT_FRONT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define CLT_FRONT_ERR 512		/* bytes of the text of an error */

struct clt_conf;
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

#endif
