/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a device outlives its process: a file for each device, NAME in /run/rtrs/attach, lines of
 * KEY=VALUE; and the lock that the one process of a device holds, NAME.lock.  Both are gone after a
 * boot, as the device is.  Main thread; blocks. */
#ifndef ATTACH_STATE_H
#define ATTACH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "rnbd-proto.h"

#define ATTACH_NAME_MAX 64		/* bytes of NAME, with the zero */

struct attach_state {
	char name[ATTACH_NAME_MAX];
	char driver[16];		/* attach_driver.name; "": there is no device, and the
					 * process waits for the server */
	int index;			/* of the driver's devices; -1: none */
	char disk[32];			/* of the kernel: "nbd0" */
	char server[256];		/* as a user gave it */
	char export_name[RNBD_NAME_MAX];
	int pid;			/* of the process that serves, or has served */
	enum { ATTACH_BEGINS, ATTACH_READY } ready;	/* of that process: IO works */
	/* by rtrs-detach: the process that serves finds it when it looks (detach.c) */
	enum attach_wish {
		ATTACH_STAYS,
		ATTACH_GOES,		/* the device is being removed: end, too */
		ATTACH_GOES_UNUSED,	/* remove the device when its last user has gone */
		ATTACH_WISHES
	} wish;
};

#define ATTACH_DIRECTORY "/run/rtrs/attach"
#define ATTACH_LINKS "/dev/rtrs"		/* NAME is a link to the disk */

/* True if @name can be the name of a device: of letters, digits, '.', '_' and '-'; the first byte
 * is no '.' and no '-'; and the end is not that of a file beside the device's, as ".lock". */
bool attach_name_ok(const char *name);

/* The name of the file of @name for its session (clt-kept.h), for the caller to free; NULL: no
 * memory. */
char *attach_state_session(const char *name);
/* A number for the device of @s, which the kernel may keep with it: the same for the same name and
 * export.  The bits of ATTACH_MARK_NAME are of the name alone.  Pure. */
#define ATTACH_MARK_NAME UINT64_C(0xffffffff00000000)
uint64_t attach_state_mark(const struct attach_state *s);
/* The number that earlier snapshots of 0.1.0 gave to their devices. */
uint64_t attach_state_mark_0(const struct attach_state *s);
/* Take the lock of @name.  A descriptor, which holds the lock until its process ends; -EWOULDBLOCK:
 * another process serves the device; or -errno, with @err. */
int attach_state_lock(const char *name, char *err, size_t len);
/* True if a process has the lock of @name. */
bool attach_state_served(const char *name);
/* The process, another one than this, that has the file of the lock of @name open, so that it
 * serves @name or is to; 0: there is none, or it cannot be seen.  The state may name one that has
 * ended, whose number may be another program's by now. */
pid_t attach_state_process(const char *name);
/* Read the state of @name.  0; -ENOENT: there is none; or -errno with @err. */
int attach_state_read(struct attach_state *s, const char *name, char *err, size_t len);
/* Write @s.  0, or -errno with @err. */
int attach_state_write(const struct attach_state *s, char *err, size_t len);
/* Forget the state of @name. */
void attach_state_remove(const char *name);
/* Give up the lock @fd, of attach_state_lock(), and remove its file. */
void attach_state_unlock(int fd, const char *name);
/* The names of all states, and of links whose state is lost, both sorted, in *@names, for
 * attach_state_names_free().  Their number, or -errno with @err. */
int attach_state_names(char ***names, char *err, size_t len);
void attach_state_names_free(char **names, int n);
/* Set @s, of @name, to what @text says, lines that are changed; a line that is not known is passed
 * over.  Pure. */
void attach_state_take(struct attach_state *s, const char *name, char *text);
/* Write @s as attach_state_take() reads it. */
void attach_state_put(const struct attach_state *s, FILE *out);

#endif
