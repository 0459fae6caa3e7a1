/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "cleanup.h"
#include "doctor.h"
#include "names.h"
#include "number.h"
#include "secrets.h"
#include "state.h"
#include "text.h"
#include "util.h"

#define DAY_S 86400
#define CREDENTIALS "/run/credentials/"
#define IMAGE_SECTOR 512u		/* RNBD_SECTOR_SIZE */

/* A file that a program needs; what is looked at as the program's user. */
struct need {
	const char *path;
	uid_t user;
	enum { NEED_READ, NEED_WRITE } access;
	bool server;			/* certificates of a server, or of a client */
	bool made;			/* a directory that the program makes in its parent */
};

/* ---- rights ---- */

/* Why the user of @need cannot open it, because of @err. */
static void say_closed(const struct need *need, int err, char *text, size_t len)
{
	char user[WHO_TEXT_LEN], owner[WHO_TEXT_LEN];
	struct stat st;

	who_text(need->user, user);
	if (err == EACCES && !stat(need->path, &st))
		snprintf(text, len, "%s: %s may not %s it, and it is of %s and group %u "
			 "with mode %04o: chown it%s", strerror(err), user,
			 need->access == NEED_WRITE ? "write" : "read",
			 who_text(st.st_uid, owner), (unsigned)st.st_gid,
			 (unsigned)st.st_mode & 07777,
			 need->access == NEED_WRITE ? ", or export it read-only" : "");
	else if (err == EACCES)
		snprintf(text, len, "%s: a directory of the path is closed to %s",
			 strerror(err), user);
	else
		snprintf(text, len, "%s: create it, or correct the path in the configuration",
			 strerror(err));
}

/* ---- keys ---- */

static enum check_level look_at_psk(const void *arg, char *text, size_t len)
{
	const struct need *need = arg;
	struct secrets_keys_seen seen;
	int rc = secrets_look_keys(need->path, need->user, &seen, text, len);

	if (rc == -EACCES && faccessat(AT_FDCWD, need->path, R_OK, AT_EACCESS))
		say_closed(need, EACCES, text, len);
	if (rc)
		return CHECK_CRITICAL;
	if (seen.since_s > time(NULL) + DAY_S) {
		snprintf(text, len, "was changed in the future: the clock is wrong, or was");
		return CHECK_WARNING;
	}
	snprintf(text, len, "%u key%s", seen.n, seen.n == 1 ? "" : "s");
	return CHECK_OK;
}

/* ---- certificates ---- */

static enum check_level judge_dates(const struct secrets_dates *dates, char *text, size_t len)
{
	int64_t now = time(NULL);
	char date[16];

	if (dates->begin_file && dates->begin_s > now) {
		snprintf(text, len, "%s is not valid before %s: the clock is wrong, or the file "
			 "was put there too early", dates->begin_file,
			 text_date((time_t)dates->begin_s, date, sizeof(date)));
		return CHECK_CRITICAL;
	}
	if (!dates->end_file) {
		snprintf(text, len, "never end");
		return CHECK_OK;
	}
	text_date((time_t)dates->end_s, date, sizeof(date));
	if (dates->end_s <= now) {
		snprintf(text, len, "%s has ended on %s: put a new one in its place",
			 dates->end_file, date);
		return CHECK_CRITICAL;
	}
	snprintf(text, len, "%s ends on %s", dates->end_file, date);
	return dates->end_s <= now + (int64_t)CHECK_CERTS_DAYS * DAY_S ? CHECK_WARNING : CHECK_OK;
}

static enum check_level look_at_certs(const void *arg, char *text, size_t len)
{
	const struct need *need = arg;
	struct secrets_dates dates;

	if (secrets_look_certs(need->path, need->server, &dates, text, len))
		return CHECK_CRITICAL;
	return judge_dates(&dates, text, len);
}

/* ---- images ---- */

static enum check_level look_at_image(const void *arg, char *text, size_t len)
{
	const struct need *need = arg;
	int mode = R_OK | (need->access == NEED_WRITE ? W_OK : 0);
	struct stat st;
	char user[WHO_TEXT_LEN];

	if (faccessat(AT_FDCWD, need->path, mode, AT_EACCESS) || stat(need->path, &st)) {
		say_closed(need, errno, text, len);
		return CHECK_CRITICAL;
	}
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		snprintf(text, len, "expected a regular file or a block device");
		return CHECK_CRITICAL;
	}
	if (S_ISREG(st.st_mode) && !st.st_size) {
		snprintf(text, len, "is empty: give it a size, e.g.: truncate -s 1G FILE");
		return CHECK_CRITICAL;
	}
	if (S_ISREG(st.st_mode) && st.st_size % IMAGE_SECTOR) {
		snprintf(text, len, "has %lld bytes, which is no multiple of %u: round it up: "
			 "truncate -s %%%u FILE", (long long)st.st_size, IMAGE_SECTOR,
			 IMAGE_SECTOR);
		return CHECK_CRITICAL;
	}
	snprintf(text, len, "%s may %s it", who_text(need->user, user),
		 need->access == NEED_WRITE ? "read and write" : "read");
	return CHECK_OK;
}

/* ---- directories ---- */

static enum check_level look_at_directory(const void *arg, char *text, size_t len)
{
	const struct need *need = arg;
	_cleanup_free_ char *copy = strdup(need->path);
	char user[WHO_TEXT_LEN];
	struct stat st;
	int err = stat(need->path, &st) ? errno : 0;

	who_text(need->user, user);
	if (err == ENOENT && need->made && copy &&
	    !faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS))
		return snprintf(text, len, "%s may make it", user), CHECK_OK;
	if (err) {
		say_closed(need, err, text, len);
		/* It is no reason not to start, and a RuntimeDirectory= comes and goes. */
		return err == ENOENT && !need->made ? CHECK_WARNING : CHECK_CRITICAL;
	}
	if (!S_ISDIR(st.st_mode))
		snprintf(text, len, "is no directory");
	else if (!faccessat(AT_FDCWD, need->path, W_OK | X_OK, AT_EACCESS))
		return snprintf(text, len, "%s may write to it", user), CHECK_OK;
	else if (errno == EACCES)
		snprintf(text, len, "%s: %s may not write to it: chown it", strerror(errno), user);
	else
		snprintf(text, len, "%s", strerror(errno));
	return CHECK_CRITICAL;
}

/* ---- a program's ---- */

static void look_as_user(struct doctor *doctor, const struct doctor_subject *s,
			 doctor_look_fn *look, const struct need *need, const char *what,
			 const char *of)
{
	enum check_level level = CHECK_WARNING;
	char text[1024], path[512];

	text_safe(need->path, path, sizeof(path));
	if (!doctor_look_as(&s->user, look, need, &level, text, sizeof(text)))
		level = CHECK_WARNING;
	doctor_note(doctor, level, what, "%s%s%s: %s", of, *of ? "=" : "", path, text);
}

/* The file @path of @secret; NULL: none.  systemd makes credentials when it starts a unit. */
static void look_at_secret(struct doctor *doctor, const struct doctor_subject *s,
			   const char *path, const struct answer_secret *secret)
{
	const struct need need = { .path = path, .user = s->user.uid,
				   .server = s->kind == SUBJECT_SERVER || secret->nbd };
	const char *option = secret->file_name;

	if (!path)
		return;
	if (!s->pid && !strncmp(path, CREDENTIALS, strlen(CREDENTIALS)) && access(path, F_OK)) {
		doctor_note(doctor, CHECK_OK, "key", "%s=%s: systemd makes it at the start "
			    "(LoadCredential=)", option, path);
		return;
	}
	if (secret->certificates)
		look_as_user(doctor, s, look_at_certs, &need, "certificates", option);
	else
		look_as_user(doctor, s, look_at_psk, &need, "key", option);
}

/* What hides the block device @path from the unit, or its part of the file system.  False: nothing
 * does. */
static bool note_hidden(struct doctor *doctor, const struct doctor_subject *s, const char *export,
			const char *path)
{
	const char *hides = doctor_unit_hides(&s->unit, path);
	struct stat st;

	if (hides) {
		/* A program that runs has what it needs. */
		if (!s->pid)
			doctor_note(doctor, CHECK_CRITICAL, "image",
				    "%s: %s: %s of %s hides it: put the image elsewhere", export,
				    path, hides, s->unit.name);
		return true;
	}
	if (s->pid || !s->unit.values || stat(path, &st) || !S_ISBLK(st.st_mode) ||
	    doctor_unit_may_open(&s->unit, path))
		return false;
	doctor_note(doctor, CHECK_CRITICAL, "image",
		    "%s: %s: %s may not open this device: DeviceAllow=%s rw in a drop-in "
		    "(rtrs-server(8), UNITS)", export, path, s->unit.name, path);
	return true;
}

static void look_at_export(struct doctor *doctor, const struct doctor_subject *s,
			   const char *export, const char *path, bool readonly)
{
	const struct need need = { .path = path, .user = s->user.uid,
				   .access = readonly ? NEED_READ : NEED_WRITE };

	/* Another kind of storage has a prefix in its path. */
	if (*path == '/' && !note_hidden(doctor, s, export, path))
		look_as_user(doctor, s, look_at_image, &need, "image", export);
}

/* What "rtrsctl check" has to say about the exports of a program that runs. */
static void note_exports(struct doctor *doctor, const struct doctor_subject *s)
{
	char name[128], cell[TEXT_CELL], why[STATE_WHY];
	json_t *ex;
	size_t i;

	json_array_foreach(json_object_get(s->answer, "exports"), i, ex) {
		enum health health = state_of_export(s->answer, ex, cell, why);

		text_safe(answer_string(ex, "name"), name, sizeof(name));
		if (health != HEALTH_UP)
			doctor_note(doctor, check_level_of(health), "export", "%s %s", name, why);
	}
}

static void look_at_running(struct doctor *doctor, const struct doctor_subject *s)
{
	json_t *ex;
	size_t i;

	for (i = 0; i < ANSWER_SECRETS; i++)
		look_at_secret(doctor, s, answer_secret_path(s->answer, &answer_secrets[i]),
			       &answer_secrets[i]);
	note_exports(doctor, s);
	json_array_foreach(json_object_get(s->answer, "exports"), i, ex) {
		const char *path = json_string_value(json_object_get(ex, "path"));

		if (path)
			look_at_export(doctor, s, answer_string(ex, "name"), path,
				       !strcmp(answer_string(ex, "mode"), "ro"));
	}
}

/* A directory of @option in which the program of @s makes files of its own; @made: the program
 * makes the directory, too. */
static void look_at_own(struct doctor *doctor, const struct doctor_subject *s, const char *option,
			const char *path, bool made)
{
	const struct need need = { .path = path, .user = s->user.uid, .access = NEED_WRITE,
				   .made = made };
	const char *by = doctor_unit_read_only(&s->unit, path);

	if (by)
		doctor_note(doctor, CHECK_CRITICAL, "directory", "%s=%s: %s of %s lets nobody "
			    "write to it: make it, and ReadWritePaths=%s in a drop-in", option,
			    path, by, s->unit.name, path);
	else
		look_as_user(doctor, s, look_at_directory, &need, "directory", option);
}

/* The directories in which the program of @s makes files of its own. */
static void look_at_directories(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *path;
	size_t at = 0;

	while ((path = doctor_conf_next(&s->conf, "state-dir", &at, NULL))) {
		if (strcmp(path, "none"))
			look_at_own(doctor, s, "state-dir", path, true);
	}
	at = 0;
	while ((path = doctor_conf_next(&s->conf, "metrics-file", &at, NULL))) {
		const char *slash = strrchr(path, '/');
		_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) :
						   strdup(".");

		if (dir)
			look_at_own(doctor, s, "metrics-file", dir, false);
	}
}

static void look_at_configured(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *export, *path, *mode;
	size_t at;

	for (unsigned i = 0; i < ANSWER_SECRETS; i++) {
		at = 0;
		while ((path = doctor_conf_next(&s->conf, answer_secrets[i].file_name, &at, NULL)))
			look_at_secret(doctor, s, path, &answer_secrets[i]);
	}
	at = 0;
	while (s->kind == SUBJECT_SERVER &&
	       (path = doctor_conf_next(&s->conf, "path", &at, &export))) {
		mode = doctor_conf_of(&s->conf, export, "mode");
		look_at_export(doctor, s, export, path, mode && !strcmp(mode, "ro"));
	}
	look_at_directories(doctor, s);
}

void doctor_subject_files(struct doctor *doctor, const struct doctor_subject *s)
{
	if (s->answer)
		look_at_running(doctor, s);
	else
		look_at_configured(doctor, s);
}
