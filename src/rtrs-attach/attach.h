/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-attach: an export as a block device of this machine, one process for each device.  Main
 * thread, unless a function says otherwise. */
#ifndef ATTACH_H
#define ATTACH_H

#include <stdbool.h>
#include <stddef.h>

#include "attach-state.h"
#include "clt-conf.h"
#include "clt-start.h"
#include "dev.h"
#include "driver.h"

/* ---- attach-options.c: the command line, and the parameters of the plugin ---- */

enum attach_via { ATTACH_VIA_AUTO, ATTACH_VIA_NBD, ATTACH_VIAS };
extern const char *const attach_via_names[ATTACH_VIAS];

struct attach_options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	enum attach_via via;
	bool foreground, verbose;
	bool check;			/* read all of it, and exit */
	char name[ATTACH_NAME_MAX];
};

extern const struct opt_table attach_options;

/* clt_front.defaults() and complete(). */
void attach_options_defaults(struct clt_conf *conf);
int attach_options_complete(struct clt_conf *conf, char *why, size_t len);
/* Read the command line, and the file that config= names, into @o, for @front.  -1: go on; else the
 * exit status, and what is wrong is on stderr. */
int attach_options_parse(struct attach_options *o, const struct clt_front *front, int argc,
			 char **argv);
/* Free what attach_options_parse() has made, after a failure, too. */
void attach_options_fini(struct attach_options *o);

/* ---- the device ---- */

struct attach {
	const struct attach_options *options;
	const struct attach_driver *driver;
	struct clt_start *start;	/* the session, which runs: start->run has loops and
					 * client */
	struct dev *dev;		/* the export, open */
	struct attach_state state;
	void *own;			/* of the driver */
};

/* Have the driver's news() called soon.  Any thread. */
void attach_wake(struct attach *a);

/* ---- attach-node.c ---- */

/* The name of the device for users: "/dev/rtrs/NAME", in @buf.  Returns @buf. */
#define ATTACH_NODE_LEN (sizeof("/dev/rtrs/") + ATTACH_NAME_MAX)
const char *attach_node(const char *name, char buf[ATTACH_NODE_LEN]);
/* Make attach_node() of @s a link to the device, and read from the device: IO works.  0, or -errno
 * with @err. */
int attach_node_make(const struct attach_state *s, char *err, size_t len);
/* Remove the link. */
void attach_node_remove(const struct attach_state *s);
/* Does anybody use the disk @disk: a file system, swap, another device or a process that has it
 * open? */
bool attach_node_used(const char *disk);

#endif
