/* SPDX-License-Identifier: BSD-3-Clause */
/* What systemctl and journalctl say.  Owns nothing. */
#include <config.h>

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl-json.h"
#include "doctor.h"
#include "names.h"
#include "number.h"
#include "util.h"

#define PROPERTIES "--property=LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload," \
	"Result,NRestarts,User,Group,SupplementaryGroups,LimitMEMLOCK,LimitNOFILE,"            \
	"ProtectHome,PrivateTmp,ProtectSystem,ReadWritePaths,BindPaths,TemporaryFileSystem,"   \
	"StateDirectory,RuntimeDirectory,CacheDirectory,LogsDirectory,WorkingDirectory,"       \
	"DevicePolicy,DeviceAllow,DropInPaths"

/* ---- asking ---- */

bool doctor_unit_systemd(void)
{
	return !access("/run/systemd/system", F_OK);
}

/* Put "KEY=VALUE" into @values; a further value of a key is a line behind the first. */
static void put_value(json_t *values, char *line)
{
	_cleanup_free_ char *both = NULL;
	char *value = strchr(line, '=');
	const char *before;

	if (!value)
		return;
	*value++ = '\0';
	value[strcspn(value, "\n")] = '\0';
	before = json_string_value(json_object_get(values, line));
	if (before && *before)
		both = fmt_new("%s\n%s", before, value);
	json_object_set_new(values, line, ctl_json_text(both ? both : value));
}

static json_t *read_values(FILE *f)
{
	_cleanup_free_ char *line = NULL;
	json_t *values = json_object();
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		put_value(values, line);
	return values;
}

bool doctor_unit_ask(struct doctor_unit *unit, const char *name)
{
	const char *const argv[] = { "systemctl", "--no-pager", "show", PROPERTIES, "--", name,
				     NULL };
	pid_t pid;
	FILE *f = doctor_tool_begin(argv, STDOUT_FILENO, &pid);
	int status;

	*unit = (struct doctor_unit){ .values = read_values(f) };
	status = doctor_tool_end(f, pid);
	snprintf(unit->name, sizeof(unit->name), "%s", name);
	if (!status && *doctor_unit_value(unit, "LoadState") &&
	    !doctor_unit_is(unit, "LoadState", "not-found"))
		return true;
	doctor_unit_free(unit);
	unit->silent = status;
	return false;
}

json_t *doctor_unit_broken(void)
{
	static const char *const argv[] = {
		"systemctl", "--no-pager", "--plain", "--no-legend", "--full", "--type=service",
		"--state=failed,auto-restart", "list-units", "--", "rtrs-server.service",
		"rtrs-server@*", "rtrs-nbd@*", "nbdkit-rtrs@*", "rtrs-attach@*", NULL
	};
	_cleanup_free_ char *line = NULL;
	json_t *names = json_object();
	size_t size = 0;
	pid_t pid;
	FILE *f = doctor_tool_begin(argv, STDOUT_FILENO, &pid);

	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, " \n")] = '\0';
		if (*line)
			json_object_set_new(names, line, json_true());
	}
	doctor_tool_end(f, pid);
	return names;
}

/* The line of version 2 of control groups, or that of systemd in version 1: "0::/a/b.service". */
void doctor_unit_of_process(long pid, char *name, size_t len)
{
	FILE *f = doctor_proc(pid, "cgroup");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	*name = '\0';
	while (f && !*name && getline(&line, &size, f) > 0) {
		const char *slash;
		size_t n;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) && !strstr(line, ":name=systemd:"))
			continue;
		slash = strrchr(line, '/');
		n = slash ? strlen(slash) : 0;
		if (n > 9 && !strcmp(slash + n - 8, ".service"))
			snprintf(name, len, "%s", slash + 1);
	}
	if (f)
		fclose(f);
}

/* ---- values ---- */

const char *doctor_unit_value(const struct doctor_unit *unit, const char *property)
{
	const char *value = json_string_value(json_object_get(unit->values, property));

	return value ? value : "";
}

bool doctor_unit_is(const struct doctor_unit *unit, const char *property, const char *value)
{
	return !strcmp(doctor_unit_value(unit, property), value);
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

const char *doctor_unit_hides(const struct doctor_unit *unit, const char *path)
{
	const char *home = doctor_unit_value(unit, "ProtectHome"), *dir;
	const char *by = who_hides(path, &dir);

	if (by && starts(by, "PrivateTmp"))
		return doctor_unit_is(unit, "PrivateTmp", "yes") ? by : NULL;
	return !strcmp(home, "yes") || !strcmp(home, "tmpfs") ? by : NULL;
}

/* True if @path is one of @dirs, words each below @above, or below one. */
static bool is_below_one(const char *path, const char *above, const char *dirs)
{
	while (*(dirs += strspn(dirs, " \n"))) {
		size_t n = strcspn(dirs, " \n");
		_cleanup_free_ char *dir = NULL;

		/* "-": may be missing; "+": of the unit's root. */
		dir = fmt_new("%s%.*s", above, (int)(n - strspn(dirs, "-+")),
			      dirs + strspn(dirs, "-+"));
		for (char *end = dir ? dir + strlen(dir) : NULL; end > dir && end[-1] == '/';)
			*--end = '\0';
		if (dir && starts(path, dir) && strchr("/", path[strlen(dir)]))
			return true;
		dirs += n;
	}
	return false;
}

/* True if a setting of @unit opens @path, or puts something else there. */
static bool is_opened(const struct doctor_unit *unit, const char *path)
{
	static const struct { const char *property, *above; } rows[] = {
		{ "ReadWritePaths", "" }, { "StateDirectory", "/var/lib/" },
		{ "RuntimeDirectory", "/run/" }, { "CacheDirectory", "/var/cache/" },
		{ "LogsDirectory", "/var/log/" },
	};

	const char *hides = doctor_unit_hides(unit, path);

	if (is_below_one(path, "", "/dev /proc /sys") || (hides && starts(hides, "PrivateTmp")) ||
	    *doctor_unit_value(unit, "BindPaths") ||
	    *doctor_unit_value(unit, "TemporaryFileSystem"))
		return true;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		if (is_below_one(path, rows[i].above, doctor_unit_value(unit, rows[i].property)))
			return true;
	}
	return false;
}

const char *doctor_unit_read_only(const struct doctor_unit *unit, const char *path)
{
	const char *system = doctor_unit_value(unit, "ProtectSystem");
	bool strict = !strcmp(system, "strict"), full = strict || !strcmp(system, "full");
	bool closed = strict || (full && is_below_one(path, "", "/etc")) ||
		      ((full || !strcmp(system, "yes")) &&
		       is_below_one(path, "", "/usr /boot /efi"));

	if (*path != '/' || !closed || is_opened(unit, path))
		return NULL;
	return strict ? "ProtectSystem=strict" : full ? "ProtectSystem=full" : "ProtectSystem=yes";
}

const char *doctor_unit_directory(const struct doctor_unit *unit, uid_t user)
{
	const char *dir = doctor_unit_value(unit, "WorkingDirectory");
	const struct passwd *pw = strstr(dir, "~") ? getpwuid(user) : NULL;

	if (pw && !strcmp(dir + strspn(dir, "!-"), "~"))
		return pw->pw_dir;
	dir += strspn(dir, "!-");	/* it may be missing */
	return *dir == '/' ? dir : "/";
}

bool doctor_unit_may_open(const struct doctor_unit *unit, const char *path)
{
	const char *policy = doctor_unit_value(unit, "DevicePolicy");
	const char *allow = doctor_unit_value(unit, "DeviceAllow");
	_cleanup_free_ char *real = realpath(path, NULL);

	if (strcmp(policy, "closed") && strcmp(policy, "strict") && !*allow)
		return true;
	for (; *allow; allow += strcspn(allow, "\n"), allow += *allow == '\n') {
		size_t n = strcspn(allow, " \n");
		char *of = strndup(allow, n), *its = of ? realpath(of, NULL) : NULL;
		bool same = of && (starts(of, "block-") || !strcmp(of, path) ||
				   (its && real && !strcmp(its, real)));

		free(of);
		free(its);
		if (same)
			return true;
	}
	return false;
}

void doctor_unit_free(struct doctor_unit *unit)
{
	json_decref(unit->values);
	*unit = (struct doctor_unit){ 0 };
}

/* ---- findings ---- */

/* Write to @text the last line that a process of @unit has logged.  False: the journal has none. */
static bool last_words(const struct doctor_unit *unit, char *text, size_t len)
{
	_cleanup_free_ char *line = NULL;
	char match[sizeof(unit->name) + 32];
	const char *const argv[] = { "journalctl", "--quiet", "--no-pager", "--output=cat",
				     "--lines=1", match, NULL };
	size_t size = 0;
	ssize_t n;
	pid_t pid;
	FILE *f;

	/* Lines of systemd about the unit have another field. */
	snprintf(match, sizeof(match), "_SYSTEMD_UNIT=%s", unit->name);
	f = doctor_tool_begin(argv, STDOUT_FILENO, &pid);
	n = f ? getline(&line, &size, f) : -1;
	if (doctor_tool_end(f, pid) || n <= 1)
		return false;
	snprintf(text, len, "%.*s", (int)strcspn(line, "\n"), line);
	return true;
}

static void note_broken(struct doctor *doctor, const struct doctor_unit *unit, const char *how)
{
	char words[1024];

	if (last_words(unit, words, sizeof(words)))
		doctor_note(doctor, CHECK_CRITICAL, "unit", "%s %s: %s (journalctl -u %s)",
			    unit->name, how, words, unit->name);
	else
		doctor_note(doctor, CHECK_CRITICAL, "unit", "%s %s: journalctl -u %s", unit->name,
			    how, unit->name);
}

static void note_state(struct doctor *doctor, const struct doctor_unit *unit)
{
	const char *active = doctor_unit_value(unit, "ActiveState");
	const char *file = doctor_unit_value(unit, "UnitFileState");
	bool enabled = starts(file, "enabled");
	const char *restarts = doctor_unit_value(unit, "NRestarts");
	char how[64];

	snprintf(how, sizeof(how), "has failed (%.40s)", doctor_unit_value(unit, "Result"));
	if (!strcmp(active, "failed"))
		note_broken(doctor, unit, how);
	else if (doctor_unit_is(unit, "SubState", "auto-restart"))
		note_broken(doctor, unit, "does not start, and tries again");
	else if (!strcmp(active, "activating") && *restarts && strcmp(restarts, "0")) {
		snprintf(how, sizeof(how), "is not up after %.10s restart%s", restarts,
			 strcmp(restarts, "1") ? "s" : "");
		note_broken(doctor, unit, how);
	} else if (!strcmp(active, "inactive") && enabled)
		doctor_note(doctor, CHECK_WARNING, "unit",
			    "%s is enabled and does not run: systemctl start %s", unit->name,
			    unit->name);
	else if (!strcmp(active, "active") && !strcmp(file, "disabled"))
		doctor_note(doctor, CHECK_WARNING, "unit",
			    "%s runs, and will not after a reboot: systemctl enable %s", unit->name,
			    unit->name);
	else
		doctor_note(doctor, CHECK_OK, "unit", "%s is %s and %s", unit->name,
			    *active ? active : "unknown", *file ? file : "not installed by name");
}

/* True if systemd has read the file @path for @unit. */
static bool has_read(const struct doctor_unit *unit, const char *path)
{
	const char *at = doctor_unit_value(unit, "DropInPaths");
	size_t n = strlen(path);

	while ((at = strstr(at, path)) && at[n] && at[n] != ' ')
		at += n;
	return at;
}

/* Write to @path a drop-in of @unit in @dir, "/etc/systemd/system/NAME.d", that systemd has not
 * read.  False: there is none.  @names: the files of the directories before, in whose place none is
 * read; and those of this one then. */
static bool find_unread(const struct doctor_unit *unit, const char *dir, json_t *names, char *path,
			size_t len)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, opt_dir_is_conf, alphasort);
	bool found = false;

	for (int i = 0; i < n; i++) {
		if (!found && !json_object_get(names, entries[i]->d_name)) {
			snprintf(path, len, "%s/%s", dir, entries[i]->d_name);
			found = !has_read(unit, path);
		}
		json_object_set_new(names, entries[i]->d_name, json_true());
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return found;
}

/* A new directory of drop-ins: systemd 252 looks only into directories that it knows
 * (NeedDaemonReload).  In the order of systemd, which reads one file of each name. */
static bool has_unread(const struct doctor_unit *unit, char *path, size_t len)
{
	static const char *const dirs[] = { "/etc/systemd/system", "/run/systemd/system" };
	int stem = (int)strcspn(unit->name, "@");
	char dir[sizeof(unit->name) + 64];
	json_t *names = json_object();
	bool found = false;

	for (unsigned i = 0; !found && i < ARRAY_SIZE(dirs); i++) {
		snprintf(dir, sizeof(dir), "%s/%s.d", dirs[i], unit->name);
		found = find_unread(unit, dir, names, path, len);
		snprintf(dir, sizeof(dir), "%s/%.*s@.service.d", dirs[i], stem, unit->name);
		if (!found && unit->name[stem])
			found = find_unread(unit, dir, names, path, len);
	}
	json_decref(names);
	return found;
}

static void note_changed(struct doctor *doctor, const struct doctor_unit *unit)
{
	char path[1024];

	if (has_unread(unit, path, sizeof(path)))
		doctor_note(doctor, CHECK_WARNING, "unit", "systemd has not read %s: systemctl "
			    "daemon-reload, then systemctl restart %s", path, unit->name);
	else if (doctor_unit_is(unit, "NeedDaemonReload", "yes"))
		doctor_note(doctor, CHECK_WARNING, "unit", "the files of %s have changed: "
			    "systemctl daemon-reload, then a restart", unit->name);
}

void doctor_subject_unit(struct doctor *doctor, const struct doctor_subject *s)
{
	const struct doctor_unit *unit = &s->unit;

	if (!unit->values && unit->silent) {
		doctor_note(doctor, CHECK_WARNING, "unit", "systemctl does not answer%s",
			    geteuid() ? ": run rtrsctl doctor as root" : "");
		return;
	}
	if (!unit->values) {
		doctor_note(doctor, CHECK_OK, "unit", "none: %s",
			    doctor_unit_systemd() ? "no unit has this program or this file" :
			    "systemd does not run here");
		return;
	}
	if (doctor_unit_is(unit, "LoadState", "masked"))
		doctor_note(doctor, CHECK_WARNING, "unit",
			    "%s is masked and cannot start: systemctl unmask %s", unit->name,
			    unit->name);
	else
		note_state(doctor, unit);
	note_changed(doctor, unit);
}
