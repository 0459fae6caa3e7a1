/* SPDX-License-Identifier: BSD-3-Clause */
/* Users, and what keeps them from a file, in the words of messages.  Any thread. */
#ifndef BASE_WHO_H
#define BASE_WHO_H

#include <stddef.h>
#include <sys/types.h>

#define WHO_TEXT_LEN 64

/* "user 104 (rtrs-server)", in @buf, of @uid; without the name if there is none, or a long one.
 * Returns @buf. */
const char *who_text(uid_t uid, char buf[WHO_TEXT_LEN]);

/* Write to @buf why @uid, who runs this program, could not open @path, and what to do, with ": " in
 * front; @err: the -errno of open(2); @todo: what to do if the file itself is closed to @uid, as
 * "chown it".  "": nothing but the error itself is known.  Returns @buf. */
const char *who_closed(const char *path, int err, uid_t uid, const char *todo, char *buf,
		       size_t len);

#endif
