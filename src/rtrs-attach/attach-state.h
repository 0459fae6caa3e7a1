/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a device outlives its process: a file for each device, NAME in /run/rtrs/attach, lines of
 * KEY=VALUE; and the lock that the one process of a device holds, NAME.lock.  Both are gone after a
 * boot, as the device is.  Main thread; blocks. */
#ifndef ATTACH_STATE_H
#define ATTACH_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "rnbd-proto.h"

#define ATTACH_NAME_MAX 64		/* bytes of NAME, with the zero */

struct attach_state {
	char name[ATTACH_NAME_MAX];
	char driver[16];		/* attach_driver.name; "": there is no device yet */
	int index;			/* of the driver's devices; -1: none */
	char disk[32];			/* of the kernel: "nbd0" */
	char server[256];		/* as a user gave it */
	char export_name[RNBD_NAME_MAX];
	int pid;			/* of the process that serves, or has served */
};

/* True if @name can be the name of a device: of letters, digits, '.', '_' and '-', and the first
 * byte is no '.' and no '-'. */
bool attach_name_ok(const char *name);

/* Take the lock of @name.  A descriptor, which holds the lock until its process ends; -EWOULDBLOCK:
 * another process serves the device; or -errno, with @err. */
int attach_state_lock(const char *name, char *err, size_t len);
/* Read the state of @name.  0; -ENOENT: there is none; or -errno with @err. */
int attach_state_read(struct attach_state *s, const char *name, char *err, size_t len);
/* Write @s.  0, or -errno with @err. */
int attach_state_write(const struct attach_state *s, char *err, size_t len);
/* Forget the state of @name. */
void attach_state_remove(const char *name);

#endif
