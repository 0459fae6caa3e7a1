/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard descriptors of a program that may have been started without some of them, or with a
 * stdout that cannot be written.  Main thread. */
#ifndef BASE_STD_FDS_H
#define BASE_STD_FDS_H

/* Open /dev/null in place of each standard descriptor that is closed.  First in main(): the next
 * open() or socket() would become that descriptor, and what is printed would go there.  0 or
 * -errno. */
int std_fds_open(void);
/* Has all that was printed on stdout been written?  0 or -errno, and that for ever. */
int std_out_flush(void);

#endif
