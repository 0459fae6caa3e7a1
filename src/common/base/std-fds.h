/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard descriptors, for a program that may start without some of the three, or with a stdout
 * that cannot be written.  Main thread. */
#ifndef BASE_STD_FDS_H
#define BASE_STD_FDS_H

#include "exit-status.h"

/* Open /dev/null in place of each closed standard descriptor.  Call first in main(): otherwise the
 * next open() or socket() becomes that descriptor, and output goes there.  Returns 0 or -errno. */
int std_fds_open(void);
/* Flush stdout.  Returns 0 if all output was written; or -errno, and the same at every later
 * call. */
int std_out_flush(void);
/* The exit status of @program, which ends with @status and with nothing but text on stdout: @status
 * if all of the text was written, or if the user has to mend something.  Otherwise the reason is on
 * stderr. */
enum exit_status std_out_end(const char *program, enum exit_status status);

#endif
