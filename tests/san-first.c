/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into nbdkit after the sanitizer's library, and linked with -z initfirst, so that this
 * constructor runs before all others.  ASan and TSan start with the first malloc().  In nbdkit that
 * is one of libp11-kit's constructor, below newlocale() with the locale lock of libc held.  While
 * they start they call dlerror(), whose gettext() fails to lock that lock and unlocks it all the
 * same.  From there its count of readers is one too low, and after any strerror() exit() waits for
 * ever in freelocale(). */
#include <stdlib.h>

static void __attribute__((constructor)) start_sanitizer(void)
{
	/* volatile: compilers know that nobody needs this. */
	void *volatile p = malloc(1);

	free(p);
}
