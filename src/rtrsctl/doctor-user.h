/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at files as another user sees them.  Main thread, while the process has no other. */
#ifndef DOCTOR_USER_H
#define DOCTOR_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "check.h"

#define DOCTOR_GROUPS_MAX 64u

struct doctor_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[DOCTOR_GROUPS_MAX];
	unsigned ngroups;
};

/* Fill @user with who runs this program. */
void doctor_user_self(struct doctor_user *user);
/* Fill @user with the user of the process @pid.  False: it cannot be read. */
bool doctor_user_of_process(struct doctor_user *user, long pid);
/* Fill @user as systemd does: @name, the group @group ("": the user's own), and the groups @more,
 * separated by blanks.  False: there is no such user. */
bool doctor_user_named(struct doctor_user *user, const char *name, const char *group,
		       const char *more);
/* "user 104 (rtrs-server)", in @buf, of @uid.  Returns @buf. */
const char *doctor_user_text(uid_t uid, char *buf, size_t len);

/* Looks, and writes the finding to @text. */
typedef enum check_level doctor_look_fn(const void *arg, char *text, size_t len);

/* Call @look(@arg, @text, @len) as @user, in a child process unless @user is who runs this program,
 * and leave its answer in @level.  False: this user may not look as @user does; @text says so. */
bool doctor_look_as(const struct doctor_user *user, doctor_look_fn *look, const void *arg,
		    enum check_level *level, char *text, size_t len);

#endif
