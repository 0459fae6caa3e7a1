/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util.h"
#include "who.h"

const char *who_text(uid_t uid, char buf[WHO_TEXT_LEN])
{
	struct passwd room, *pw = NULL;
	char texts[1024];
	int n = -1;

	if (!getpwuid_r(uid, &room, texts, sizeof(texts), &pw) && pw)
		n = snprintf(buf, WHO_TEXT_LEN, "user %u (%s)", (unsigned)uid, pw->pw_name);
	if (n < 0 || n >= WHO_TEXT_LEN)
		snprintf(buf, WHO_TEXT_LEN, "user %u", (unsigned)uid);
	return buf;
}

/* The directory of the machine that @path is in, and that the unit of this program hides from it,
 * by the setting @by; NULL: none. */
static const char *hidden(const char *path, const char **by)
{
	static const char *const dirs[][2] = {
		{ "/home/", "ProtectHome=" }, { "/root/", "ProtectHome=" },
		{ "/run/user/", "ProtectHome=" }, { "/tmp/", "PrivateTmp=" },
		{ "/var/tmp/", "PrivateTmp=" },
	};

	/* systemd.exec(5) sets it for services. */
	for (size_t i = 0; getenv("INVOCATION_ID") && i < ARRAY_SIZE(dirs); i++) {
		*by = dirs[i][1];
		if (!strncmp(path, dirs[i][0], strlen(dirs[i][0])))
			return dirs[i][0];
	}
	return NULL;
}

const char *who_closed(const char *path, int err, uid_t uid, const char *todo, char *buf,
		       size_t len)
{
	char user[WHO_TEXT_LEN], owner[WHO_TEXT_LEN];
	const char *dir, *by;
	struct stat st;
	bool seen = !stat(path, &st);

	*buf = '\0';
	if (err != -EACCES && err != -ENOENT)
		return buf;
	dir = seen ? NULL : hidden(path, &by);
	if (dir)
		snprintf(buf, len, ": a service of systemd may not see %s of the machine (%s): "
			 "put it elsewhere", dir, by);
	else if (err == -EACCES && seen)
		snprintf(buf, len, ": %s, who runs this program, may not read it, and it is of %s "
			 "and group %u with mode %04o: %s", who_text(uid, user),
			 who_text(st.st_uid, owner), (unsigned)st.st_gid,
			 (unsigned)st.st_mode & 07777, todo);
	else if (err == -EACCES)
		snprintf(buf, len, ": %s, who runs this program, may not enter a directory of the "
			 "path: put it elsewhere, or let this user in (a unit sees nothing of "
			 "/home and /root)", who_text(uid, user));
	return buf;
}
