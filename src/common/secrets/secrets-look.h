/* SPDX-License-Identifier: BSD-3-Clause */
/* A look at files of keys and certificates, as a program reads them, by a tool that does not use
 * them: what was read is wiped at once.  Any thread. */
#ifndef SECRETS_LOOK_H
#define SECRETS_LOOK_H

#include <sys/types.h>

#include "secrets.h"

struct secrets_keys_seen {
	unsigned n;			/* keys */
	int64_t since_s;		/* the last change of the file, since 1970 */
};

/* Look at the file of keys @path, as a program of the user @reader may use it.  Nothing but a file
 * is opened.  0, or -errno with the reason in @why, without the name of the file. */
int secrets_look_keys(const char *path, uid_t reader, struct secrets_keys_seen *seen, char *why,
		      size_t len);
/* Look at the certificates in the directory @dir, of a server or a client.  0, or -errno with a
 * line in @err as of certs_read(). */
int secrets_look_certs(const char *dir, bool server, struct secrets_dates *dates, char *err,
		       size_t len);

#endif
