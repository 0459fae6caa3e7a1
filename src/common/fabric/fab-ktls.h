/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel has for TLS of its own (kTLS): the module tls, and ciphers.
 *
 * The first use of either may have the kernel load a module, and the caller waits for modprobe; so
 * may each use of what cannot be loaded.  No thread that has connections is to wait for that: the
 * kernel is asked once, before there are any, and the answer holds as long as the process lives. */
#ifndef FAB_KTLS_H
#define FAB_KTLS_H

#include <stdint.h>

/* Ask, unless that was done.  May take seconds.  Any thread. */
void fab_ktls_ask(void);
/* 0: the kernel has the module, or could not be asked; or errno.  After fab_ktls_ask(). */
int fab_ktls_module_error(void);
/* The same of the module and of @cipher, a TLS_CIPHER_* of <linux/tls.h>. */
int fab_ktls_cipher_error(uint16_t cipher);

#endif
