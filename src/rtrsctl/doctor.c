/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns each subject while it is looked at. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "cleanup.h"
#include "ctl-json.h"
#include "doctor.h"
#include "find.h"
#include "names.h"
#include "number.h"
#include "say.h"
#include "text.h"
#include "views.h"

#define SERVER_FILE SYSCONFDIR "/rtrs-server.conf"
#define SERVER_DIR SYSCONFDIR "/rtrs-server"
#define GATEWAY_DIR SYSCONFDIR "/rtrs"

/* ---- a subject ---- */

/* The user of a unit or a process.  The units' users, where no unit is installed, may be there. */
static void find_user(struct doctor_subject *s)
{
	const char *name = doctor_unit_value(&s->unit, "User");

	if (s->pid && doctor_user_of_process(&s->user, s->pid))
		return;
	if (s->unit.values &&
	    doctor_user_named(&s->user, *name ? name : "root", doctor_unit_value(&s->unit, "Group"),
			      doctor_unit_value(&s->unit, "SupplementaryGroups")))
		return;
	doctor_user_self(&s->user);
}

static void note_user(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *name = doctor_unit_value(&s->unit, "User");
	struct doctor_user of_unit;
	char text[WHO_TEXT_LEN];

	who_text(s->user.uid, text);
	if (!s->pid && *name && !doctor_user_named(&of_unit, name, "", ""))
		doctor_note(doctor, CHECK_CRITICAL, "user",
			    "there is no user %s, whom %s has: systemd-sysusers", name,
			    s->unit.name);
	else
		doctor_note(doctor, CHECK_OK, "user", "%s%s", text,
			    s->pid || s->unit.values ? "" : ", who asks");
}

static int is_forgotten(const struct dirent *entry)
{
	return !strchr(entry->d_name, '.') && !strchr(entry->d_name, '~') &&
	       entry->d_type == DT_REG;
}

/* A name without an ending was meant as a file of the configuration; others are copies. */
static void note_unused(struct doctor *doctor, const struct doctor_subject *s)
{
	_cleanup_free_ char *dir = s->config ? fmt_new("%s.d", s->config) : NULL;
	struct dirent **entries;
	int n = dir ? scandir(dir, &entries, is_forgotten, alphasort) : -1;

	for (int i = 0; i < n; i++) {
		doctor_note(doctor, CHECK_WARNING, "configuration",
			    "%s/%s is not read: its name does not end in .conf", dir,
			    entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* The unit of a file runs, and its program has not answered this user. */
static void note_unseen(struct doctor *doctor, const struct doctor_subject *s)
{
	if (!s->answer && geteuid() && doctor_unit_is(&s->unit, "ActiveState", "active"))
		doctor_note(doctor, CHECK_WARNING, "program", "%s runs, and answers root and its "
			    "own user alone: run rtrsctl doctor as root", s->unit.name);
}

/* Go where the program of @s has, or would have, its names of files.  The directory of before, for
 * leave(); -1: the program has none, or may not be entered. */
static int enter(const struct doctor_subject *s)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char dir[64];

	snprintf(dir, sizeof(dir), "/proc/%ld/cwd", s->pid);
	if (here >= 0 && (s->pid || s->unit.values) &&
	    (!chdir(s->pid ? dir : doctor_unit_directory(&s->unit, s->user.uid)) ||
	     (!s->pid && !chdir("/"))))
		return here;
	if (here >= 0)
		close(here);
	return -1;
}

static enum check_level look_at_directory(const void *dir, char *text, size_t len)
{
	struct stat st;
	int rc = stat(dir, &st) ? -errno : !S_ISDIR(st.st_mode) ? -ENOTDIR :
		 faccessat(AT_FDCWD, dir, X_OK, AT_EACCESS) ? -errno : 0;

	if (rc)
		snprintf(text, len, "%s", strerror(-rc));
	return rc ? CHECK_CRITICAL : CHECK_OK;
}

/* A unit without its directory does not start, unless WorkingDirectory= lets it be missing. */
static void note_directory(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *asked = doctor_unit_value(&s->unit, "WorkingDirectory"), *dir;
	enum check_level level = CHECK_WARNING;
	char text[1024];

	if (s->pid || !*asked || strchr("!-", *asked))
		return;
	dir = doctor_unit_directory(&s->unit, s->user.uid);
	if (!doctor_look_as(&s->user, look_at_directory, dir, &level, text, sizeof(text)))
		level = CHECK_WARNING;
	if (level != CHECK_OK)
		doctor_note(doctor, level, "directory", "WorkingDirectory=%s of %s: %s: %s: create "
			    "it, or let its user enter it", asked, s->unit.name, dir, text);
}

static void leave(int here)
{
	if (here < 0)
		return;
	if (fchdir(here))
		exit(say_error(EXIT_FAILED, "the own directory: %s", strerror(errno)));
	close(here);
}

static void look_at(struct doctor *doctor, struct doctor_subject *s)
{
	int here;

	doctor->program = s->name;
	find_user(s);
	doctor_subject_unit(doctor, s);
	note_unseen(doctor, s);
	note_user(doctor, s);
	note_directory(doctor, s);
	here = enter(s);
	doctor_subject_versions(doctor, s);
	doctor_subject_limits(doctor, s);
	doctor_subject_check(doctor, s);
	note_unused(doctor, s);
	/* The owner that the files need is not known then: a unit has a user of its own. */
	if (!s->unit.silent || !geteuid())
		doctor_subject_files(doctor, s);
	doctor_subject_paths(doctor, s);
	leave(here);
	doctor_unit_free(&s->unit);
	doctor_conf_free(&s->conf);
	doctor->program = NULL;
}

/* ---- programs that run ---- */

/* The file of --config or config= on the command line of @pid, for free(); NULL: none, or it
 * cannot be read.  An rtrs-nbd of an earlier snapshot has put an end to its word "config". */
static char *config_of_process(long pid)
{
	_cleanup_free_ char *word = NULL;
	FILE *f = doctor_proc(pid, "cmdline");
	char *config = NULL;
	bool next = false;
	size_t size = 0;

	while (f && !config && getdelim(&word, &size, '\0', f) > 0) {
		if (next)
			config = strdup(word);
		else if (!strncmp(word, "--config=", 9))
			config = strdup(word + 9);
		else if (!strncmp(word, "config=", 7))
			config = strdup(word + 7);
		next = !strcmp(word, "--config") || !strcmp(word, "config");
	}
	if (f)
		fclose(f);
	return config;
}

static void look_at_program(struct doctor *doctor, const struct found_program *program,
			    json_t *units)
{
	struct doctor_subject s = { .pid = program->pid };
	_cleanup_free_ char *config = NULL;
	char err[1024], unit[256];
	json_t *answer = call_program(program, "show", err, sizeof(err));

	if (!answer) {
		doctor_note(doctor, CHECK_CRITICAL, "program", "%s", err);
		return;
	}
	text_program(answer, s.name, sizeof(s.name));
	s.answer = answer;
	s.kind = answer_is_server(answer) ? SUBJECT_SERVER : SUBJECT_GATEWAY;
	s.pid = (long)answer_number(answer, "pid");
	s.config = config = config_of_process(s.pid);
	doctor_unit_of_process(s.pid, unit, sizeof(unit));
	if (*unit && doctor_unit_systemd())
		doctor_unit_ask(&s.unit, unit);
	if (*unit)
		json_object_set_new(units, unit, json_true());
	/* Without a unit the file need not have all parameters of a gateway. */
	if (s.kind == SUBJECT_GATEWAY && !s.unit.values)
		s.config = NULL;
	look_at(doctor, &s);
	json_decref(answer);
}

/* ---- files with which a program may start ---- */

/* Find the unit that starts with @path: that of @kinds, separated by '|', which is active or
 * enabled, or else the first one. */
static void find_unit(struct doctor_unit *unit, const char *kinds, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char all[128], *rest = all, *kind;

	snprintf(all, sizeof(all), "%s", kinds);
	while (doctor_unit_systemd() && (kind = strsep(&rest, "|"))) {
		struct doctor_unit one;
		char text[256];

		if (strchr(kind, '@'))
			snprintf(text, sizeof(text), "%s%.*s.service", kind, (int)strlen(name) - 5,
				 name);
		else
			snprintf(text, sizeof(text), "%s.service", kind);
		if (!doctor_unit_ask(&one, text)) {
			unit->silent |= one.silent;
			continue;
		}
		if (!unit->values || doctor_unit_is(&one, "UnitFileState", "enabled") ||
		    doctor_unit_is(&one, "ActiveState", "active")) {
			doctor_unit_free(unit);
			*unit = one;
		} else {
			doctor_unit_free(&one);
		}
	}
}

/* @errors: of doctor_conf_read(). */
static void note_unread(struct doctor *doctor, const struct doctor_subject *s, const char *errors)
{
	const char *line = errors ? errors : "out of memory\n", *end;

	doctor->program = s->name;
	for (; (end = strchr(line, '\n')); line = end + 1)
		doctor_note(doctor, CHECK_CRITICAL, "file", "%.*s", (int)(end - line), line);
	doctor->program = NULL;
}

/* @kinds: units that may start with @path; NULL: none is known. */
static void look_at_file(struct doctor *doctor, const struct find_wanted *wanted,
			 const char *path, const char *kinds, json_t *units)
{
	struct doctor_subject s = { 0 };
	_cleanup_free_ char *errors = doctor_conf_read(&s.conf, path);

	s.config = path;
	s.kind = (kinds ? !strncmp(kinds, "rtrs-server", 11) : s.conf.is_server) ?
		 SUBJECT_SERVER : SUBJECT_GATEWAY;
	if (kinds)
		find_unit(&s.unit, kinds, path);
	text_safe(path, s.name, sizeof(s.name));
	if ((s.unit.values && json_object_get(units, s.unit.name)) ||
	    (s.kind == SUBJECT_SERVER ? wanted->gateway : wanted->server)) {
		doctor_unit_free(&s.unit);
		doctor_conf_free(&s.conf);
		return;
	}
	if (s.unit.values)
		json_object_set_new(units, s.unit.name, json_true());
	note_unread(doctor, &s, errors);
	if (s.conf.n || (errors && !*errors))
		look_at(doctor, &s);
	doctor_unit_free(&s.unit);
	doctor_conf_free(&s.conf);
}

static void look_at_dir(struct doctor *doctor, const struct find_wanted *wanted, const char *dir,
			const char *kinds, json_t *units)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, opt_dir_is_conf, alphasort);

	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = fmt_new("%s/%s", dir, entries[i]->d_name);

		if (path)
			look_at_file(doctor, wanted, path, kinds, units);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* The files of the units, unless a program with that unit runs. */
static void look_at_files(struct doctor *doctor, const struct find_wanted *wanted,
			  json_t *units)
{
	if (!access(SERVER_FILE, F_OK))
		look_at_file(doctor, wanted, SERVER_FILE, "rtrs-server", units);
	look_at_dir(doctor, wanted, SERVER_DIR, "rtrs-server@", units);
	look_at_dir(doctor, wanted, GATEWAY_DIR, "rtrs-nbd@|nbdkit-rtrs@|rtrs-attach@", units);
}

/* ---- units that do not start, and have no file ---- */

/* Those that are not in @units, which have been looked at. */
static void look_at_units(struct doctor *doctor, const struct find_wanted *wanted,
			  const json_t *units)
{
	json_t *broken = doctor_unit_systemd() ? doctor_unit_broken() : json_object(), *unused;
	const char *name;

	json_object_foreach(broken, name, unused) {
		bool server = !strncmp(name, "rtrs-server", 11);
		struct doctor_subject s = { 0 };

		if (json_object_get(units, name) || (server ? wanted->gateway : wanted->server) ||
		    !doctor_unit_ask(&s.unit, name))
			continue;
		doctor->program = name;
		doctor_subject_unit(doctor, &s);
		doctor->program = NULL;
		doctor_unit_free(&s.unit);
	}
	json_decref(broken);
}

/* ---- the whole ---- */

/* True if the user means a program that runs. */
static bool names_program(const struct ctx *ctx)
{
	return ctx->socket || ctx->wanted.pid || ctx->wanted.name;
}

/* A machine may have no program, but for one that the user names.  EXIT_DONE, or what an error
 * says. */
static int find(const struct ctx *ctx, struct found *found)
{
	if (ctx->arg)
		return EXIT_DONE;
	if (names_program(ctx))
		return find_for_command(ctx, found);
	if (!find_chosen(found, NULL, &ctx->wanted))
		return say_error(EXIT_FAILED, "out of memory");
	return EXIT_DONE;
}

int doctor_run(const struct ctx *ctx)
{
	struct doctor doctor = { 0 };
	json_t *units;				/* of programs that were looked at */
	struct found found = { .n = 0 };
	int status = find(ctx, &found);

	if (status != EXIT_DONE) {
		find_free(&found);
		return status;
	}
	doctor.findings = json_array();
	units = json_object();
	doctor_machine_clock(&doctor);
	doctor_machine_rdma(&doctor);
	if (!ctx->wanted.gateway)
		doctor_machine_io_uring(&doctor);
	if (ctx->arg)
		look_at_file(&doctor, &ctx->wanted, ctx->arg, NULL, units);
	for (size_t i = 0; i < found.n; i++)
		look_at_program(&doctor, &found.at[i], units);
	if (!ctx->arg && !names_program(ctx))
		look_at_files(&doctor, &ctx->wanted, units);
	if (!ctx->arg && !names_program(ctx))
		look_at_units(&doctor, &ctx->wanted, units);
	doctor_note_print(&doctor, ctx->json);
	find_free(&found);
	json_decref(units);
	json_decref(doctor.findings);
	return (int)doctor.level;
}
