/* SPDX-License-Identifier: BSD-3-Clause */
/* Users by name and number.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"
#include "number.h"

int fab_user_parse(const char *text, uid_t *uid)
{
	const struct passwd *pw = getpwnam(text);
	unsigned n;

	if (pw) {
		*uid = pw->pw_uid;
		return 0;
	}
	/* (uid_t)-1 is no user's number. */
	if (!number_parse_u(text, 0, UINT32_MAX - 1, &n))
		return -EINVAL;
	*uid = (uid_t)n;
	return 0;
}

int fab_users_parse(const char *text, struct fab_users *users)
{
	char name[256];
	size_t len;

	users->n = 0;
	for (;;) {
		len = strcspn(text, ",");
		if (len >= sizeof(name) || users->n == FAB_USERS_MAX)
			return -EINVAL;
		memcpy(name, text, len);
		name[len] = '\0';
		if (fab_user_parse(name, &users->uid[users->n]))
			return -EINVAL;
		users->n++;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

bool fab_users_have(const struct fab_users *users, uid_t uid)
{
	for (unsigned i = 0; i < users->n; i++) {
		if (users->uid[i] == uid)
			return true;
	}
	return !users->n && (!uid || uid == geteuid());
}

const char *fab_users_format(const struct fab_users *users, char *buf, size_t len)
{
	size_t n = 0;

	if (!users->n && geteuid())
		snprintf(buf, len, "0 or %u", (unsigned)geteuid());
	else if (!users->n)
		snprintf(buf, len, "0");
	for (unsigned i = 0; i < users->n && n < len; i++)
		n += (size_t)snprintf(buf + n, len - n, "%s%u", i ? " or " : "",
				      (unsigned)users->uid[i]);
	return buf;
}
