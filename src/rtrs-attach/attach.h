/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-attach: an export as a block device of this machine, one process for each device.  Main
 * thread, unless a function says otherwise. */
#ifndef ATTACH_H
#define ATTACH_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/types.h>

#include "attach-state.h"
#include "clt-conf.h"
#include "clt-export.h"
#include "clt-start.h"
#include "dev.h"
#include "process.h"

/* ---- drivers ---- */

/* A driver makes a block device of the kernel out of an open export: via-ublk.c, via-nbd.c.  All
 * calls are of the main thread and may block; the loops of the session serve IO meanwhile.
 *
 * The happy path: probe() says that this kernel can; start() makes the device, or takes the device
 * over that a dead process has left; the program waits for its end, and calls news() when the
 * driver has called attach_wake(), and resize() when the export has grown.  At the end the kernel's
 * device is removed, or left to the next process: leave(), then stop().
 *
 * Possible failures: probe() and start() write the reason.  The device may be removed by another
 * process at any time: news() reports it. */

struct attach;

struct attach_driver {
	const char *name;		/* --via=NAME, and in the state */
	bool has_queues;		/* of the session's loops each serves one */
	/* Set s->disk to the disk that the kernel has for the name of @s, and an empty
	 * s->export_name to its export, if the kernel knows.  Its index; -ENODEV: the kernel has
	 * none; -EEXIST: the disk is of another export than @s; or another -errno.  Loads no
	 * module. */
	int (*find)(struct attach_state *s);
	/* See driver_remove(). */
	int (*remove)(const struct attach_state *s, char *err, size_t len);
	/* Can this kernel have such a device?  May load the module.  0, or -errno with @why. */
	int (*probe)(char *why, size_t len);
	/* Have the device of a->state (attach-state.h) served by this process: the one that a dead
	 * process has left, or else a new one.  Set a->found, a->own, a->size.told, and index and
	 * disk of a->state.  0, or -errno with @err. */
	int (*start)(struct attach *a, char *err, size_t len);
	/* attach_wake() was called, by the driver or by another.  0: the device is served; -ENODEV:
	 * it has gone; another -errno: it waits for another process, for a reason that was
	 * logged. */
	int (*news)(struct attach *a);
	/* Say to the kernel that the export has dev_size(a->dev) bytes now.  0; 1: a->helper does
	 * so, because it may have to wait for the device; -EAGAIN: the helper is busy; or another
	 * -errno with @err. */
	int (*resize)(struct attach *a, char *err, size_t len);
	/* Begin no further request, and answer no failure that may pass: the next process does what
	 * fails from now on again, and requests that wait will fail (client_lose_patience()).  Does
	 * not wait for requests. */
	void (*leave)(struct attach *a);
	/* After that: answer the requests in flight, end the work on the device, and free
	 * a->own. */
	void (*stop)(struct attach *a);
};

/* In the order in which they are tried. */
enum attach_via { ATTACH_VIA_AUTO, ATTACH_VIA_UBLK, ATTACH_VIA_NBD, ATTACH_VIAS };

extern const struct attach_driver attach_via_ublk, attach_via_nbd;
/* NULL: the program was built without it. */
extern const struct attach_driver *const attach_drivers[ATTACH_VIAS];

/* ---- attach-options.c: the command line, and the parameters of the plugin ---- */

extern const char *const attach_via_names[ATTACH_VIAS];

struct attach_options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	enum attach_via via;
	unsigned queues, depth;		/* of a device by ublk; of a queue */
	bool list;			/* print the devices, and exit */
	enum { ATTACH_TABLE, ATTACH_JSON } format;	/* of @list */
	const char *udev;		/* print about this disk, and exit; NULL: no */
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

/* ---- attach-list.c: devices, whoever serves them ---- */

/* Print all devices, as a table or as JSON.  An exit status; what is wrong is on stderr. */
int attach_list(bool json);
/* Print lines KEY=VALUE about the disk @disk, for a rule of udev.  An exit status: EXIT_FAILED, if
 * it is none of ours, too. */
int attach_list_udev(const char *disk);

/* ---- driver.c: a device in the kernel, whoever serves it ---- */

/* Set s->index and s->disk to the disk that the kernel has for the name of @s, or to none: a state
 * may be older than the disk, and the disk of that name may be another program's by now.  If the
 * state was lost, so that s->driver is empty, set that, too.  0; -ENODEV: the kernel has none;
 * -EEXIST: it has, of another export than @s; or another -errno, with @s as it was. */
int driver_find(struct attach_state *s);
/* Say in @err that s->disk has the name of @s, and is of another export.  Returns -EEXIST. */
int driver_other(const struct attach_state *s, char *err, size_t len);
/* Have the kernel end the device of @s.  What waits for the device fails; the caller has flushed
 * it, or does not care.  0, also if the device has gone already; or -errno with @err. */
int driver_remove(const struct attach_state *s, char *err, size_t len);
/* Remove what is left of a device that has gone: its link in /dev/rtrs, its session, and its
 * state. */
void driver_forget(const struct attach_state *s);

/* The name of the device for users: "/dev/rtrs/NAME", in @buf.  Returns @buf. */
#define ATTACH_NODE_LEN (sizeof(ATTACH_LINKS "/") + ATTACH_NAME_MAX)
const char *driver_node(const char *name, char buf[ATTACH_NODE_LEN]);
/* Make driver_node() of @s a link to the device.  0, or -errno with @err. */
int driver_node_make(const struct attach_state *s, char *err, size_t len);
/* The bytes that the kernel says @disk, "nbd0", has; 0: there is no such disk. */
uint64_t driver_node_size(const char *disk);

/* ---- attach-helper.c ----
 * A process for work that may wait for the device, in place of the one that serves the device: that
 * one must end at any time, whatever its threads wait for in the kernel.  The helper ends with it:
 * what the helper was to do may be wrong later. */

#define ATTACH_READ "rtrs-attach-read"	/* argv[0]: read from the disk that is named behind */
#define ATTACH_RESIZE "rtrs-attach-resize"	/* the device NAME, by nbd, has BYTES now */
#define ATTACH_DETACH "rtrs-detach"	/* detach.c: a program of its own, too */
#define ATTACH_UNUSED "rtrs-attach-detach"	/* the same, for the process of the device */

struct attach_helper {
	enum attach_helps {
		ATTACH_HELPS_NOT,
		ATTACH_HELPS_READ,	/* the first read: IO works */
		ATTACH_HELPS_RESIZE,	/* its exit status is an errno */
		ATTACH_HELPS_DETACH,
	} task;
	pid_t pid;
	int fd;				/* readable when the process has ended; -1: none */
};

/* Start this program as @program, with @word behind, @more unless it is NULL, and the number of
 * this process.  0 or -errno. */
int attach_helper_start(struct attach_helper *h, enum attach_helps task, const char *program,
			const char *word, const char *more);
/* In the helper: end with the process that has started it, whose number is the last word of @argv.
 * The number of the other words; less than 0: that process has ended. */
int attach_helper_begin(int argc, char **argv);
/* The process has ended.  Its exit status; or -SIGNAL, if a signal has ended it. */
int attach_helper_take(struct attach_helper *h);
/* Load the module @name of the kernel, unless it is there or cannot be loaded. */
void attach_helper_module(const char *name);

/* The main() of rtrs-detach and of ATTACH_READ and ATTACH_RESIZE: other programs by this file. */
int detach_main(int argc, char **argv);
int attach_helper_read_main(int argc, char **argv);
int via_nbd_resize_main(int argc, char **argv);

/* ---- attach-users.c: what uses a disk of this machine, or a partition of it ---- */

/* Write a line about each user of @disk, "nbd0", to @out, with two blanks in front; this process is
 * none.  NULL: only count.  Returns their number. */
unsigned attach_users(const char *disk, FILE *out);
/* Keep others from using @disk, which nobody uses, or nobody within @ms: a program may look at a
 * disk for a moment.  A descriptor, until whose close no file system and no other device can have
 * the disk; -EBUSY: somebody uses it; or -errno. */
int attach_users_keep_out(const char *disk, unsigned ms);
/* Read the first line of the file that @fmt names into @text, without its end.  False, and @text is
 * empty: there is none. */
bool attach_read_line(char *text, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- attach-helper.c too: the child of rtrs-detach ----
 * It does what may wait for a device in the kernel, where no signal ends it: a device whose
 * process or server is away answers nothing.  Its parent, which any signal ends, follows the child,
 * says for what it waits, and gives it up.  A child that is given up, or whose parent has ended,
 * ends when its call in the kernel does.  Main thread. */

/* The steps of a child, in this order. */
enum detach_step {
	DETACH_OPENS,			/* the device */
	DETACH_FLUSHES,
	DETACH_REMOVES,			/* the kernel does */
	DETACH_WAITS,			/* for the end of the process */
	DETACH_STEPS
};

/* Have @work, with @arg, detach the device @name in a child.  With @force a process of the device
 * that does not end is killed.  Blocks until the child has ended, or is given up.  0, or -1 with
 * the reason on stderr: also what @work returns. */
int detach_child_run(const char *name, bool force, int (*work)(const char *name, const void *arg),
		     const void *arg);
/* In the child: the next step begins. */
void detach_child_at(enum detach_step step);

/* ---- the device ---- */

/* A question for the size of the export: attach-size.c. */
struct attach_size {
	uint64_t told;			/* bytes that the kernel knows, or is to know */
	_Atomic(enum {
		ATTACH_SIZE_RESTS,
		ATTACH_SIZE_ASKS,	/* @req is the client's */
		ATTACH_SIZE_ANSWERED,
	}) state;
	struct clt_export_req req;
};

struct attach {
	const struct attach_options *options;
	const struct attach_driver *driver;
	struct clt_start *start;	/* the session, which runs: start->run has loops and
					 * client */
	struct dev *dev;		/* the export, open */
	struct attach_state state;
	int lock;			/* attach_state_lock(); -1: not taken yet */
	bool waits;			/* for ever, whatever is missing at the start */
	char said[CLT_FRONT_ERR];	/* by attach_run_again() */
	unsigned naps;			/* of the same */
	bool found;			/* the device was there before this process, so it may have
					 * users: the driver's start() says so */
	struct attach_size size;
	struct attach_helper helper;
	int wake_fd;			/* an eventfd */
	int signal_fd;			/* a signalfd */
	void *own;			/* of the driver */
};

/* Have the driver's news() called soon.  Any thread. */
static inline void attach_wake(struct attach *a)
{
	eventfd_write(a->wake_fd, 1);
}

/* ---- attach-size.c ---- */

/* Ask the server, unless a question is under way.  Does not block. */
void attach_size_look(struct attach *a);
/* attach_wake() was called: if the export has grown, say so to the kernel. */
void attach_size_take(struct attach *a);
/* The helper has said so, with @status, an errno; or it was ended by the signal -@status, and is
 * started again when the server is asked again. */
void attach_size_helped(struct attach *a, int status);
/* Wait for the end of a question.  Requests fail while their server is away
 * (client_lose_patience()). */
void attach_size_end(struct attach *a);

/* ---- attach-run.c: the life of the device in this process ---- */

/* The signals of a->signal_fd. */
void attach_run_signals(sigset_t *set);
/* The start has failed because of @err: say so, once, and wait, for a minute at last, or until
 * SIGHUP.  False: a signal is to end the process. */
bool attach_run_again(struct attach *a, const char *err);
/* Serve the device of a->state, until it is removed or left to the next process.  @ready is called
 * when IO works.  Blocks.  The exit status; EXIT_DONE: the device was detached. */
int attach_run(struct attach *a, void (*ready)(struct attach *a));

#endif
