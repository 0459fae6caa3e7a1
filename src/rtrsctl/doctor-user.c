/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a child for the time of a look.  The child has no capability that the user would not
 * have. */
#include <config.h>

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "doctor.h"
#include "names.h"
#include "number.h"
#include "util.h"

void doctor_user_self(struct doctor_user *user)
{
	int n;

	*user = (struct doctor_user){ .uid = geteuid(), .gid = getegid() };
	n = getgroups((int)DOCTOR_GROUPS_MAX, user->groups);
	user->ngroups = (unsigned)MAX(n, 0);
}

/* Read the second number, the effective one, behind @key of @line into @id. */
static bool read_id(const char *line, const char *key, unsigned *id)
{
	size_t len = strlen(key);

	return !strncmp(line, key, len) && sscanf(line + len, "%*u %u", id) == 1;
}

static void read_groups(struct doctor_user *user, const char *text)
{
	char *end;

	for (user->ngroups = 0; user->ngroups < DOCTOR_GROUPS_MAX; text = end) {
		unsigned long gid = strtoul(text, &end, 10);

		if (end == text)
			return;
		user->groups[user->ngroups++] = (gid_t)gid;
	}
}

bool doctor_user_of_process(struct doctor_user *user, long pid)
{
	bool has_uid = false, has_gid = false;
	FILE *f = doctor_proc(pid, "status");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!f)
		return false;
	*user = (struct doctor_user){ 0 };
	while (getline(&line, &size, f) > 0) {
		has_uid |= read_id(line, "Uid:", &user->uid);
		has_gid |= read_id(line, "Gid:", &user->gid);
		if (!strncmp(line, "Groups:", 7))
			read_groups(user, line + 7);
	}
	fclose(f);
	return has_uid && has_gid;
}

/* The group and the user @name; a number is one, too, as for systemd.  NULL: there is none. */
static const struct group *find_group(const char *name)
{
	unsigned gid;

	return number_parse_u(name, 0, UINT_MAX, &gid) ? getgrgid(gid) : getgrnam(name);
}

static const struct passwd *find_user(const char *name)
{
	unsigned uid;

	return number_parse_u(name, 0, UINT_MAX, &uid) ? getpwuid(uid) : getpwnam(name);
}

static void add_group(struct doctor_user *user, const char *name)
{
	const struct group *group = find_group(name);

	if (group && user->ngroups < DOCTOR_GROUPS_MAX)
		user->groups[user->ngroups++] = group->gr_gid;
}

bool doctor_user_named(struct doctor_user *user, const char *name, const char *group,
		       const char *more)
{
	const struct passwd *pw = find_user(name);
	const struct group *own = *group ? find_group(group) : NULL;
	char words[1024], *rest = words, *word;
	int n = (int)DOCTOR_GROUPS_MAX;

	if (!pw || (*group && !own))
		return false;
	*user = (struct doctor_user){ .uid = pw->pw_uid,
				      .gid = own ? own->gr_gid : pw->pw_gid };
	if (getgrouplist(pw->pw_name, user->gid, user->groups, &n) < 0)
		n = (int)DOCTOR_GROUPS_MAX;
	user->ngroups = (unsigned)n;
	snprintf(words, sizeof(words), "%s", more);
	while ((word = strsep(&rest, " "))) {
		if (*word)
			add_group(user, word);
	}
	return true;
}

static bool become(const struct doctor_user *user)
{
	return !setgroups(user->ngroups, user->groups) &&
	       !setresgid(user->gid, user->gid, user->gid) &&
	       !setresuid(user->uid, user->uid, user->uid);
}

/* An answer on its way through a pipe. */
struct seen {
	bool became;
	enum check_level level;
	char text[1024];
};

__attribute__((noreturn))
static void look_in_child(const struct doctor_user *user, doctor_look_fn *look, const void *arg,
			  int fd)
{
	struct seen answer = { .became = become(user) };

	if (answer.became)
		answer.level = look(arg, answer.text, sizeof(answer.text));
	_exit(write(fd, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* The answer of a child.  False: it died. */
static bool look_by_child(const struct doctor_user *user, doctor_look_fn *look, const void *arg,
			  struct seen *answer)
{
	ssize_t n = -1;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid)
		look_in_child(user, look, arg, fds[1]);
	close(fds[1]);
	if (pid > 0) {
		/* A pipe takes so little in one piece. */
		do
			n = read(fds[0], answer, sizeof(*answer));
		while (n < 0 && errno == EINTR);
		doctor_tool_end(NULL, pid);
	}
	close(fds[0]);
	return n == (ssize_t)sizeof(*answer);
}

bool doctor_look_as(const struct doctor_user *user, doctor_look_fn *look, const void *arg,
		    enum check_level *level, char *text, size_t len)
{
	struct seen answer = { 0 };
	char name[WHO_TEXT_LEN];

	who_text(user->uid, name);
	if (user->uid == geteuid()) {
		*level = look(arg, text, len);
		return true;
	}
	if (geteuid()) {
		snprintf(text, len, "only root can look as %s does: run rtrsctl doctor as root",
			 name);
		return false;
	}
	if (!look_by_child(user, look, arg, &answer) || !answer.became) {
		snprintf(text, len, "cannot look as %s does: no process can become this user here",
			 name);
		return false;
	}
	*level = answer.level;
	snprintf(text, len, "%s", answer.text);
	return true;
}
