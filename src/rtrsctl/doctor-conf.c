/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a program: its lines, and the judgement of the program itself (--check). */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "cleanup.h"
#include "doctor.h"
#include "plain-file.h"
#include "process.h"
#include "util.h"

/* ---- lines ---- */

/* False: no memory. */
static bool add_line(struct doctor_conf *conf, const char *section, const char *name,
		     const char *value)
{
	struct doctor_line *all = realloc(conf->lines, (conf->n + 1) * sizeof(*all));
	struct doctor_line *line;

	if (!all)
		return false;
	conf->lines = all;
	line = &all[conf->n++];
	*line = (struct doctor_line){ opt_texts_keep(&conf->texts, section),
				      opt_texts_keep(&conf->texts, name),
				      opt_texts_keep(&conf->texts, value) };
	return line->section && line->name && line->value;
}

/* The title of the header @line, '[export "disk0"]', in its place; "": it has none. */
static const char *section_title(char *line)
{
	char *quote = strchr(line, '"'), *end = quote ? strrchr(quote + 1, '"') : NULL;

	if (!end)
		return "";
	*end = '\0';
	return quote + 1;
}

static int read_lines(struct doctor_conf *conf, char *text)
{
	const char *section = "";
	char *line, *name, *value;
	bool quoted;

	while ((line = strsep(&text, "\n"))) {
		line = opt_line_trim(line);
		if (*line == '[') {
			conf->is_server |= !strncmp(line, "[server", 7) ||
					   !strncmp(line, "[export", 7);
			section = section_title(line);
			continue;
		}
		if (!*line || strchr("#;", *line))
			continue;
		opt_line_split(line, &name, &value, &quoted);
		if (value && !add_line(conf, section, name, value))
			return -ENOMEM;
	}
	return 0;
}

static int read_one(void *arg, const char *path, FILE *errors)
{
	struct plain_file file = { 0 };
	char why[256];
	int rc = plain_file_load(path, OPT_FILE_MAX, &file, why, sizeof(why));

	if (!rc) {
		rc = read_lines(arg, file.text);
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	}
	if (rc)
		fprintf(errors, "%s: %s\n", path, why);
	plain_file_free(&file);
	return rc;
}

char *doctor_conf_read(struct doctor_conf *conf, const char *path)
{
	char *text = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&text, &len);

	if (!errors)
		return NULL;
	opt_dir_read(path, read_one, conf, errors);
	fclose(errors);
	return text;
}

const char *doctor_conf_next(const struct doctor_conf *conf, const char *name, size_t *at,
			     const char **section)
{
	while (*at < conf->n) {
		const struct doctor_line *line = &conf->lines[(*at)++];

		if (strcmp(line->name, name))
			continue;
		if (section)
			*section = line->section;
		return line->value;
	}
	return NULL;
}

const char *doctor_conf_of(const struct doctor_conf *conf, const char *section, const char *name)
{
	const char *of, *value;
	size_t at = 0;

	while ((value = doctor_conf_next(conf, name, &at, &of))) {
		if (!strcmp(of, section))
			return value;
	}
	return NULL;
}

void doctor_conf_free(struct doctor_conf *conf)
{
	opt_texts_free(&conf->texts);
	free(conf->lines);
	*conf = (struct doctor_conf){ 0 };
}

/* ---- --check ----
 * A child, rtrs-server, rtrs-nbd or rtrs-attach, looks at the configuration: the tables of options
 * are the program's. */

struct config_check {
	char program[PATH_MAX];
	const char *how;		/* its words in front of the file: "--config=" */
	const char *config;
};

/* Copy to @text the first line of @f with an error, or else the first one with a warning, or else
 * the first one, which is none of a finding.  @f NULL: no lines. */
static enum check_level read_worst(FILE *f, const char *program, char *text, size_t len)
{
	enum check_level level = CHECK_OK;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	*text = '\0';
	while (f && getline(&line, &size, f) > 0) {
		const char *error = strstr(line, "error: "), *warning = strstr(line, "warning: ");
		const char *said = error ? error + strlen("error: ") :
				   warning ? warning + strlen("warning: ") : line;

		line[strcspn(line, "\n")] = '\0';
		if (level == CHECK_CRITICAL || (!error && *text && (!warning || level)))
			continue;
		level = error ? CHECK_CRITICAL : warning ? CHECK_WARNING : CHECK_OK;
		if (said == line && !strncmp(line, program, strlen(program)))
			said += strlen(program) + strlen(": ");
		snprintf(text, len, "%s", said);
	}
	return level;
}

static enum check_level look_at_config(const void *arg, char *text, size_t len)
{
	static char word[PATH_MAX + 16];
	const struct config_check *check = arg;
	const char *const argv[] = { check->program, "--check", word, NULL };
	enum check_level level;
	int status;
	pid_t pid;
	FILE *f;

	snprintf(word, sizeof(word), "%s%s", check->how, check->config);
	f = doctor_tool_begin(argv, STDERR_FILENO, &pid);
	level = read_worst(f, strrchr(check->program, '/') + 1, text, len);
	status = doctor_tool_end(f, pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == DOCTOR_NOT_RUN) {
		if (!*text)
			snprintf(text, len, "could not be run");
		return CHECK_WARNING;
	}
	if (WEXITSTATUS(status) == EXIT_DONE && level == CHECK_OK)
		snprintf(text, len, "right");
	else if (!*text)
		snprintf(text, len, "refused");
	return WEXITSTATUS(status) == EXIT_DONE ? level : CHECK_CRITICAL;
}

/* A program of these packages is beside this one, or in the other of the directories sbin and bin.
 * False: it is not installed. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	static const char *const dirs[] = { "", "/../bin", "/../sbin" };
	static char here[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	int rc = -1;

	if (n < 0)
		return false;
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (unsigned i = 0; rc && i < ARRAY_SIZE(dirs); i++) {
		if (snprintf(path, PATH_MAX, "%s%s/%s", here, dirs[i], name) < PATH_MAX)
			rc = access(path, X_OK);
	}
	return !rc;
}

/* ---- files that wait for a reload ---- */

struct newer {
	const char *saved;		/* the program's own file; NULL: none */
	int64_t than_ns;		/* Unix time */
	char path[PATH_MAX];		/* the first such file; "": none */
};

static void look_at_age(struct newer *newer, const char *path)
{
	struct stat st;
	int64_t ns;

	if (*newer->path || stat(path, &st))
		return;
	ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (ns > newer->than_ns)
		snprintf(newer->path, sizeof(newer->path), "%s", path);
}

/* One file of the configuration. */
static int look_at_file_age(void *arg, const char *path, FILE *errors)
{
	struct newer *newer = arg;

	if (!newer->saved || strcmp(path, newer->saved))
		look_at_age(newer, path);
	return 0;
}

static void look_at_keys_age(struct newer *newer, const json_t *answer)
{
	for (unsigned i = 0; i < ANSWER_SECRETS; i++) {
		const char *path = answer_secret_path(answer, &answer_secrets[i]);

		if (path && !answer_secrets[i].certificates)
			look_at_age(newer, path);
	}
}

/* A program of before does not report the age of what it has read. */
static void note_unread_change(struct doctor *doctor, const struct doctor_subject *s)
{
	static struct newer newer;		/* large for a stack */
	_cleanup_free_ char *saved = s->config ? opt_dir_saved(s->config) : NULL;
	FILE *errors = fopen("/dev/null", "we");	/* --check has them */
	struct timespec now;

	if (!errors || !json_object_get(s->answer, "files_age_ns"))
		goto out;
	clock_gettime(CLOCK_REALTIME, &now);
	newer = (struct newer){ .saved = saved };
	newer.than_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec -
			(int64_t)answer_number(s->answer, "files_age_ns");
	if (s->config)
		opt_dir_read(s->config, look_at_file_age, &newer, errors);
	look_at_keys_age(&newer, s->answer);
	if (*newer.path && s->unit.values)
		doctor_note(doctor, CHECK_WARNING, "reload", "%s was changed since the program has "
			    "read it: systemctl reload %s, which says what takes a restart",
			    newer.path, s->unit.name);
	else if (*newer.path)
		doctor_note(doctor, CHECK_WARNING, "reload", "%s was changed since the program has "
			    "read it: rtrsctl --pid %ld reload, which says what takes a restart",
			    newer.path, s->pid);
out:
	if (errors)
		fclose(errors);
}

/* @name, which reads the file of @s, is not installed.  A gateway may be nbdkit's, with a unit. */
static void note_missing(struct doctor *doctor, const struct doctor_subject *s, const char *name)
{
	if (!s->pid && !s->unit.values)
		doctor_note(doctor, CHECK_WARNING, "configuration", "%s is not installed: install "
			    "its package, or remove the file", name);
}

void doctor_subject_check(struct doctor *doctor, const struct doctor_subject *s)
{
	static struct config_check check;	/* large for a stack */
	const char *name = s->kind == SUBJECT_SERVER ? "rtrs-server" :
			   !strncmp(s->unit.name, "rtrs-attach@", 12) ? "rtrs-attach" :
									"rtrs-nbd";
	enum check_level level = CHECK_WARNING;
	char text[1024];

	note_unread_change(doctor, s);
	check.config = s->config;
	check.how = s->kind == SUBJECT_SERVER ? "--config=" : "config=";
	if (!s->config)
		return;
	if (!find_program(name, check.program)) {
		note_missing(doctor, s, name);
		return;
	}
	if (!doctor_look_as(&s->user, look_at_config, &check, &level, text, sizeof(text)))
		level = CHECK_WARNING;
	doctor_note(doctor, level, "configuration", "%s (%s --check %s%s)", text, name, check.how,
		    s->config);
}
